// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "engine/python/python.h"

#include <gtest/gtest.h>

namespace sw::engine {
namespace {

TEST(Python, HasAManifestWithItsDriverEmbedded) {
  const auto language = make_python();
  ASSERT_TRUE(language.ok()) << language.error().message;
  const Manifest& manifest = (*language)->manifest();
  EXPECT_EQ(manifest.language, "python");
  ASSERT_TRUE(driver_files(manifest).ok());
  EXPECT_EQ(driver_files(manifest)->size(), manifest.drivers.size());
}

}  // namespace
}  // namespace sw::engine
