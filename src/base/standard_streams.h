// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// The standard streams of a program of ours. What cannot be printed on stdout is a failure of the
// program; what cannot be said on stderr is not, because there is nobody left to tell.

#include <fmt/format.h>

#include <string_view>
#include <utility>

#include "sandbox_workers/base/files.h"
#include "sandbox_workers/base/result.h"

namespace sw {

/// Opens /dev/null for each standard stream that the caller closed. Otherwise the next file opened,
/// an artifact or a database, would get the stream's number, and output would go into it. Each is
/// opened in the wrong direction, so that reads and writes fail as they do on a closed stream.
void occupy_standard_streams();

/// Writes all of `bytes`. Returns 0, or the errno of the write that failed.
int write_all(int fd, BytesView bytes);

/// What `fd`, a standard input, has to its end. Unlike /dev/stdin it may be a socket, as those that
/// Node gives its children are. Errors: kInvalidArgument for more than `bytes_max`.
Result<std::string> read_to_end(int fd, std::size_t bytes_max);

/// The error of a write to stdout that failed with this errno.
Error cannot_print(int errno_value);

/// Writes what stdio holds back. Fails if anything printed to stdout since the start got lost. For
/// the end of a program, and wherever it would go on for nobody.
Result<void> flush_stdout();

/// Writes to stderr, whether or not that works.
void tell(std::string_view text);

template <class... T>
void tell(fmt::format_string<T...> format, T&&... arguments) requires(sizeof...(T) > 0) {
  tell(std::string_view(fmt::format(format, std::forward<T>(arguments)...)));
}

}  // namespace sw
