// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "protocol/messages.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json.hpp>

namespace sw::protocol {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;

constexpr std::int64_t kNow = 1'700'000'000'123;

Request request_of(std::string body, Headers headers = {}) {
  return {.method = "POST", .path = "/", .headers = std::move(headers), .body = std::move(body)};
}

std::string refusal(const Request& request, std::size_t bytes_max = kBodyBytesMax) {
  const auto object = read_object(request, bytes_max);
  return object.ok() ? ""
                     : std::to_string(info_of(object.error().code).http_status) + " " +
                           object.error().message;
}

TEST(IsoTime, HasMillisecondsAndAZ) {
  EXPECT_EQ(iso_time(kNow), "2023-11-14T22:13:20.123Z");
  EXPECT_EQ(iso_time(0), "1970-01-01T00:00:00.000Z");
  EXPECT_EQ(iso_time(-1), "1969-12-31T23:59:59.999Z");
  EXPECT_THAT(iso_time(INT64_MIN), EndsWith("16:47:04.192Z"));
  EXPECT_THAT(iso_time(INT64_MAX), EndsWith("07:12:55.807Z"));
}

TEST(Errors, GoOutWithAllTheirFieldsAndComeBack) {
  Error error = context_not_found("c");
  error.context.emplace("maxSize", "5");
  error.context.emplace("operation", "file.read");
  const Response response = error_response(error, kNow);
  EXPECT_EQ(response.status, 404);
  EXPECT_EQ(find_header(response.headers, "Cache-Control"), "no-store");
  EXPECT_EQ(
      response.body,
      R"({"code":"CONTEXT_NOT_FOUND","message":"Code context 'c' not found","context":{"contextId":"c",)"
      R"("maxSize":5,"operation":"file.read"},"httpStatus":404,"timestamp":"2023-11-14T22:13:20.123Z","operation":"file.read"})");
  const Error back = parse_error(response);
  EXPECT_EQ(back.code, error.code);
  EXPECT_EQ(back.message, error.message);
  EXPECT_EQ(back.context, error.context);
}

TEST(Errors, OfOthersThanTheProtocolsAreInternal) {
  const Error error = parse_error({.status = 503, .headers = {}, .body = "<html>"});
  EXPECT_EQ(error.code, ErrorCode::kUnreachable);
  EXPECT_THAT(error.message, HasSubstr("HTTP 503"));
}

TEST(Bodies, AreObjectsOfALimitedSize) {
  EXPECT_EQ(refusal(request_of("{}")), "");
  EXPECT_EQ(refusal(request_of("{")), "400 Invalid JSON");
  EXPECT_EQ(refusal(request_of("")), "400 Invalid JSON");
  EXPECT_EQ(refusal(request_of("[1]")), "400 Expected an object");
  EXPECT_EQ(refusal(request_of("null")), "400 Expected an object");
  EXPECT_EQ(refusal(request_of("{}", {{"Content-Length", "98305"}})), "413 Request too large");
  EXPECT_EQ(refusal(request_of("{}   "), 4), "413 Request too large") << "also without a header";
}

TEST(Code, IsNeitherBlankNorTooLong) {
  EXPECT_TRUE(check_code("1").ok());
  EXPECT_EQ(check_code(" \n\t").error().message, "Non-empty code is required");
  EXPECT_TRUE(check_code(std::string(65536, 'x')).ok());
  EXPECT_EQ(check_code(std::string(65537, 'x')).error().code, ErrorCode::kRequestTooLarge);
  EXPECT_EQ(check_code(std::string(65537, 'x')).error().message, "Code exceeds 64 KiB");
}

TEST(PercentEncoding, GoesBothWays) {
  EXPECT_EQ(percent_decoded("a%20b%2Fc%C3%BC"), "a b/c\xc3\xbc");
  EXPECT_EQ(percent_encoded("a b/c\xc3\xbc"), "a%20b%2Fc%C3%BC");
  EXPECT_EQ(percent_decoded("%zz%4"), "%zz%4");
}

TEST(Snapshots, GoOutAndComeBack) {
  const SnapshotInfo snapshot{.build = "b",
                              .pages = 1,
                              .bytes = 4096,
                              .stored_bytes = 100,
                              .taken_at_ms = kNow,
                              .stale = true};
  const auto back = parse_snapshot(to_json(snapshot));
  ASSERT_TRUE(back);
  EXPECT_EQ(to_json(*back), to_json(snapshot));
  EXPECT_FALSE(parse_snapshot(nullptr));
}

}  // namespace
}  // namespace sw::protocol
