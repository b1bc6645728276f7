// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "engine/driver_guest.h"

#include <gtest/gtest.h>

namespace sw::engine {
namespace {

using namespace std::literals;

TEST(DriverRequest, HoldsStringsWithTheirLengths) {
  sw::Run request;
  request.code = "1";
  request.env = {{"K", "é"}};
  request.args = {"a", ""};
  request.cwd = "/d";
  request.limits.result_bytes_max = 0x0102;
  EXPECT_EQ(driver_request(request, "<cell 1>", true),
            "\x03\x01\0\0"
            "\x01\0\0\0"
            "1\x08\0\0\0<cell 1>"
            "\x02\0\0\0/d"
            "\x02\0\0\0\x01\0\0\0a\0\0\0\0"
            "\x01\0\0\0\x01\0\0\0K\x02\0\0\0\xC3\xA9"s);
}

TEST(DriverRequest, MayHoldNothing) {
  sw::Run request;
  request.cwd = "/d";
  request.limits.result_bytes_max = 0;
  EXPECT_EQ(driver_request(request, "", false), "\x01"s + std::string(23, '\0'));
}

TEST(DriverRequest, ALimitThatDoesNotFitIsTheLargestThatDoes) {
  sw::Run request;
  request.limits.result_bytes_max = UINT64_MAX;
  EXPECT_EQ(driver_request(request, "", false).substr(0, 4), "\xFF\xFF\xFF\xFF");
}

}  // namespace
}  // namespace sw::engine
