// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "interpreter/interpreter.h"

#include <fmt/format.h>

#include <algorithm>

#include "sandbox_workers/wasi/tree_state.h"

namespace sw::interpreter {

namespace {

constexpr std::size_t kIdBytesMax = 128;

Error not_found(std::string_view id) {
  return Error{ErrorCode::kNotFound, fmt::format("Code context '{}' not found", id), 0};
}

bool is_limit(engine::Ending ending) {
  using engine::Ending;
  return ending == Ending::kTimeLimit || ending == Ending::kCancelled || ending == Ending::kResultLimit;
}

}  // namespace

namespace {

/// A version of a context's memory, for the engine.
class StoredMemory final : public engine::SnapshotSource {
 public:
  StoredMemory(snapshot::SnapshotStore& store, std::string context, const snapshot::VersionInfo& version)
      : store_(store), context_(std::move(context)), version_(version) {}

  std::uint64_t memory_bytes() const override { return version_.memory_bytes; }
  Result<BytesView> fill(std::span<std::byte> memory, BytesView base) override {
    SW_TRY(restored_, store_.restore(context_, version_.id, version_.build, base, memory));
    return BytesView(restored_->host_tables);
  }

  /// What is known to be stored of the memory, once it has been filled.
  snapshot::Live take_live() { return std::move(restored_->live); }

 private:
  snapshot::SnapshotStore& store_;
  const std::string context_;
  const snapshot::VersionInfo& version_;
  std::optional<snapshot::Restored> restored_;
};

}  // namespace

/// An interpreter kept between runs, and what is known to be stored of it.
struct Interpreter::Resident {
  std::string id;
  snapshot::Live live;
  std::unique_ptr<engine::SessionInstance> session;
  std::uint64_t bytes = 0;
};

Interpreter::Interpreter(std::shared_ptr<engine::Engine> engine, storage::ObjectStorage& storage,
                         const wasi::Clocks& clocks, const Options& options)
    : engine_(std::move(engine)), storage_(storage), clocks_(clocks), options_(options) {}
Interpreter::~Interpreter() = default;

Result<std::unique_ptr<Interpreter>> Interpreter::open(std::shared_ptr<engine::Engine> engine,
                                                       storage::ObjectStorage& storage, const wasi::Clocks& clocks,
                                                       const Options& options) {
  std::unique_ptr<Interpreter> interpreter(new Interpreter(std::move(engine), storage, clocks, options));
  SW_TRY(interpreter->snapshots_, snapshot::SnapshotStore::open(storage, options.snapshots));
  return interpreter;
}

std::int64_t Interpreter::now_ms() const { return static_cast<std::int64_t>(clocks_.realtime_ns() / 1'000'000); }

Result<ContextRow> Interpreter::context(std::string_view id) {
  std::optional<Bytes> bytes;
  SW_CHECK_OK(storage_.read([&](storage::Reader& reader) -> Result<void> {
    SW_TRY(bytes, reader.get(options_.contexts_table, id));
    return {};
  }));
  if (!bytes) return not_found(id);
  return decode_context_row(*bytes);
}

Result<std::vector<std::pair<std::string, ContextRow>>> read_contexts(storage::ObjectStorage& storage,
                                                                      storage::TableId table) {
  std::vector<std::pair<std::string, ContextRow>> found;
  SW_CHECK_OK(storage.read([&](storage::Reader& reader) {
    found.clear();
    return reader.scan(storage::Range{.table = table, .from = {}, .to = {}}, storage::Order::kAscending,
                       [&](std::string_view id, BytesView value) -> Result<storage::Scan> {
                         SW_TRY(ContextRow row, decode_context_row(value));
                         found.emplace_back(id, std::move(row));
                         return storage::Scan::kContinue;
                       });
  }));
  return found;
}

Result<std::vector<ContextInfo>> Interpreter::contexts() {
  SW_TRY(auto rows, read_contexts(storage_, options_.contexts_table));
  std::vector<ContextInfo> found;
  for (auto& [id, row] : rows) {
    const bool resident = std::ranges::any_of(residents_, [&](const auto& item) { return item->id == id; });
    found.push_back({.id = id, .row = std::move(row), .resident = resident});
  }
  return found;
}

Result<void> Interpreter::write_row(std::string_view id, const ContextRow& row, const snapshot::Also& also) {
  return storage_.transact([&](storage::Transaction& transaction) -> Result<void> {
    SW_CHECK_OK(transaction.put(options_.contexts_table, id, encode(row)));
    return also ? also(transaction) : Result<void>();
  });
}

Result<void> Interpreter::create_context(std::string_view id, std::string_view cwd) {
  if (id.empty() || id.size() > kIdBytesMax || id.find('\0') != std::string_view::npos) {
    return Error{ErrorCode::kInvalidArgument, "id must be a non-empty string of at most 128 characters", 0};
  }
  SW_TRY(const auto existing, contexts());
  if (existing.size() >= options_.contexts_max) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("Cannot create more than {} code contexts", options_.contexts_max), 0};
  }
  if (std::ranges::any_of(existing, [&](const ContextInfo& info) { return info.id == id; })) {
    return Error{ErrorCode::kInvalidArgument, fmt::format("Code context '{}' already exists", id), 0};
  }
  ContextRow row;
  row.cwd = cwd;
  row.created_ms = row.last_used_ms = now_ms();
  return write_row(id, row);
}

Result<void> Interpreter::delete_context(std::string_view id) {
  SW_TRY(const ContextRow row, context(id));
  std::erase_if(residents_, [&](const auto& item) { return item->id == id; });
  const snapshot::Also erase_row = [&](storage::Transaction& transaction) {
    return transaction.erase(options_.contexts_table, id);
  };
  if (snapshots_->has(id)) return snapshots_->remove(id, erase_row);
  return storage_.transact(erase_row);
}

Result<void> Interpreter::destroy() {
  residents_.clear();
  SW_CHECK_OK(storage_.destroy());
  SW_TRY(snapshots_, snapshot::SnapshotStore::open(storage_, options_.snapshots));
  return {};
}

// --- a run

Result<Interpreter::Found> Interpreter::boot(const std::string& id, const std::shared_ptr<Workspace>& workspace,
                                             std::string note) {
  SW_TRY(auto session, engine_->boot({.workspace = workspace}));
  SW_TRY(snapshot::Live live, snapshots_->begin(id, engine_->info().build));
  residents_.push_back(std::make_unique<Resident>(
      Resident{.id = id, .live = std::move(live), .session = std::move(session), .bytes = 0}));
  return Found{.resident = residents_.back().get(), .origin = Origin::kFresh, .note = std::move(note)};
}

Result<Interpreter::Found> Interpreter::restore(const std::string& id, const ContextRow& row,
                                                const snapshot::VersionInfo& version,
                                                const std::shared_ptr<Workspace>& workspace) {
  StoredMemory stored(*snapshots_, id, version);
  auto session = engine_->restore({.workspace = workspace}, stored);
  if (!session.ok()) return std::move(session).error().while_doing(fmt::format("restoring context '{}'", id));
  residents_.push_back(std::make_unique<Resident>(
      Resident{.id = id, .live = stored.take_live(), .session = *std::move(session), .bytes = 0}));
  Found found{.resident = residents_.back().get(), .origin = Origin::kRestored, .note = {}};
  if (row.stale()) {
    found.note = fmt::format("the memory is that of run {}; what run {} changed later could not be saved",
                             *row.saved_execution, row.executions);
  }
  return found;
}

Result<Interpreter::Found> Interpreter::ensure_resident(const std::string& id, const ContextRow& row,
                                                        const std::shared_ptr<Workspace>& workspace) {
  const auto at = std::ranges::find_if(residents_, [&](const auto& item) { return item->id == id; });
  if (at != residents_.end()) {
    std::rotate(at, at + 1, residents_.end());
    return Found{.resident = residents_.back().get(), .origin = Origin::kLive, .note = {}};
  }
  if (!snapshots_->has(id)) {
    return boot(id, workspace,
                row.executions == 0 ? "the context is new" : "no run of the context could be saved");
  }
  SW_TRY(const snapshot::VersionInfo version, snapshots_->latest(id));
  if (version.build != engine_->info().build) {
    return boot(id, workspace, fmt::format("the saved memory belongs to another build ({})", version.build));
  }
  return restore(id, row, version, workspace);
}

Result<std::optional<snapshot::SaveStats>> Interpreter::save(const std::string& id, Resident& resident,
                                                             ContextRow& row, const snapshot::Also& also) {
  SW_TRY(const engine::SessionSnapshot state, resident.session->snapshot());
  row.saved_execution = row.executions;
  row.saved_ms = now_ms();
  const snapshot::Step step{.memory = state.memory,
                            .image = state.base,
                            .changed = state.changed,
                            .host_tables = state.extra,
                            .time_ms = row.saved_ms};
  SW_TRY(snapshot::SaveStats stats,
         snapshots_->save(resident.live, step, [&](storage::Transaction& transaction) -> Result<void> {
           SW_CHECK_OK(transaction.put(options_.contexts_table, id, encode(row)));
           return also ? also(transaction) : Result<void>();
         }));
  resident.bytes = resident.live.bookkeeping_bytes();
  for (const ByteRange& range : state.changed) resident.bytes += range.end - range.begin;
  return std::optional(std::move(stats));
}

Result<ExecuteResult> Interpreter::execute(std::string_view name, const engine::RunRequest& cell,
                                           const std::shared_ptr<Workspace>& workspace, wasi::OutputSink& output,
                                           const std::function<snapshot::Also()>& make_also) {
  const std::string id(name);
  engine::RunRequest request = cell;
  request.workspace = workspace->tree();
  SW_CHECK_OK(engine::validate(request));
  ExecuteResult result;
  SW_TRY(result.row, context(id));
  const wasi::TreeState files = wasi::TreeState::of(*request.workspace);
  SW_TRY(Found found, ensure_resident(id, result.row, workspace));
  result.origin = found.origin;
  result.note = std::move(found.note);

  auto outcome = found.resident->session->execute(request, output);
  if (!outcome.ok()) {
    // The host failed in the midst of it: what the interpreter holds now is nobody's state.
    residents_.pop_back();
    (void)files.restore(*request.workspace, clocks_.realtime_ns());
    return std::move(outcome).error();
  }
  result.outcome = *std::move(outcome);
  ContextRow& row = result.row;
  ++row.executions;
  row.last_used_ms = now_ms();
  if (!result.outcome.cwd.empty()) row.cwd = result.outcome.cwd;
  if (result.outcome.error) {
    if (const auto put_back = files.restore(*request.workspace, clocks_.realtime_ns());
        put_back != wasi::Errno::kSuccess) {
      return Error{ErrorCode::kInternal, fmt::format("putting the workspace back: {}", wasi::errno_text(put_back)),
                   0};
    }
  }
  const snapshot::Also also = make_also ? make_also() : snapshot::Also();
  if (found.resident->session->can_snapshot() && !is_limit(result.outcome.ending)) {
    SW_TRY(result.saved, save(id, *found.resident, row, also));
  } else {
    SW_CHECK_OK(write_row(id, row, also));
  }
  if (found.resident->session->invalid()) residents_.pop_back();
  evict_down_to(options_.resident_bytes_max);
  return result;
}

void Interpreter::evict_down_to(std::uint64_t bytes_max) {
  std::uint64_t bytes = 0;
  for (const auto& resident : residents_) bytes += resident->bytes;
  auto end = residents_.begin();
  for (; end != residents_.end() && bytes > bytes_max; ++end) bytes -= (*end)->bytes;
  residents_.erase(residents_.begin(), end);
}

// --- versions

snapshot::Also Interpreter::rewound(const std::string& id, ContextRow row) const {
  row.saved_execution = row.executions;
  row.saved_ms = now_ms();
  return [table = options_.contexts_table, id, row](storage::Transaction& transaction) {
    return transaction.put(table, id, encode(row));
  };
}

Result<void> Interpreter::fork(std::string_view id, std::string_view new_id) {
  SW_TRY(const ContextRow row, context(id));
  SW_CHECK_OK(create_context(new_id, row.cwd));
  if (!snapshots_->has(id)) return {};
  SW_TRY(ContextRow copy, context(new_id));
  copy.executions = row.saved_execution.value_or(row.executions);
  const auto forked =
      snapshots_->fork(id, std::nullopt, new_id, now_ms(), rewound(std::string(new_id), std::move(copy)));
  if (forked.ok()) return {};
  (void)delete_context(new_id);
  return forked.error();
}

Result<void> Interpreter::undo(std::string_view id, std::uint32_t runs) {
  SW_TRY(ContextRow row, context(id));
  SW_TRY(const auto version, snapshots_->undo(id, runs, now_ms(), rewound(std::string(id), std::move(row))));
  std::erase_if(residents_, [&](const auto& item) { return item->id == id; });
  return {};
}

Result<void> Interpreter::add_checkpoint(std::string_view id, std::string_view label) {
  SW_TRY(const ContextRow row, context(id));
  SW_TRY(const auto version, snapshots_->add_checkpoint(id, label, now_ms()));
  return {};
}

Result<void> Interpreter::restore_checkpoint(std::string_view id, std::string_view label) {
  SW_TRY(ContextRow row, context(id));
  SW_TRY(const auto known, snapshots_->checkpoints(id));
  const auto found = std::ranges::find(known, label, &snapshot::CheckpointInfo::label);
  if (found == known.end()) {
    return Error{ErrorCode::kNotFound, fmt::format("context '{}' has no checkpoint '{}'", id, label), 0};
  }
  SW_TRY(const auto version,
         snapshots_->rewind(id, found->version, now_ms(), rewound(std::string(id), std::move(row))));
  std::erase_if(residents_, [&](const auto& item) { return item->id == id; });
  return {};
}

Result<std::vector<snapshot::CheckpointInfo>> Interpreter::checkpoints(std::string_view id) {
  SW_TRY(const ContextRow row, context(id));
  if (!snapshots_->has(id)) return std::vector<snapshot::CheckpointInfo>();
  return snapshots_->checkpoints(id);
}

Result<void> Interpreter::remove_checkpoint(std::string_view id, std::string_view label) {
  return snapshots_->remove_checkpoint(id, label);
}

}  // namespace sw::interpreter
