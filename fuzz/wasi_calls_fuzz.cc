// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0

// A guest that calls any of WASI's functions with anything, over a memory of its own. Host memory
// stays untouched (AddressSanitizer watches the edges), limits hold, and the trees are in order.

#include "fuzz/fuzz.h"
#include "sandbox_workers/base/cancellation.h"
#include "wasi/calls.h"
#include "wasi/test_clocks.h"
#include "wasi/tree_check.h"
#include "wasi/tree_state.h"

namespace sw::fuzz {
namespace {

using wasi::Errno;
using wasi::Wasi;
using wasm::MemoryView;

constexpr std::size_t kMemoryBytes = 8192;
constexpr std::uint32_t kPaths = 1024;
constexpr std::uint32_t kBuffers = 2048;
constexpr std::uint32_t kData = 3072;
constexpr int kCallsMax = 200;
constexpr wasi::TreeLimits kLimits{
    .file_bytes_max = 3000, .tree_bytes_max = 8000, .entries_max = 30, .depth_max = 5};

template <class R, class... A, std::size_t... I>
Result<Errno> call_with(R (*function)(Wasi&, const MemoryView&, A...), Wasi& wasi,
                        const MemoryView& memory, const std::uint64_t* arguments,
                        std::index_sequence<I...> /*numbers*/) {
  return function(wasi, memory, static_cast<A>(arguments[I])...);
}

template <class F>
struct ArityOf;
template <class R, class... A>
struct ArityOf<R (*)(Wasi&, const MemoryView&, A...)> {
  static constexpr std::size_t value = sizeof...(A);
};

template <auto function>
Result<Errno> call(Wasi& wasi, const MemoryView& memory, const std::uint64_t* arguments) {
  return call_with(function, wasi, memory, arguments,
                   std::make_index_sequence<ArityOf<decltype(function)>::value>());
}

struct Function {
  Result<Errno> (*call)(Wasi&, const MemoryView&, const std::uint64_t*);
  std::size_t arguments;
};

#define SW_CALL(name) \
  Function { &call<&wasi::calls::name>, ArityOf<decltype(&wasi::calls::name)>::value }
constexpr Function kFunctions[] = {SW_CALL(args_get),
                                   SW_CALL(args_sizes_get),
                                   SW_CALL(clock_res_get),
                                   SW_CALL(clock_time_get),
                                   SW_CALL(environ_get),
                                   SW_CALL(environ_sizes_get),
                                   SW_CALL(fd_advise),
                                   SW_CALL(fd_allocate),
                                   SW_CALL(fd_close),
                                   SW_CALL(fd_datasync),
                                   SW_CALL(fd_fdstat_get),
                                   SW_CALL(fd_fdstat_set_flags),
                                   SW_CALL(fd_filestat_get),
                                   SW_CALL(fd_filestat_set_size),
                                   SW_CALL(fd_fdstat_set_rights),
                                   SW_CALL(fd_pread),
                                   SW_CALL(fd_filestat_set_times),
                                   SW_CALL(fd_prestat_dir_name),
                                   SW_CALL(fd_prestat_get),
                                   SW_CALL(fd_pwrite),
                                   SW_CALL(fd_read),
                                   SW_CALL(fd_readdir),
                                   SW_CALL(fd_renumber),
                                   SW_CALL(fd_seek),
                                   SW_CALL(fd_sync),
                                   SW_CALL(fd_tell),
                                   SW_CALL(fd_write),
                                   SW_CALL(path_filestat_get),
                                   SW_CALL(path_create_directory),
                                   SW_CALL(path_filestat_set_times),
                                   SW_CALL(path_link),
                                   SW_CALL(path_open),
                                   SW_CALL(path_readlink),
                                   SW_CALL(path_rename),
                                   SW_CALL(path_remove_directory),
                                   SW_CALL(path_symlink),
                                   SW_CALL(poll_oneoff),
                                   SW_CALL(path_unlink_file),
                                   SW_CALL(proc_raise),
                                   SW_CALL(random_get),
                                   SW_CALL(sched_yield),
                                   SW_CALL(sock_accept),
                                   SW_CALL(sock_recv),
                                   SW_CALL(sock_send),
                                   SW_CALL(sock_shutdown)};
#undef SW_CALL

/// Mostly what makes sense somewhere: descriptors, small flags, addresses of paths and buffers,
/// lengths of names.
std::uint64_t argument(Choices& choices) {
  switch (choices.below(10)) {
    case 0: return choices.below(24);
    case 1: return 3;
    case 2:
    case 3: return kPaths + 16 * choices.below(32);
    case 4: return kBuffers + 8 * choices.below(4);
    case 5: return kData + choices.below(100);
    case 6: return 1 + choices.below(14);
    case 7: return kMemoryBytes - choices.below(70);
    case 8: return ~std::uint64_t{0} >> choices.below(64);
    default: return choices.any_number();
  }
}

struct Guest {
  Guest()
      : wasi(wasi::standard_layout().build(), clocks, {.tmp_limits = kLimits}),
        memory(kMemoryBytes) {
    cancellation = Cancellation::create().value();
    wasi::RunOptions run;
    run.args = {"prog", "a"};
    run.env = {"K=V"};
    run.workspace = workspace;
    run.output = &output;
    run.cancellation = cancellation.get();
    run.limits = {.open_files_max = 20, .output_bytes_max = 1000};
    require(wasi.start_run(std::move(run)).ok(), "a run starts");
    put_paths();
    poke(kBuffers, kData);
    poke(kBuffers + 4, 40);
  }

  void poke(std::uint32_t address, std::uint32_t value) { (void)view().store(address, value); }
  void put(std::uint32_t address, BytesView bytes) {
    const auto to = view().range(address, bytes.size());
    if (to) std::ranges::copy(bytes, to->begin());
  }
  void put_paths() {
    static constexpr const char* kTexts[] = {
        "workspace/a", "workspace/b/", "tmp/x",     ".",
        "..",          "dev/null",     "a",         "b",
        "workspace",   "a/../b",       "tmp/x/y",   "tmp/x/../y",
        "dev/zero",    "workspace/b",  "c",         "/",
        "tmp",         "tmp/l",        "../tmp/x",  "l",
        "l/..",        "dev/stdin",    "dev/stdout"};
    for (std::uint32_t i = 0; i < std::size(kTexts); ++i) put(kPaths + 16 * i, as_bytes(kTexts[i]));
  }
  MemoryView view() { return MemoryView(memory); }

  void check(const wasi::Tree& tree) {
    const std::string fault = tree_fault(tree, open_nodes(wasi.descriptors(), tree));
    require(fault.empty(), "the tree is in order:", fault);
  }
  void check_all() {
    check(*workspace);
    check(*wasi.files().mounted(wasi::kTmpMount));
  }

  wasi::FixedClocks clocks;
  wasi::BufferSink output;
  std::shared_ptr<wasi::Tree> workspace = std::make_shared<wasi::Tree>(kLimits, 1);
  std::unique_ptr<Cancellation> cancellation;
  Wasi wasi;
  Bytes memory;
};

void check_saved_state(Guest& guest) {
  wasi::FileSystem& files = guest.wasi.files();
  const Bytes blob = guest.wasi.descriptors().serialize(files).value();
  require(guest.wasi.descriptors().deserialize(blob, files).ok(), "open files come back");
  require(guest.wasi.descriptors().serialize(files).value() == blob, "as they were");
  const wasi::TreeState state = wasi::TreeState::of(*guest.workspace);
  const Bytes saved = state.serialize();
  const auto back = wasi::TreeState::parse(saved);
  require(back.ok() && back->serialize() == saved, "files come back as they were");
}

}  // namespace

SW_FUZZ(wasi_calls) {
  Guest guest;
  Choices choices(input);
  for (int i = 0; i < kCallsMax && !choices.empty(); ++i) {
    const std::size_t kind = choices.below(std::size(kFunctions) + 3);
    if (kind >= std::size(kFunctions)) {
      const auto address = static_cast<std::uint32_t>(choices.number(2) % kMemoryBytes);
      guest.put(address, choices.bytes(64));
      continue;
    }
    std::uint64_t arguments[9] = {};
    for (std::size_t j = 0; j < kFunctions[kind].arguments; ++j) arguments[j] = argument(choices);
    guest.cancellation->wake();  // no call may sleep
    const auto answer = kFunctions[kind].call(guest.wasi, guest.view(), arguments);
    require(answer.ok() && static_cast<int>(*answer) <= 76, "every call is answered");
  }
  guest.check_all();
  require(guest.output.out.size() + guest.output.err.size() <= 1000, "output keeps to its limit");
  check_saved_state(guest);
  guest.check_all();
  guest.wasi.descriptors().close_all();
  guest.check_all();
}

}  // namespace sw::fuzz
