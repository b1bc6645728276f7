// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "sandbox_workers/engine/driver_guest.h"

#include <gtest/gtest.h>

namespace sw::engine {
namespace {

using namespace std::literals;

TEST(DriverRequest, HoldsStringsWithTheirLengths) {
  RunRequest request;
  request.code = "1";
  request.env = {{"K", "é"}};
  request.args = {"a", ""};
  request.cwd = "/d";
  EXPECT_EQ(driver_request(request, "<cell 1>", true),
            "\x01\0\0\0"
            "1\x08\0\0\0<cell 1>"
            "\x02\0\0\0/d"
            "\x02\0\0\0\x01\0\0\0a\0\0\0\0"
            "\x01\0\0\0\x01\0\0\0K\x02\0\0\0\xC3\xA9"s);
}

TEST(DriverRequest, MayHoldNothing) {
  RunRequest request;
  request.cwd = "/d";
  EXPECT_EQ(driver_request(request, "", false), std::string(20, '\0'));
}

}  // namespace
}  // namespace sw::engine
