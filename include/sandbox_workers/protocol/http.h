// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// A request and a response as Workers see them, whatever carried them: a call in this process, a
// socket, a test.

#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sw::protocol {

/// In order of arrival. Names compare without regard to case.
using Headers = std::vector<std::pair<std::string, std::string>>;

/// The first header of that name.
std::optional<std::string_view> find_header(const Headers& headers, std::string_view name);

struct Request {  // what a Worker is asked
  std::string method = "GET";
  std::string path = "/";  ///< without a query
  Headers headers = {};
  std::string body = {};
  /// Ends what the request started: nobody waits for the answer any more
  std::stop_token cancel = {};
};

struct Response {  // what it answers
  int status = 200;
  Headers headers = {};
  std::string body = {};
};

}  // namespace sw::protocol
