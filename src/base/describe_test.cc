// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "base/describe.h"

#include <gtest/gtest.h>

#include <boost/system/system_error.hpp>
#include <stdexcept>

namespace sw {
namespace {

TEST(Describe, LeavesOutWhereInTheSourceItWas) {
  static constexpr boost::source_location kPlace("file.hpp", 12, "function");
  const boost::system::error_code code(boost::system::errc::timed_out,
                                       boost::system::generic_category(), &kPlace);
  const boost::system::system_error problem(code);
  EXPECT_NE(std::string(problem.what()).find("file.hpp"), std::string::npos);
  EXPECT_EQ(describe(problem), code.message());
  EXPECT_EQ(describe(std::invalid_argument("a path")), "a path");
}

}  // namespace
}  // namespace sw
