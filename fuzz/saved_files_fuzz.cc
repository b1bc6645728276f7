// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0

// What a snapshot says of open files and of /tmp. It comes from a disk.

#include "engine/saved_host.h"
#include "fuzz/fuzz.h"
#include "wasi/descriptors.h"
#include "wasi/test_clocks.h"
#include "wasi/tree_check.h"
#include "wasi/tree_state.h"

namespace sw::fuzz {
namespace {

using wasi::Errno;

constexpr wasi::TreeLimits kLimits{
    .file_bytes_max = 3000, .tree_bytes_max = 8000, .entries_max = 30, .depth_max = 5};

struct Host {
  Host() : files(wasi::standard_layout().build(), clocks, kLimits), table(20) {
    files.mount(wasi::kWorkspaceMount, workspace);
    const bool made = files.make_directories("/workspace/d/e") == Errno::kSuccess &&
                      files.write_file("/workspace/f", as_bytes("content")) == Errno::kSuccess &&
                      files.symlink("f", "/workspace/l") == Errno::kSuccess &&
                      files.write_file("/workspace/d/g", as_bytes("g")) == Errno::kSuccess;
    require(made, "files are made");
  }
  void check() {
    for (const auto& tree : {workspace, files.mounted(wasi::kTmpMount)}) {
      const std::string fault = tree_fault(*tree, open_nodes(table, *tree));
      require(fault.empty(), "the tree is in order:", fault);
    }
  }

  wasi::FixedClocks clocks;
  std::shared_ptr<wasi::Tree> workspace = std::make_shared<wasi::Tree>(kLimits, 1);
  wasi::FileSystem files;
  wasi::DescriptorTable table;
};

void restore_tmp(Host& host, BytesView blob) {
  const auto state = wasi::TreeState::parse(blob);
  if (!state.ok()) return;
  const Bytes saved = state->serialize();
  const auto again = wasi::TreeState::parse(saved);
  require(again.ok() && again->serialize() == saved, "what was read is written and read again");
  wasi::Tree& tree = *host.files.mounted(wasi::kTmpMount);
  if (state->restore(tree, 1) != Errno::kSuccess) return;
  require(wasi::TreeState::of(tree).changes_to(*state).empty(), "the tree is as it was saved");
}

void restore_descriptors(Host& host, BytesView blob) {
  if (!host.table.deserialize(blob, host.files).ok()) return;
  host.check();
  const Bytes saved = host.table.serialize(host.files).value();
  require(host.table.deserialize(saved, host.files).ok(),
          "what was read is written and read again");
  require(host.table.serialize(host.files).value() == saved, "as it was");
  std::size_t open = 0;
  for (std::uint32_t fd = 0; fd < 1U << 20U && open < host.table.open_count(); ++fd)
    open += host.table.find(fd) ? 1U : 0U;
  require(open == host.table.open_count(), "the count of open files is right");
  require(host.table.open_count() <= 20, "no more files are open than may be");
}

}  // namespace

SW_FUZZ(saved_files) {
  const auto saved = engine::decode_saved_host(input);
  if (!saved.ok()) return;
  require(engine::encode(*saved) == copy_of(input), "what was read is written as it was");
  Host host;
  restore_tmp(host, saved->tmp);
  host.check();
  restore_descriptors(host, saved->descriptors);
  host.check();
  host.table.close_all();
  host.check();
}

}  // namespace sw::fuzz
