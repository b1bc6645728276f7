// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "sandbox_workers/wasi/errno.h"

#include <cerrno>

namespace sw::wasi {
namespace {

struct Names {
  std::string_view name;
  std::string_view text;
};

constexpr Names kNames[] = {
#define SW_ERRNO(enumerator, name, text) {name, text},
#include "sandbox_workers/wasi/errno.def"
#undef SW_ERRNO
};
static_assert(std::size(kNames) == 77);

Names names_of(Errno error) {
  const auto index = static_cast<std::size_t>(error);
  return index < std::size(kNames) ? kNames[index] : Names{"EUNKNOWN", "unknown error"};
}

}  // namespace

std::string_view errno_name(Errno error) { return names_of(error).name; }
std::string_view errno_text(Errno error) { return names_of(error).text; }

Errno errno_from_host(int host_errno) {
  switch (host_errno) {
    case 0: return Errno::kSuccess;
    case EACCES: return Errno::kAcces;
    case EAGAIN: return Errno::kAgain;
    case EBADF: return Errno::kBadf;
    case EEXIST: return Errno::kExist;
    case EFBIG: return Errno::kFbig;
    case EINTR: return Errno::kIntr;
    case EINVAL: return Errno::kInval;
    case EISDIR: return Errno::kIsdir;
    case ELOOP: return Errno::kLoop;
    case EMFILE: return Errno::kMfile;
    case ENAMETOOLONG: return Errno::kNametoolong;
    case ENOENT: return Errno::kNoent;
    case ENOMEM: return Errno::kNomem;
    case ENOSPC: return Errno::kNospc;
    case ENOTDIR: return Errno::kNotdir;
    case ENOTEMPTY: return Errno::kNotempty;
    case EPERM: return Errno::kPerm;
    case EPIPE: return Errno::kPipe;
    case EROFS: return Errno::kRofs;
    case ESPIPE: return Errno::kSpipe;
    default: return Errno::kIo;
  }
}

}  // namespace sw::wasi
