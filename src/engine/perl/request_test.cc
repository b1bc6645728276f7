// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "engine/perl/request.h"

#include <gtest/gtest.h>

namespace sw::engine {
namespace {

TEST(PerlBoot, HasTheModulesBeforeTheDriver) {
  Manifest manifest;
  manifest.imports = {"strict", "List::Util"};
  manifest.drivers = {{"driver/warm.pl", "1;"}, {"driver/boot.pl", "boot;"}};
  EXPECT_EQ(perl_boot_code(manifest), "my @modules = qw(strict List::Util);\nboot;");
}

}  // namespace
}  // namespace sw::engine
