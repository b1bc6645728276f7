// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0

// fs: by path through the sandbox's file system, by descriptor through the WASI table, so that
// files a program left open are part of what a snapshot keeps.

#include <algorithm>
#include <array>
#include <cmath>

#include "base/pieces.h"
#include "engine/javascript/guest.h"
#include "engine/javascript/host_api.h"
#include "engine/javascript/text.h"
#include "wasi/calls.h"
#include "wasi/descriptors.h"

namespace sw::engine::javascript {

namespace {

using wasi::Errno;
using wasi::Follow;

// Flags of open, as Linux numbers them; the driver speaks these.
constexpr std::int64_t kWriteOnly = 1;
constexpr std::int64_t kReadWrite = 2;
constexpr std::int64_t kCreate = 64;
constexpr std::int64_t kExclusive = 128;
constexpr std::int64_t kTruncate = 512;
constexpr std::int64_t kAppend = 1024;
constexpr std::int64_t kDirectory = 65536;
constexpr std::int64_t kNoFollow = 131072;

/// What one host function transfers at most; more is a short read or write.
constexpr std::size_t kTransferMax = std::size_t{1} << 28;
/// Room for what is read of a file whose size is not known.
constexpr std::size_t kFirstRead = std::size_t{64} << 10;

wasi::FileSystem& files(JavaScriptGuest& guest) { return guest.wasi().files(); }

Result<std::string> path_argument(JavaScriptGuest& guest, const Arguments& arguments,
                                  std::uint32_t index) {
  SW_TRY(const std::string text, arguments.short_text(index));
  return guest.absolute(text);
}

/// As the relative functions of the file system want it; "" stays, and is no file.
std::string_view below_root(std::string_view path) {
  if (path.empty()) return path;
  path.remove_prefix(std::min(path.find_first_not_of('/'), path.size()));
  return path.empty() ? "." : path;
}

bool is_file_descriptor(double number) {
  return number >= 0 && number <= UINT32_MAX && std::floor(number) == number;
}

std::uint32_t descriptor(const Arguments& arguments) {
  return is_file_descriptor(arguments.number(0)) ? static_cast<std::uint32_t>(arguments.number(0))
                                                 : UINT32_MAX;
}

// --- whole files

/// Makes a value of a file's bytes.
using Show = Result<JsValue> (*)(JavaScriptGuest&, BytesView);

/// How much is probably left to read.
std::size_t rest_of(JavaScriptGuest& guest, std::uint32_t fd) {
  const wasi::OpenFile* const file = guest.wasi().descriptors().find(fd);
  if (file == nullptr || file->type() != wasi::FileType::kRegularFile) return 0;
  const std::uint64_t size = file->at.node->size();
  return static_cast<std::size_t>(size - std::min(size, file->position));
}

/// Shows everything from the descriptor's position to the end. It is read into the guest's memory,
/// so that its limit is the guest's.
Result<JsValue> read_rest(JavaScriptGuest& guest, std::uint32_t fd, Show show) {
  QuickJs& js = guest.js();
  // One byte more, to see the end.
  SW_TRY(auto block,
         GuestBlock::allocate(js, std::min(rest_of(guest, fd) + 1, kTransferMax) + kFirstRead));
  std::size_t size = 0;
  for (;;) {
    SW_TRY(const auto got, guest.read_descriptor(fd, block.bytes().subspan(size), std::nullopt));
    if (!got.ok()) return status(got.error());
    if (*got == 0) return show(guest, block.bytes().first(size));
    size += *got;
    if (size > kTransferMax) return status(Errno::kFbig);
    if (size < block.bytes().size()) continue;
    SW_TRY(auto larger, GuestBlock::allocate(js, 2 * size));
    std::byte* at = larger.bytes().data();
    SW_CHECK_OK(in_pieces(js.cancellation(), block.bytes(), [&](std::span<std::byte> piece) {
      at = std::ranges::copy(piece, at).out;
    }));
    block = std::move(larger);
  }
}

wasi::ErrnoOr<std::uint32_t> open_path(JavaScriptGuest& guest, std::string_view path,
                                       std::int64_t flags) {
  const std::int64_t access = flags & (kWriteOnly | kReadWrite);
  const wasi::OpenFlags open{.create = (flags & kCreate) != 0,
                             .directory = (flags & kDirectory) != 0,
                             .exclusive = (flags & kExclusive) != 0,
                             .truncate = (flags & kTruncate) != 0,
                             .write = access != 0,
                             .follow = (flags & kNoFollow) != 0 ? Follow::kNo : Follow::kYes};
  if (guest.wasi().descriptors().full()) return Errno::kMfile;
  if (path.empty()) return Errno::kNoent;
  SW_WASI_TRY(auto node, files(guest).open_at(files(guest).root(), below_root(path), open));
  auto file = std::make_shared<wasi::OpenFile>();
  wasi::Rights rights = wasi::rights::kFile;
  if (access == kWriteOnly) rights &= ~wasi::Rights{wasi::rights::kFdRead};
  if (access == 0)
    rights &= ~wasi::Rights{wasi::rights::kFdWrite | wasi::rights::kFdFilestatSetSize};
  const bool is_directory = node.node->type == wasi::FileType::kDirectory;
  file->base = is_directory ? wasi::Rights{wasi::rights::kDirectory} : rights;
  file->flags = (flags & kAppend) != 0 ? wasi::fdflags::kAppend : std::uint16_t{0};
  file->at = std::move(node);
  return guest.wasi().descriptors().insert(std::move(file));
}

/// A device has no content of its own: it is opened and read.
Result<JsValue> read_device(JavaScriptGuest& guest, std::string_view path, Show show) {
  const auto fd = open_path(guest, path, 0);
  if (!fd.ok()) return status(fd.error());
  auto value = read_rest(guest, *fd, show);
  static_cast<void>(guest.wasi().descriptors().close(*fd));
  return value;
}

Result<JsValue> read_path(JavaScriptGuest& guest, const Arguments& arguments, Show show) {
  SW_TRY(const std::string path, path_argument(guest, arguments, 0));
  const auto bytes = files(guest).read_file(path);
  if (bytes.ok()) return show(guest, bytes->bytes);
  return bytes.error() == Errno::kInval ? read_device(guest, path, show)
                                        : Result<JsValue>(status(bytes.error()));
}

Result<JsValue> text_value(JavaScriptGuest& guest, BytesView bytes) {
  return new_valid_string(guest.js(), bytes);
}

Result<JsValue> buffer_value(JavaScriptGuest& guest, BytesView bytes) {
  return guest.js().new_array_buffer(bytes);
}

Result<JsValue> read_all(JavaScriptGuest& guest, const Arguments& arguments) {
  return read_path(guest, arguments, buffer_value);
}

Result<JsValue> read_text(JavaScriptGuest& guest, const Arguments& arguments) {
  return read_path(guest, arguments, text_value);
}

Result<JsValue> read_all_fd(JavaScriptGuest& guest, const Arguments& arguments) {
  return read_rest(guest, descriptor(arguments), buffer_value);
}

Result<JsValue> read_text_fd(JavaScriptGuest& guest, const Arguments& arguments) {
  return read_rest(guest, descriptor(arguments), text_value);
}

wasi::WriteMode write_mode(std::int64_t flags) {
  if ((flags & kExclusive) != 0) return wasi::WriteMode::kCreateNew;
  return (flags & kAppend) != 0 ? wasi::WriteMode::kAppend : wasi::WriteMode::kReplace;
}

Result<JsValue> write_path(JavaScriptGuest& guest, const std::string& path, BytesView bytes,
                           std::int64_t flags) {
  SW_TRY(const Errno written,
         files(guest).write_file(path, bytes, write_mode(flags), guest.js().cancellation()));
  if (written != Errno::kInval) return status(written);
  const auto fd = open_path(guest, path, kWriteOnly);  // a device, such as /dev/stdout
  if (!fd.ok()) return status(fd.error());
  auto result = guest.write_descriptor(*fd, bytes, std::nullopt);
  static_cast<void>(guest.wasi().descriptors().close(*fd));
  SW_TRY(const auto count, std::move(result));
  return status(count.error());
}

Result<JsValue> write_text_file(JavaScriptGuest& guest, const Arguments& arguments) {
  SW_TRY(const std::string path, path_argument(guest, arguments, 0));
  SW_TRY(GuestText text, arguments.text(1));
  SW_CHECK_OK(text.replace_lone_surrogates());
  return write_path(guest, path, as_bytes(text.view()), arguments.integer(2));
}

Result<JsValue> write_data(JavaScriptGuest& guest, const Arguments& arguments) {
  SW_TRY(const std::string path, path_argument(guest, arguments, 0));
  SW_TRY(const auto bytes, arguments.bytes(1));
  return write_path(guest, path, bytes, arguments.integer(4));
}

// --- descriptors

Result<JsValue> open(JavaScriptGuest& guest, const Arguments& arguments) {
  SW_TRY(const std::string path, path_argument(guest, arguments, 0));
  const auto fd = open_path(guest, path, arguments.integer(1));
  return fd.ok() ? JsValue::number(*fd) : status(fd.error());
}

Result<JsValue> close(JavaScriptGuest& guest, const Arguments& arguments) {
  return status(guest.wasi().descriptors().close(descriptor(arguments)));
}

std::optional<std::uint64_t> position(const Arguments& arguments) {
  const std::int64_t at = arguments.integer(4);
  return at < 0 ? std::nullopt : std::optional(static_cast<std::uint64_t>(at));
}

Result<JsValue> read(JavaScriptGuest& guest, const Arguments& arguments) {
  SW_TRY(const auto bytes, arguments.bytes(1));
  SW_TRY(const auto count,
         guest.read_descriptor(descriptor(arguments), bytes, position(arguments)));
  return count.ok() ? JsValue::number(static_cast<double>(*count)) : status(count.error());
}

Result<JsValue> write_at(JavaScriptGuest& guest, const Arguments& arguments) {
  SW_TRY(const auto bytes, arguments.bytes(1));
  SW_TRY(const auto count,
         guest.write_descriptor(descriptor(arguments), bytes, position(arguments)));
  return count.ok() ? JsValue::number(static_cast<double>(*count)) : status(count.error());
}

// --- what is known about files

/// Eight numbers; the driver makes a Stats of them.
Result<JsValue> stat_value(JavaScriptGuest& guest, const wasi::Stat& stat) {
  const auto ms = [](std::uint64_t nanoseconds) { return static_cast<double>(nanoseconds) / 1e6; };
  const std::array fields = {static_cast<double>(stat.type),  static_cast<double>(stat.size),
                             ms(stat.times.modified),         ms(stat.times.accessed),
                             ms(stat.times.changed),          static_cast<double>(stat.inode),
                             static_cast<double>(stat.links), static_cast<double>(stat.device)};
  return guest.js().new_array_buffer(std::as_bytes(std::span(fields)));
}

Result<JsValue> stat(JavaScriptGuest& guest, const Arguments& arguments) {
  SW_TRY(const std::string path, path_argument(guest, arguments, 0));
  const auto found = files(guest).stat(path, arguments.boolean(1) ? Follow::kYes : Follow::kNo);
  return found.ok() ? stat_value(guest, *found) : Result<JsValue>(status(found.error()));
}

Result<JsValue> fstat(JavaScriptGuest& guest, const Arguments& arguments) {
  const auto file = guest.wasi().descriptors().get(descriptor(arguments));
  if (!file.ok()) return status(file.error());
  if ((*file)->stale) return status(Errno::kStale);
  if ((*file)->at.tree && (*file)->at.tree->disabled()) return status(Errno::kAcces);
  wasi::Stat found;
  if ((*file)->is_stream()) found.type = wasi::FileType::kCharacterDevice;
  else found = files(guest).stat_of(*(*file)->at.node, (*file)->at.mount);
  return stat_value(guest, found);
}

Result<JsValue> read_directory(JavaScriptGuest& guest, const Arguments& arguments) {
  SW_TRY(const std::string path, path_argument(guest, arguments, 0));
  const auto folder = files(guest).find_at(files(guest).root(), below_root(path), Follow::kYes);
  if (!folder.ok()) return status(folder.error());
  if (folder->node->type != wasi::FileType::kDirectory) return status(Errno::kNotdir);
  std::string listing;  // a digit for the type and the name, a NUL between entries
  Result<void> charged;
  const Errno listed =
      folder->node->directory->for_each(0, [&](std::string_view name, const auto& entry) {
        charged = guest.instance().charge(2 * (name.size() + 2));  // a string that grows doubles
        if (!charged.ok()) return false;
        if (!listing.empty()) listing += '\0';
        listing += static_cast<char>('0' + static_cast<int>(entry.node->type));
        listing += name;
        return true;
      });
  SW_CHECK_OK(charged);
  if (listed != Errno::kSuccess) return status(listed);
  return new_valid_string(guest.js(), as_bytes(listing));
}

Result<JsValue> read_link(JavaScriptGuest& guest, const Arguments& arguments) {
  SW_TRY(const std::string path, path_argument(guest, arguments, 0));
  const auto target = files(guest).read_link(path);
  if (!target.ok()) return status(target.error());
  return text_value(guest, as_bytes(*target));
}

Result<JsValue> real_path(JavaScriptGuest& guest, const Arguments& arguments) {
  SW_TRY(const std::string path, path_argument(guest, arguments, 0));
  const auto real = files(guest).real_path(path);
  if (!real.ok()) return status(real.error());
  return text_value(guest, as_bytes(*real));
}

// --- changes

Result<JsValue> make_directory(JavaScriptGuest& guest, const Arguments& arguments) {
  SW_TRY(const std::string path, path_argument(guest, arguments, 0));
  return status(files(guest).make_directory(path));
}

Result<JsValue> remove_directory(JavaScriptGuest& guest, const Arguments& arguments) {
  SW_TRY(const std::string path, path_argument(guest, arguments, 0));
  return status(files(guest).remove_directory_at(files(guest).root(), below_root(path)));
}

Result<JsValue> unlink(JavaScriptGuest& guest, const Arguments& arguments) {
  SW_TRY(const std::string path, path_argument(guest, arguments, 0));
  return status(files(guest).unlink_at(files(guest).root(), below_root(path)));
}

Result<JsValue> rename(JavaScriptGuest& guest, const Arguments& arguments) {
  SW_TRY(const std::string from, path_argument(guest, arguments, 0));
  SW_TRY(const std::string to, path_argument(guest, arguments, 1));
  return status(files(guest).rename(from, to));
}

Result<JsValue> link(JavaScriptGuest& guest, const Arguments& arguments) {
  SW_TRY(const std::string from, path_argument(guest, arguments, 0));
  SW_TRY(const std::string to, path_argument(guest, arguments, 1));
  return status(files(guest).link(from, to));
}

Result<JsValue> symlink(JavaScriptGuest& guest, const Arguments& arguments) {
  SW_TRY(const std::string target, arguments.short_text(0));
  SW_TRY(const std::string path, path_argument(guest, arguments, 1));
  return status(files(guest).symlink(without_lone_surrogates(target), path));
}

Result<JsValue> resize_descriptor(JavaScriptGuest& guest, std::uint32_t fd, std::int64_t size) {
  if (size < 0) return status(Errno::kInval);
  SW_TRY(const Errno resized,
         wasi::calls::fd_filestat_set_size(guest.wasi(), guest.js().memory(), fd,
                                           static_cast<std::uint64_t>(size)));
  return status(resized);
}

Result<JsValue> truncate(JavaScriptGuest& guest, const Arguments& arguments) {
  SW_TRY(const std::string path, path_argument(guest, arguments, 0));
  const auto fd = open_path(guest, path, kWriteOnly);
  if (!fd.ok()) return status(fd.error());
  auto resized = resize_descriptor(guest, *fd, arguments.integer(1));
  static_cast<void>(guest.wasi().descriptors().close(*fd));
  return resized;
}

Result<JsValue> truncate_descriptor(JavaScriptGuest& guest, const Arguments& arguments) {
  return resize_descriptor(guest, descriptor(arguments), arguments.integer(1));
}

std::uint64_t nanoseconds(double milliseconds) {
  const double value = std::round(milliseconds * 1e6);
  return value > 0 && value < 1.8e19 ? static_cast<std::uint64_t>(value) : 0;
}

Result<JsValue> set_times(JavaScriptGuest& guest, const Arguments& arguments) {
  SW_TRY(const std::string path, path_argument(guest, arguments, 0));
  return status(files(guest).set_file_times(path, {.accessed = nanoseconds(arguments.number(1)),
                                                   .modified = nanoseconds(arguments.number(2))}));
}

constexpr std::array kFileFunctions = {
    HostEntry{"readAll", read_all},
    HostEntry{"readText", read_text},
    HostEntry{"readAllFd", read_all_fd},
    HostEntry{"readTextFd", read_text_fd},
    HostEntry{"writeText", write_text_file},
    HostEntry{"writeData", write_data},
    HostEntry{"open", open},
    HostEntry{"close", close},
    HostEntry{"read", read},
    HostEntry{"writeAt", write_at},
    HostEntry{"stat", stat},
    HostEntry{"fstat", fstat},
    HostEntry{"readdir", read_directory},
    HostEntry{"readlink", read_link},
    HostEntry{"realpath", real_path},
    HostEntry{"mkdir", make_directory},
    HostEntry{"rmdir", remove_directory},
    HostEntry{"unlink", unlink},
    HostEntry{"rename", rename},
    HostEntry{"link", link},
    HostEntry{"symlink", symlink},
    HostEntry{"truncate", truncate},
    HostEntry{"ftruncate", truncate_descriptor},
    HostEntry{"utimes", set_times},
};

}  // namespace

std::span<const HostEntry> file_functions() { return kFileFunctions; }

}  // namespace sw::engine::javascript
