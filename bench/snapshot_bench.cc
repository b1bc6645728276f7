// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0

// The snapshot store alone, with memories shaped like those of real guests: how many pages a small
// step (`x = 1`) dirties and changes, and by how much, was counted over sessions of both languages.
// Names: README.md.

#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include "sandbox_workers/base/files.h"
#include "snapshot/page.h"
#include "snapshot/snapshot_store.h"
#include "storage/memory/memory_storage.h"
#include "storage/sqlite/sqlite_storage.h"

namespace sw::snapshot {
namespace {

constexpr char kBuild[] = "00112233445566778899aabbccddeeff";

template <class T>
T must(Result<T> result) {
  if (result.ok()) return *std::move(result);
  fmt::print(stderr, "sw_snapshot_bench: {}\n", result.error().message);
  std::exit(1);
}

void must(const Result<void>& result) {
  if (result.ok()) return;
  fmt::print(stderr, "sw_snapshot_bench: {}\n", result.error().message);
  std::exit(1);
}

struct Shape {
  const char* name;
  std::size_t image_pages;
  std::size_t dirty_pages;    // since the memory was made
  std::size_t changed_pages;  // in one step
  std::size_t changed_bytes;  // in each of them
  std::size_t settled_bytes;  // what earlier steps left in each dirty page
  std::size_t user_pages;     // full of data that the image does not have
};
constexpr Shape kJavaScript = {"javascript", 400, 31, 9, 15, 800, 0};
constexpr Shape kPython = {"python", 10500, 350, 104, 16, 800, 0};
constexpr Shape kPython100 = {"python_100mb", 10500, 350, 104, 16, 800, 25600};

enum class Where : std::uint8_t { kMemory, kSqlite };

/// Bytes this process has handed to the kernel for files.
double bytes_written() {
  std::ifstream io("/proc/self/io");
  std::string key;
  double value = 0;
  while (io >> key >> value) {
    if (key == "wchar:") return value;
  }
  return 0;
}

class Session {
 public:
  Session(const Shape& shape, Where where) : shape_(shape) {
    if (where == Where::kSqlite) {
      folder_.emplace(
          must(TemporaryDirectory::create(std::filesystem::temp_directory_path(), "sw-bench-")));
      storage_ = must(storage::open_sqlite_storage(folder_->path(), {}));
    } else {
      storage_ = storage::open_memory_storage(disk_);
    }
    object_ = must(storage_->open({"bench", "b"}, {}));
    store_ = must(SnapshotStore::open(*object_, {}));
    image_.resize(shape.image_pages * kPageBytes);
    fill(image_, 0, image_.size());
    memory_ = image_;
    live_.emplace(must(store_->begin("c", kBuild)));
    memory_.resize(image_.size() + shape.user_pages * kPageBytes);
    fill(memory_, image_.size(), memory_.size());
    mark(shape.image_pages, shape.user_pages);
    // Dirty pages lie in groups all over the memory.
    for (std::size_t i = 0; i < shape.dirty_pages; ++i)
      pages_.push_back(i * shape.image_pages / shape.dirty_pages);
    for (const std::size_t page : pages_) {
      mark(page, 1);
      // What the session did before: in part of the page, for good.
      fill(memory_, page * kPageBytes + kPageBytes / 2,
           page * kPageBytes + kPageBytes / 2 + shape.settled_bytes);
    }
    std::ranges::sort(ranges_, {}, &ByteRange::begin);
    for (int i = 0; i < 60; ++i) step();  // as after a while
  }

  SaveStats step() {
    for (std::size_t i = 0; i < shape_.changed_pages; ++i) {
      std::byte* const counters = memory_.data() + pages_[i] * kPageBytes + 8 * (pages_[i] % 100);
      for (std::size_t j = 0; j < shape_.changed_bytes; ++j)
        counters[4 * j] = static_cast<std::byte>(random_());
    }
    return must(store_->save(*live_, must(live_->encode({.memory = SpanPageSource(memory_),
                                                         .image = image_,
                                                         .changed = ranges_,
                                                         .host_tables = tables_,
                                                         .time_ms = ++time_}))));
  }

  Restored restore(Bytes& memory) {
    const VersionInfo newest = must(store_->latest("c"));
    SpanPageSink pages(memory);
    return must(store_->restore("c", newest.id, kBuild, image_, pages));
  }
  Bytes fresh_memory() const {
    Bytes memory = image_;
    memory.resize(memory_.size());
    return memory;
  }
  SnapshotStore& store() { return *store_; }

 private:
  void fill(Bytes& bytes, std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; i += 8) bytes[i] = static_cast<std::byte>(random_());
  }
  void mark(std::size_t page, std::size_t count) {
    if (count > 0) ranges_.push_back({page * kPageBytes, (page + count) * kPageBytes});
  }

  Shape shape_;
  std::mt19937 random_{1};
  std::optional<TemporaryDirectory> folder_;
  storage::MemoryDisk disk_;
  std::unique_ptr<storage::Storage> storage_;
  std::unique_ptr<storage::ObjectStorage> object_;
  std::unique_ptr<SnapshotStore> store_;
  Bytes image_;
  Bytes memory_;
  Bytes tables_ = Bytes(300, std::byte{1});
  std::optional<LiveMemory> live_;
  std::vector<std::size_t> pages_;
  std::vector<ByteRange> ranges_;
  std::int64_t time_ = 0;
};

void save(benchmark::State& state, const Shape& shape, Where where) {
  Session session(shape, where);
  const double written = bytes_written();
  double in_packs = 0;
  for (auto _ : state) in_packs += static_cast<double>(session.step().bytes_written);
  const auto steps = static_cast<double>(state.iterations());
  state.counters["pack_bytes"] = in_packs / steps;
  if (where == Where::kSqlite) state.counters["file_bytes"] = (bytes_written() - written) / steps;
}

void restore(benchmark::State& state, const Shape& shape, Where where) {
  Session session(shape, where);
  double packs = 0;
  for (auto _ : state) {
    Bytes memory = session.fresh_memory();
    const auto begin = std::chrono::steady_clock::now();
    const Restored restored = session.restore(memory);
    state.SetIterationTime(
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
    packs = static_cast<double>(restored.packs_read);
  }
  state.counters["packs_read"] = packs;
}

/// Steps of a session that has done `steps` before: each costs what it costs in a young one.
void save_after(benchmark::State& state, const Shape& shape, int steps) {
  Session session(shape, Where::kSqlite);
  for (int i = 60; i < steps; ++i) session.step();
  const double written = bytes_written();
  double in_packs = 0;
  for (auto _ : state) in_packs += static_cast<double>(session.step().bytes_written);
  const auto measured = static_cast<double>(state.iterations());
  state.counters["pack_bytes"] = in_packs / measured;
  state.counters["file_bytes"] = (bytes_written() - written) / measured;
  const StorageUsage usage = must(session.store().usage("c"));
  state.counters["packs"] = static_cast<double>(usage.packs);
  state.counters["stored_bytes"] = static_cast<double>(usage.bytes);
  state.counters["kept"] = static_cast<double>(must(session.store().history("c")).size());
}

void fork(benchmark::State& state, const Shape& shape, Where where) {
  Session session(shape, where);
  int forks = 0;
  for (auto _ : state) must(session.store().fork("c", {}, "f" + std::to_string(++forks), 0));
}

/// Reads a small object that has so many checkpoints, all of which are kept: each of its rows, and one
/// that is not there.
void read_after_checkpoints(benchmark::State& state, int checkpoints) {
  constexpr int kRows = 20;
  const TemporaryDirectory folder =
      must(TemporaryDirectory::create(std::filesystem::temp_directory_path(), "sw-bench-"));
  auto storage = must(storage::open_sqlite_storage(folder.path(), {.journal_bytes_left = 0}));
  const storage::ObjectName name{"bench", "b"};
  for (int i = 0; i < std::max(checkpoints, kRows); ++i) {
    const auto object = must(storage->open(name, {}));
    must(object->transact([&](storage::Transaction& transaction) {
      return transaction.put(1, std::to_string(i % kRows), Bytes(100));
    }));
    if (i >= checkpoints) continue;
    must(storage->change({.copies = {{.from = name, .to = {"kept", std::to_string(i)}}}}));
  }
  // Everything is in databases then, and merges that are under way have ended.
  storage.reset();
  storage = must(storage::open_sqlite_storage(folder.path(), {}));
  const auto object = must(storage->open(name, {}));
  for (auto _ : state) {
    must(object->read([](storage::Reader& reader) -> Result<void> {
      for (int i = 0; i <= kRows; ++i) {
        SW_TRY(const auto row, reader.get(1, std::to_string(i)));
        benchmark::DoNotOptimize(row);
      }
      return {};
    }));
  }
}

void register_all() {
  for (const int checkpoints : {0, 1000}) {
    benchmark::RegisterBenchmark(
        fmt::format("storage/read_after_checkpoints/{}", checkpoints).c_str(),
        [=](benchmark::State& state) { read_after_checkpoints(state, checkpoints); })
        ->Unit(benchmark::kMicrosecond);
  }
  for (const Shape& shape : {kJavaScript, kPython, kPython100}) {
    for (const Where where : {Where::kMemory, Where::kSqlite}) {
      const std::string name =
          fmt::format("{}/{}", shape.name, where == Where::kMemory ? "memory" : "sqlite");
      const auto add = [&](const char* what, auto function) {
        return benchmark::RegisterBenchmark(
                   fmt::format("snapshot/{}/{}", what, name).c_str(),
                   [=](benchmark::State& state) { function(state, shape, where); })
            ->Unit(benchmark::kMicrosecond);
      };
      add("save", save)->UseRealTime();
      add("restore", restore)->UseManualTime();
      add("fork", fork)->UseRealTime();
    }
    for (const int steps : {60, 200, 1000, 2000}) {
      benchmark::RegisterBenchmark(
          fmt::format("snapshot/save_after/{}/{}", shape.name, steps).c_str(),
          [=](benchmark::State& state) { save_after(state, shape, steps); })
          ->Unit(benchmark::kMicrosecond)
          ->Iterations(200)
          ->UseRealTime();
    }
  }
}

}  // namespace
}  // namespace sw::snapshot

int main(int argc, char** argv) {
  sw::snapshot::register_all();
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
