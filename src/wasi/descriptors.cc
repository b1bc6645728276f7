// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "wasi/descriptors.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace sw::wasi {

namespace {

constexpr Device kStreams[] = {Device::kStdin, Device::kStdout, Device::kStderr};

std::shared_ptr<OpenFile> open_stream(Device device) {
  auto file = std::make_shared<OpenFile>();
  file->device = device;
  file->base = rights::kStream & ~(device == Device::kStdin ? rights::kFdWrite : rights::kFdRead);
  return file;
}

}  // namespace

Errno DescriptorTable::open_standard(FileSystem& files, const std::vector<Preopen>& preopens) {
  close_all();
  slots_.reserve(8);
  for (const Device device : kStreams) slots_.push_back(open_stream(device));
  for (const Preopen& preopen : preopens) {
    const std::string path = FileSystem::normalize("/", preopen.path);
    const std::string_view below =
        path.size() == 1 ? std::string_view(".") : std::string_view(path).substr(1);
    SW_WASI_TRY(const Place place, files.find_at(files.root(), below, Follow::kYes));
    if (place.node->type != FileType::kDirectory) return Errno::kNotdir;
    auto file = std::make_shared<OpenFile>();
    file->at = files.keep(place);
    file->base = rights::kDirectory;
    file->inheriting = rights::kDirectoryInheriting;
    file->preopen = preopen.name;
    slots_.push_back(std::move(file));
  }
  open_count_ = slots_.size();
  return Errno::kSuccess;
}

void DescriptorTable::close_all() {
  slots_.clear();
  open_count_ = 0;
}

void DescriptorTable::reopen_streams() {
  if (slots_.size() < std::size(kStreams)) slots_.resize(std::size(kStreams));
  for (std::size_t i = 0; i < std::size(kStreams); ++i) {
    if (slots_[i]) continue;
    slots_[i] = open_stream(kStreams[i]);
    ++open_count_;
  }
}

bool DescriptorTable::is_kept(std::uint32_t descriptor) const {
  return descriptor >= std::size(kStreams) && descriptor - std::size(kStreams) < kept_preopens_;
}

OpenFile* DescriptorTable::find(std::uint32_t descriptor) const {
  return descriptor < slots_.size() ? slots_[descriptor].get() : nullptr;
}

ErrnoOr<std::shared_ptr<OpenFile>> DescriptorTable::get(std::uint32_t descriptor) const {
  if (!find(descriptor)) return Errno::kBadf;
  return slots_[descriptor];
}

ErrnoOr<std::uint32_t> DescriptorTable::insert(std::shared_ptr<OpenFile> file) {
  if (full()) return Errno::kMfile;
  const auto free = std::find(slots_.begin(), slots_.end(), nullptr);
  const auto number = static_cast<std::uint32_t>(free - slots_.begin());
  if (free == slots_.end()) slots_.push_back(std::move(file));
  else *free = std::move(file);
  ++open_count_;
  return number;
}

Errno DescriptorTable::close(std::uint32_t descriptor) {
  if (!find(descriptor) || is_kept(descriptor)) return Errno::kBadf;
  slots_[descriptor] = nullptr;
  --open_count_;
  return Errno::kSuccess;
}

Errno DescriptorTable::renumber(std::uint32_t from, std::uint32_t to) {
  if (!find(from) || !find(to) || is_kept(from) || is_kept(to)) return Errno::kBadf;
  if (from == to) return Errno::kSuccess;
  slots_[to] = std::exchange(slots_[from], nullptr);
  --open_count_;
  return Errno::kSuccess;
}

ErrnoOr<std::uint32_t> DescriptorTable::duplicate(std::uint32_t descriptor) {
  SW_WASI_TRY(auto file, get(descriptor));
  return insert(std::move(file));
}

}  // namespace sw::wasi
