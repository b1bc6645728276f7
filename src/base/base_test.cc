// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sys/stat.h>
#include <cerrno>

#include <filesystem>

#include "sandbox_workers/base/files.h"
#include "sandbox_workers/base/result.h"
#include "sandbox_workers/base/sha256.h"
#include "sandbox_workers/base/utf8.h"

namespace sw {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

Result<int> half(int n) {
  if (n % 2 != 0) return Error{ErrorCode::kInvalidArgument, "odd", 0};
  return n / 2;
}

Result<int> quarter(int n) {
  SW_TRY(const int once, half(n));
  SW_TRY(const int twice, half(once));
  return twice;
}

TEST(Result, TryReturnsTheFirstError) {
  EXPECT_EQ(quarter(8).value(), 2);
  EXPECT_EQ(quarter(6).error().message, "odd");
}

TEST(Result, WhileDoingPrefixesTheMessage) {
  EXPECT_EQ((Error{ErrorCode::kCorrupt, "page 17 torn", 0}.while_doing("restoring c42").message),
            "restoring c42: page 17 torn");
}

TEST(ErrorCodes, EachRowIsThatOfItsCode) {
  EXPECT_EQ(info_of(ErrorCode::kGuestStackOverflow).code, ErrorCode::kGuestStackOverflow);
  EXPECT_EQ(info_of(ErrorCode::kFileTooLarge).protocol_name, "FILE_TOO_LARGE");
  EXPECT_EQ(info_of(ErrorCode::kFileTooLarge).http_status, 413);
  EXPECT_EQ(info_of(ErrorCode::kFileTooLarge).host_errno, EFBIG);
  EXPECT_EQ(info_of(ErrorCode::kFileTooLarge).exit_status, 2);
}

TEST(ErrorCodes, AreFoundByWhatTheProtocolSays) {
  EXPECT_EQ(find_error_code("VALIDATION_FAILED", 413), ErrorCode::kRequestTooLarge);
  EXPECT_EQ(find_error_code("VALIDATION_FAILED", 418), ErrorCode::kInvalidArgument);
  EXPECT_EQ(find_error_code("INTERNAL_ERROR", 503), ErrorCode::kUnavailable);
  EXPECT_EQ(find_error_code("INTERNAL_ERROR", 599), ErrorCode::kUnreachable);
  EXPECT_EQ(find_error_code("TEAPOT", 418), ErrorCode::kUnreachable) << "not one of us";
}

TEST(Error, OfTheHostIsNoMistakeOfTheCallers) {
  EXPECT_EQ((Error{ErrorCode::kNotFound, "no row", 0}.as_fault().code), ErrorCode::kInternal);
  EXPECT_EQ((Error{ErrorCode::kUnavailable, "disk full", 0}.as_fault().code),
            ErrorCode::kUnavailable);
}

TEST(ResultDeathTest, ReadingWhatIsNotThereEndsTheProgram) {
  EXPECT_DEATH((void)half(3).value(), "the value of a failed result was read: odd");
  EXPECT_DEATH((void)*half(3), "the value of a failed result was read: odd");
  EXPECT_DEATH((void)half(2).error(), "the error of a successful result was read");
  EXPECT_DEATH((void)Result<void>().error(), "the error of a successful result was read");
  EXPECT_DEATH((void)(Result<int, bool>(true)).value(), "the value of a failed result was read");
}

TEST(Sha256, MatchesTheStandardsVector) {
  EXPECT_EQ(sha256_hex(as_bytes("abc")),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST(Sha256, FieldsAreDelimited) {
  EXPECT_NE(Sha256().field("ab").field("c").hex(), Sha256().field("a").field("bc").hex());
}

TEST(Files, WriteReplacesAtomicallyAndLeavesNothingBehind) {
  auto folder = TemporaryDirectory::create(fs::temp_directory_path(), "sw-base-").value();
  const fs::path file = folder.path() / "f";
  ASSERT_TRUE(write_file_atomically(file, as_bytes("one")).ok());
  ASSERT_TRUE(write_file_atomically(file, as_bytes("two")).ok());
  EXPECT_EQ(read_text_file(file).value(), "two");
  EXPECT_EQ(std::distance(fs::directory_iterator(folder.path()), fs::directory_iterator()), 1);
}

TEST(Files, ReadReportsTheMissingPath) {
  const auto result = read_file("/nonexistent/x");
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().code, ErrorCode::kNotFound);
  EXPECT_THAT(result.error().message, HasSubstr("/nonexistent/x"));
}

TEST(Files, AFileWithoutAnEndIsNotReadPastTheLimit) {
  EXPECT_THAT(read_file("/dev/zero", 10'000).error().message,
              HasSubstr("the limit is 10000 bytes"));
  auto folder = TemporaryDirectory::create(fs::temp_directory_path(), "sw-base-").value();
  ASSERT_TRUE(write_file_atomically(folder.path() / "f", as_bytes("12345")).ok());
  EXPECT_EQ(read_text_file(folder.path() / "f", 5).value(), "12345");
  EXPECT_EQ(read_text_file(folder.path() / "f", 4).error().code, ErrorCode::kInvalidArgument);
}

TEST(Files, PrivateDirectoryRefusesOneOthersCanWrite) {
  auto folder = TemporaryDirectory::create(fs::temp_directory_path(), "sw-base-").value();
  const fs::path open = folder.path() / "open";
  ASSERT_TRUE(make_private_directory(open).ok());
  ASSERT_TRUE(make_private_directory(open).ok());
  ::chmod(open.c_str(), 0777);
  EXPECT_EQ(make_private_directory(open).error().code, ErrorCode::kPermission);
}

TEST(Files, TemporaryDirectoryIsDeletedWithItsContent) {
  fs::path path;
  {
    auto folder = TemporaryDirectory::create(fs::temp_directory_path(), "sw-base-").value();
    path = folder.path();
    ASSERT_TRUE(write_file_atomically(path / "f", as_bytes("x")).ok());
  }
  EXPECT_FALSE(fs::exists(path));
}

TEST(Utf8, FindsTheFirstInvalidByte) {
  EXPECT_EQ(first_invalid_utf8("aé世😀"), std::nullopt);
  EXPECT_EQ(first_invalid_utf8("ab\xff"), 2u);
  EXPECT_EQ(first_invalid_utf8("a\xed\xa0\x80"), 1u);  // a surrogate
  EXPECT_EQ(first_invalid_utf8("\xc0\xaf"), 0u);       // an overlong form
  EXPECT_EQ(first_invalid_utf8("\xf4\x90\x80\x80"), 0u);
  EXPECT_EQ(first_invalid_utf8("x\xe4\xb8"), 1u);  // cut short
}

TEST(Utf8, PiecesOfWholeSequencesAreRepairedAsTheTextIs) {
  // Every text of six bytes that matter: leads of each length, bytes that continue, ASCII.
  constexpr std::string_view kBytes = "a\x80\xbf\xc3\xe4\xf0\xff";
  std::string text(6, '\0');
  for (std::size_t number = 0; number < 7 * 7 * 7 * 7 * 7 * 7; ++number) {
    for (std::size_t i = 0, rest = number; i < 6; ++i, rest /= 7) text[i] = kBytes[rest % 7];
    const std::size_t cut = whole_utf8_sequences(text, 4);
    ASSERT_GE(cut, 1u);
    ASSERT_LE(cut, 4u);
    ASSERT_EQ(to_valid_utf8(text.substr(0, cut)) + to_valid_utf8(text.substr(cut)),
              to_valid_utf8(text))
        << number;
  }
  EXPECT_EQ(whole_utf8_sequences("abc", 4), 3u);
}

TEST(Utf8, AsciiBeforeAndAfterOtherTextIsKept) {
  const std::string ascii(37, 'x');
  EXPECT_EQ(to_valid_utf8(ascii + "é" + ascii), ascii + "é" + ascii);
  EXPECT_EQ(to_valid_utf8(ascii + "\xff" + ascii), ascii + "\uFFFD" + ascii);
  EXPECT_EQ(first_invalid_utf8(ascii + "é" + ascii + "\xff"), 2 * ascii.size() + 2);
}

TEST(Utf8, ReplacesEachMaximalInvalidPart) {
  EXPECT_EQ(to_valid_utf8("caf\xe9\n"), "caf\uFFFD\n");
  EXPECT_EQ(to_valid_utf8("\xff\xfe"), "\uFFFD\uFFFD");
  EXPECT_EQ(to_valid_utf8("\xe4\xb8x"), "\uFFFDx");
  EXPECT_EQ(to_valid_utf8("ok 世"), "ok 世");
}

}  // namespace
}  // namespace sw
