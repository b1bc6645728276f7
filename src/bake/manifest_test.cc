// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "sandbox_workers/bake/manifest.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace sw::bake {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr std::string_view kFetched = R"({
  "language": "toy", "name": "Toy", "engine": "Toy 1 of npm",
                           "version" : "1",
                           "licence" : "MIT",
                           "package"
    : {
      "registry" : "npm",
      "name" : "toy",
      "version" : "1.0.0",
      "file" : "toy.tgz",
      "sha256" : "ab",
      "files" : [ {"member" : "package/toy.wasm", "name" : "toy.wasm", "sha256" : "cd"} ]
    },
                           "module" : "toy.wasm",
                           "drivers" : ["driver.toy"],
                           "aliases" : ["t"],
                           "extensions" : [".toy"],
                           "memory_bytes_max" : 1048576
})";

constexpr std::string_view kBuilt = R"({
  "language": "toy", "name": "Toy", "engine": "Toy 1", "version": "1", "licence": "MIT",
  "package": {"registry": "source", "name": "toy", "version": "1", "file": "toy/build.py",
    "files": [{"name": "toy.wasm"}, {"name": "lib.zip"}]},
  "module": "toy.wasm", "drivers": [], "memory_bytes_max": 1})";

std::optional<std::string> any_file(std::string_view name) {
  return "content of " + std::string(name);
}

Result<Manifest> parse_built_by(std::string program) {
  return parse_manifest(kBuilt, any_file, [&](std::string_view) {
    return std::vector<DriverFile>{{"toy/build.py", program}};
  });
}

TEST(Manifest, SaysWhatIsFetchedAndWhatIsAddedToIt) {
  const Manifest manifest = parse_manifest(kFetched, any_file).value();
  EXPECT_EQ(manifest.package.sha256, "ab");
  EXPECT_EQ(manifest.package.files[0].member, "package/toy.wasm");
  EXPECT_EQ(manifest.drivers[0].content, "content of driver.toy");
  EXPECT_THAT(manifest.aliases, ElementsAre("t"));
  EXPECT_TRUE(manifest.imports.empty());
  EXPECT_EQ(manifest.memory_bytes_max, 1048576U);
}

TEST(Manifest, ABuildFromSourceIsNamedByWhatItIsMadeOf) {
  const Manifest one = parse_built_by("1").value();
  const Manifest same = parse_built_by("1").value();
  const Manifest other = parse_built_by("2").value();
  EXPECT_EQ(one.package.sha256, same.package.sha256);
  EXPECT_EQ(one.package.files[0].sha256, same.package.files[0].sha256);
  EXPECT_NE(one.package.files[0].sha256, other.package.files[0].sha256);
  EXPECT_NE(one.package.files[0].sha256, one.package.files[1].sha256);
}

TEST(Manifest, ABuildFromSourceNeedsItsProgram) {
  EXPECT_FALSE(parse_manifest(kBuilt, any_file).ok());
  const auto nothing = [](std::string_view) { return std::vector<DriverFile>(); };
  EXPECT_THAT(parse_manifest(kBuilt, any_file, nothing).error().message,
              HasSubstr("no build files for 'toy'"));
}

TEST(Manifest, AMissingFieldOrDriverIsAnError) {
  const auto no_files = [](std::string_view) { return std::optional<std::string>(); };
  for (const char* text : {"{}", "[]", "", R"({"language": 1})"})
    EXPECT_EQ(parse_manifest(text, no_files).error().code, ErrorCode::kInvalidArgument) << text;
  EXPECT_THAT(parse_manifest(kFetched, no_files).error().message,
              HasSubstr("no file 'driver.toy'"));
}

}  // namespace
}  // namespace sw::bake
