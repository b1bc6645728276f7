// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "sandbox_workers/wasi/create_wasi.h"

#include <utility>

#include "sandbox_workers/wasi/archive.h"
#include "sandbox_workers/wasi/layout.h"
#include "wasi/descriptors.h"

namespace sw::wasi {

namespace {

// The streams' numbers come first, then the preopens'.
constexpr std::size_t kStreamCount = 3;

}  // namespace

Result<std::unique_ptr<Wasi>> create_wasi(CreateWasiOptions options, const Clocks& clocks) {
  LayoutBuilder builder = standard_layout();
  if (options.archive)
    SW_CHECK_OK(add_archive(builder, options.archive_path, *std::move(options.archive)));
  auto wasi = std::make_unique<Wasi>(builder.build(), clocks, std::move(options.wasi));
  SW_CHECK_OK(wasi->start_run(std::move(options.run)));
  return wasi;
}

bool has_open_guest_fds(Wasi& wasi) {
  const DescriptorTable& table = wasi.descriptors();
  const std::size_t standard = kStreamCount + wasi.options().preopens.size();
  std::size_t as_at_start = 0;
  for (std::uint32_t number = 0; number < standard; ++number) {
    const OpenFile* const file = table.find(number);
    // A guest that closed a stream gets its number again with its next open.
    const bool is_standard =
        file != nullptr && (number < kStreamCount ? file->is_stream() : !file->preopen.empty());
    as_at_start += is_standard ? 1 : 0;
  }
  return table.open_count() > as_at_start;
}

}  // namespace sw::wasi
