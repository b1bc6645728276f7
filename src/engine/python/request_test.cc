// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "engine/python/request.h"

#include <gtest/gtest.h>

namespace sw::engine {
namespace {

using namespace std::literals;

TEST(CellRequest, IsATupleInMarshalsFormat) {
  sw::Run request;
  request.code = "1";
  request.env = {{"K", "é"}};
  request.args = {"a"};
  EXPECT_EQ(cell_request(request, "<cell 1>", {.fresh = true, .files = false, .script = true}),
            "(\x06\0\0\0"
            "s\x01\0\0\0"
            "1"
            "u\x08\0\0\0<cell 1>"
            "{u\x01\0\0\0K"
            "u\x02\0\0\0\xC3\xA9"
            "0"
            "[\x01\0\0\0u\x01\0\0\0a"
            "N"
            "i\x05\0\0\0"s);
}

TEST(CellRequest, SaysWhereAFreshInstanceBegins) {
  sw::Run request;
  request.cwd = "/workspace/d";
  EXPECT_EQ(cell_request(request, "f", {.fresh = true}),
            "(\x06\0\0\0s\0\0\0\0u\x01\0\0\0f{0Nu\x0c\0\0\0/workspace/di\x01\0\0\0"s);
  EXPECT_EQ(cell_request(request, "f", {}), "(\x06\0\0\0s\0\0\0\0u\x01\0\0\0f{0NNi\0\0\0\0"s);
}

TEST(CellRequest, SaysWhetherTheWorkspaceIsTheHome) {
  EXPECT_EQ(cell_request(sw::Run{}, "f", {.files = true, .home = true}),
            "(\x06\0\0\0s\0\0\0\0u\x01\0\0\0f{0NNi\x0a\0\0\0"s);
}

TEST(CellRequest, LeavesArgumentsAloneWhenThereAreNone) {
  EXPECT_EQ(cell_request(sw::Run{}, "f", {}), "(\x06\0\0\0s\0\0\0\0u\x01\0\0\0f{0NNi\0\0\0\0"s);
}

TEST(BootSource, QuotesEveryByteOfTheFiles) {
  const std::string_view content = "a'\\\n\xC3\x00"sv.substr(0, 6);
  EXPECT_EQ(
      boot_source({{"driver/boot.py", "go"}, {"driver/x.py", std::string(content)}}, {"json"}),
      "exec(compile(b'go','<sandbox/"
      "boot>','exec'),{'__name__':'boot','FILES':{'x':b'a\\'\\\\\\n\\xc3\\x00',},"
      "'IMPORTS':['json',]})");
}

}  // namespace
}  // namespace sw::engine
