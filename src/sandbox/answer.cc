// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "sandbox/answer.h"

namespace sw::sandbox {

namespace {

ErrorCode code_of(const runtime::ErrorBody& body) {
  if (body.code == "CONTEXT_NOT_FOUND" || body.code == "FILE_NOT_FOUND") return ErrorCode::kNotFound;
  if (body.code == "NO_SPACE" || body.code == "FILE_TOO_LARGE") return ErrorCode::kLimitExceeded;
  if (body.code == "PERMISSION_DENIED" || body.code == "NOT_SUPPORTED") return ErrorCode::kPermission;
  if (body.status == 404) return ErrorCode::kNotFound;
  return body.status < 500 ? ErrorCode::kInvalidArgument : ErrorCode::kUnavailable;
}

}  // namespace

Error to_error(const Failure& failure) {
  return Error{failure.cause ? failure.cause->code : code_of(failure.body), failure.body.message, 0};
}

}  // namespace sw::sandbox
