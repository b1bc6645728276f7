// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// What a sandbox answers when it cannot do what it was asked: the wire protocol's error, and what lies behind it.

#include <optional>
#include <string>
#include <utility>

#include "runtime/messages.h"
#include "sandbox_workers/base/result.h"
#include "sandbox_workers/base/value_or.h"
#include "sandbox_workers/runtime/answers.h"
#include "sandbox_workers/runtime/protocol.h"

namespace sw::sandbox {

struct Failure {
  runtime::ErrorBody body;
  std::optional<runtime::Response> relayed = {};  ///< a Worker's answer, passed on as it came
  std::optional<Error> cause = {};                ///< a fault of the host
};

template <class T>
using Answer = ValueOr<T, Failure>;

inline Failure refusal(std::string message, int status = 400) {
  return {.body = runtime::validation_failed(std::move(message), status)};
}

inline Failure host_failure(Error error) {
  runtime::ErrorBody body = runtime::error_body(error);
  return {.body = std::move(body), .cause = std::move(error)};
}

/// Takes over what a room below answered.
template <class T>
Answer<T> answer(Result<T> result) {
  if (result.ok()) return std::move(result).value();
  return host_failure(std::move(result).error());
}
inline Answer<Done> answer(Result<void> result) {
  return result.ok() ? Answer<Done>(Done{}) : host_failure(std::move(result).error());
}
template <class T>
Answer<T> answer(ValueOr<T, runtime::ErrorBody> result) {
  if (result.ok()) return std::move(result).value();
  return Failure{.body = std::move(result).error()};
}

/// For callers that know Errors only: its code is the cause's, or that of the status.
Error to_error(const Failure& failure);

}  // namespace sw::sandbox
