// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "engine/ruby/request.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace sw::engine {
namespace {

using namespace std::string_literals;
using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST(RubyRequest, SaysItsPartsAfterTheirSizes) {
  sw::Run request;
  request.code = "1 + 1";
  request.cwd = "/d";
  request.args = {"prog.rb", "a"};
  request.env = {{"K", "v\n"}};
  request.limits.result_bytes_max = 0x0102;
  EXPECT_EQ(ruby_request(request, "<cell 1>", true),
            "\x03\x01\0\0"
            "\x05\0\0\0"
            "1 + 1"
            "\x08\0\0\0"
            "<cell 1>"
            "\x02\0\0\0"
            "/d"
            "\x02\0\0\0"
            "\x07\0\0\0"
            "prog.rb"
            "\x01\0\0\0"
            "a"
            "\x01\0\0\0"
            "\x01\0\0\0"
            "K"
            "\x02\0\0\0"
            "v\n"s);
}

TEST(RubyRequest, CodeWithoutAFileIsCalledAsItsCell) {
  sw::Run request;
  request.args = {"-c", "-c"};
  EXPECT_THAT(ruby_request(request, "<cell 2>", false),
              HasSubstr("\x02\0\0\0\x08\0\0\0<cell 2>\x02\0\0\0-c"s));
}

TEST(RubyRequest, BootNamesTheModulesToRequire) {
  Manifest manifest;
  manifest.imports = {"json", "set"};
  manifest.drivers = {{"driver/boot.rb", "modules.each"}, {"driver/warm.rb", "warm"}};
  const std::string source = ruby_boot_code(manifest);
  EXPECT_THAT(source, StartsWith("modules = %w(json set)\n"));
  EXPECT_THAT(source, HasSubstr("modules.each"));
  EXPECT_EQ(source.find("warm"), std::string::npos);
}

}  // namespace
}  // namespace sw::engine
