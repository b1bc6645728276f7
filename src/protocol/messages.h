// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// What requests and responses of the protocol have in common, whoever answers them.

#include <boost/json/object.hpp>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "sandbox_workers/base/result.h"
#include "sandbox_workers/protocol/answers.h"
#include "sandbox_workers/protocol/http.h"
#include "sandbox_workers/protocol/protocol.h"

namespace sw::protocol {

/// Bytes of a request's body, except where files are sent.
inline constexpr std::size_t kBodyBytesMax = 98'304;
inline constexpr std::size_t kCodeBytesMax = 65'536;
inline constexpr std::string_view kWorkspacePath = "/workspace";

Response json_response(int status, const boost::json::value& body);
/// What `error_response` was made of; kUnreachable with what it says for anything else.
Error parse_error(const Response& response);

/// The body of a request that must be a JSON object of at most `bytes_max` bytes.
Result<boost::json::object> read_object(const Request& request,
                                        std::size_t bytes_max = kBodyBytesMax);

/// Errors: kInvalidArgument for blank code, kRequestTooLarge for more than `bytes_max`.
Result<void> check_code(std::string_view code, std::size_t bytes_max = kCodeBytesMax);

/// A part of a path as it was before it was percent-encoded.
std::string percent_decoded(std::string_view text);
/// Everything but letters, digits and -._~ as %XX.
std::string percent_encoded(std::string_view text);

boost::json::object to_json(const HistoryEntry& entry);
/// Which version a body names by `step` or `name`; that is saved now if by neither.
Result<ContextVersion> read_version(const boost::json::object& body);

boost::json::object to_json(const SnapshotInfo& snapshot);
/// Absent when it is no such thing.
std::optional<SnapshotInfo> parse_snapshot(const boost::json::value& value);

}  // namespace sw::protocol
