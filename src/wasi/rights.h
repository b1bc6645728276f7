// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace sw::wasi {

using Rights = std::uint64_t;

namespace rights {
inline constexpr Rights kFdDatasync = 1U << 0;
inline constexpr Rights kFdRead = 1U << 1;
inline constexpr Rights kFdSeek = 1U << 2;
inline constexpr Rights kFdFdstatSetFlags = 1U << 3;
inline constexpr Rights kFdSync = 1U << 4;
inline constexpr Rights kFdTell = 1U << 5;
inline constexpr Rights kFdWrite = 1U << 6;
inline constexpr Rights kFdAdvise = 1U << 7;
inline constexpr Rights kFdAllocate = 1U << 8;
inline constexpr Rights kPathCreateDirectory = 1U << 9;
inline constexpr Rights kPathCreateFile = 1U << 10;
inline constexpr Rights kPathLinkSource = 1U << 11;
inline constexpr Rights kPathLinkTarget = 1U << 12;
inline constexpr Rights kPathOpen = 1U << 13;
inline constexpr Rights kFdReaddir = 1U << 14;
inline constexpr Rights kPathReadlink = 1U << 15;
inline constexpr Rights kPathRenameSource = 1U << 16;
inline constexpr Rights kPathRenameTarget = 1U << 17;
inline constexpr Rights kPathFilestatGet = 1U << 18;
inline constexpr Rights kPathFilestatSetSize = 1U << 19;
inline constexpr Rights kPathFilestatSetTimes = 1U << 20;
inline constexpr Rights kFdFilestatGet = 1U << 21;
inline constexpr Rights kFdFilestatSetSize = 1U << 22;
inline constexpr Rights kFdFilestatSetTimes = 1U << 23;
inline constexpr Rights kPathSymlink = 1U << 24;
inline constexpr Rights kPathRemoveDirectory = 1U << 25;
inline constexpr Rights kPathUnlinkFile = 1U << 26;
inline constexpr Rights kPollFdReadwrite = 1U << 27;
inline constexpr Rights kSockShutdown = 1U << 28;
inline constexpr Rights kSockAccept = 1U << 29;

inline constexpr Rights kAll = (1U << 30) - 1;

/// What can be done with a file at all.
inline constexpr Rights kFile = kFdDatasync | kFdRead | kFdSeek | kFdFdstatSetFlags | kFdSync |
                                kFdTell | kFdWrite | kFdAdvise | kFdAllocate | kFdFilestatGet |
                                kFdFilestatSetSize | kFdFilestatSetTimes | kPollFdReadwrite;
/// What can be done with a directory itself. Reading it is kFdReaddir; kFdRead is not refused, so
/// that asking for it when a directory is opened works, as POSIX's O_RDONLY does.
inline constexpr Rights kDirectory =
    kFdFdstatSetFlags | kFdSync | kFdDatasync | kPathCreateDirectory | kPathCreateFile |
    kPathLinkSource | kPathLinkTarget | kPathOpen | kFdReaddir | kPathReadlink | kPathRenameSource |
    kPathRenameTarget | kPathFilestatGet | kPathFilestatSetSize | kPathFilestatSetTimes |
    kFdFilestatGet | kFdFilestatSetTimes | kPathSymlink | kPathRemoveDirectory | kPathUnlinkFile |
    kPollFdReadwrite;
inline constexpr Rights kDirectoryInheriting = kFile | kDirectory;
/// Standard streams. They cannot be sought, but say so all the same: wasi-libc takes a character
/// device that cannot be sought for a terminal, and guests then colour their output and buffer it
/// by line.
inline constexpr Rights kStream = kFdRead | kFdWrite | kFdSeek | kFdTell | kFdFdstatSetFlags |
                                  kFdSync | kFdDatasync | kFdFilestatGet | kPollFdReadwrite;
}  // namespace rights

namespace fdflags {
inline constexpr std::uint16_t kAppend = 1 << 0;
inline constexpr std::uint16_t kDsync = 1 << 1;
inline constexpr std::uint16_t kNonblock = 1 << 2;
inline constexpr std::uint16_t kRsync = 1 << 3;
inline constexpr std::uint16_t kSync = 1 << 4;
inline constexpr std::uint16_t kAll = (1 << 5) - 1;
}  // namespace fdflags

}  // namespace sw::wasi
