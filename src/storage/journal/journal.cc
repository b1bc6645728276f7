// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "storage/journal/journal.h"

#include <algorithm>
#include <random>
#include <utility>

namespace sw::storage {

namespace {

/// Files grow in steps, ahead of what is written: a sync of bytes within a file is cheaper than one
/// that also makes the file longer.
constexpr std::uint64_t kGrowthBytes = std::uint64_t{256} << 10U;
/// Always kept ahead, for deletions on a full disk.
constexpr std::uint64_t kReserveBytes = std::uint64_t{64} << 10U;
/// While so many runs wait for a processor, a sync waits for more commits: for so many in all, and at
/// most so long. Whoever has just been served waits longer for its next turn anyway.
constexpr std::size_t kManyWaiting = 16;
constexpr std::size_t kGatheredCommits = 12;
constexpr std::chrono::milliseconds kGatherMax{15};
/// A part of kRelaxedDelay, which is a bound.
constexpr std::chrono::milliseconds kRelaxedPause{50};
/// A file that a large commit made longer than this is cut.
constexpr std::uint64_t kKeptBytes = std::uint64_t{16} << 20U;

std::uint64_t random_number() {
  std::random_device device;
  return std::uint64_t{device()} << 32U | device();
}

}  // namespace

class Journal::Pending final : public PendingCommit {
 public:
  Pending(Journal& journal, std::shared_ptr<Fate> fate)
      : journal_(journal), fate_(std::move(fate)) {}
  Result<void> wait() override { return fate_ ? journal_.wait(*fate_) : Result<void>(); }

 private:
  Journal& journal_;
  const std::shared_ptr<Fate> fate_;  // null: it counts as done
};

// --- opening

Result<std::unique_ptr<Journal>> Journal::open(
    JournalOptions options, const std::function<void(const JournalContent&)>& recover) {
  std::unique_ptr<Journal> journal(new Journal(std::move(options)));
  SW_CHECK_OK(journal->open_files(recover));
  return journal;
}

Result<void> Journal::open_files(const std::function<void(const JournalContent&)>& recover) {
  std::array<std::optional<JournalHeader>, 2> headers;
  std::array<Bytes, 2> contents;
  for (std::size_t i = 0; i < files_.size(); ++i) {
    SW_TRY(files_[i].file, VfsFile::open(options_.paths[i], options_.vfs));
    SW_TRY(files_[i].allocated, files_[i].file->size());
    SW_TRY(contents[i], files_[i].file->read(0, static_cast<std::size_t>(files_[i].allocated)));
    SW_TRY(headers[i], decode_journal_header(contents[i]));
  }
  const auto first = [&](std::size_t i) { return headers[i] ? headers[i]->first_sequence : 0; };
  const std::size_t newer = first(1) > first(0) ? 1 : 0;
  for (const std::size_t i : {1 - newer, newer}) {
    if (!headers[i]) continue;
    const std::uint64_t acknowledged_end = i == newer ? 0 : first(newer);
    const JournalContent content = read_frames(contents[i], *headers[i], acknowledged_end);
    recover(content);
    files_[i].needed = !content.frames.empty();
    if (i == newer || !headers[newer]) {
      current_ = i;
      files_[i].end = content.end;
      header_ = *headers[i];
      next_sequence_ = std::max(next_sequence_, content.next_sequence);
    }
  }
  bytes_ = files_[current_].needed ? files_[current_].end : 0;
  return {};
}

Journal::~Journal() {
  {
    const MutexLock lock(mutex_);
    stopping_ = true;
  }
  relaxed_.notify_all();
  if (relaxed_thread_.joinable()) relaxed_thread_.join();
  (void)sync();  // those who wanted to know have waited
}

// --- commits

Result<std::unique_ptr<PendingCommit>> Journal::add(std::shared_ptr<CommitRecord> record) {
  const bool relaxed = record->durability() == Durability::kRelaxed;
  const auto fate = std::make_shared<Fate>();
  const MutexLock lock(mutex_);
  if (!record->is_valid()) return lost_ownership();
  if (broken_) {
    record->failed();
    return *broken_;
  }
  for (const CommitRecord::Part& part : record->parts()) part.layer->add(part.rows);
  queue_.push_back({std::move(record), fate});
  // To wake a thread costs more than all of this, so nobody is woken for nothing.
  if (gathering_ && has_enough()) gathered_.notify_one();
  if (relaxed && queue_.size() == 1) {
    relaxed_until_ = std::chrono::steady_clock::now() + kRelaxedPause;
    if (!relaxed_thread_.joinable()) relaxed_thread_ = std::thread([this] { write_relaxed(); });
    relaxed_.notify_one();
  }
  return std::unique_ptr<PendingCommit>(std::make_unique<Pending>(*this, relaxed ? nullptr : fate));
}

Result<void> Journal::wait(Fate& fate) {
  std::uint64_t written = 0;
  MutexLock lock(mutex_);
  while (!fate.known) {
    if (!writing_) {
      write_batch(lock);
      written = bytes_;
      continue;
    }
    fate.waited_for = true;
    lock.unlock();
    fate.told.acquire();
    if (fate.known) return fate.failure ? Result<void>(*fate.failure) : Result<void>();
    lock.lock();
  }
  lock.unlock();
  if (written != 0 && options_.on_written) options_.on_written(written);
  return fate.failure ? Result<void>(*fate.failure) : Result<void>();
}

Result<void> Journal::sync() {
  return at_rest([] {});
}

Result<void> Journal::at_rest(const std::function<void()>& look) {
  MutexLock lock(mutex_);
  while (writing_ || (!queue_.empty() && !broken_)) {
    if (writing_) resolved_.wait(lock);
    else write_batch(lock);
  }
  if (broken_) return *broken_;
  look();
  return {};
}

/// Relaxed changes that nobody else has written.
void Journal::write_relaxed() {
  MutexLock lock(mutex_);
  while (!stopping_) {
    if (writing_) {
      resolved_.wait(lock);
    } else if (queue_.empty()) {
      relaxed_.wait(lock);
    } else if (std::chrono::steady_clock::now() < relaxed_until_) {
      relaxed_.wait_until(lock, relaxed_until_);
    } else {
      write_batch(lock);
    }
  }
}

/// Whether no more commits are worth waiting for.
bool Journal::has_enough() const {
  return queue_.size() >= kGatheredCommits || options_.waiting() < kManyWaiting;
}

/// Waits for commits of others, if there are others.
void Journal::gather(MutexLock& lock) {
  if (!options_.waiting) return;
  const auto until = std::chrono::steady_clock::now() + kGatherMax;
  gathering_ = true;
  while (!has_enough()) {
    if (!gathered_.wait_until(lock, until)) break;
  }
  gathering_ = false;
}

void Journal::write_batch(MutexLock& lock) {
  writing_ = true;
  gather(lock);
  std::deque<Queued> batch = std::exchange(queue_, {});
  Attempt attempt;
  {
    const Unlocked unlocked(mutex_);
    attempt = write(batch);
  }
  writing_ = false;
  if (attempt.broken) broken_ = attempt.failure;
  for (const Queued& queued : attempt.refused) fail(queued, *attempt.failure);
  for (const Queued& queued : batch) settle(queued);
  // Those that came meanwhile may rely on what was refused.
  if (attempt.failure) {
    for (const Queued& queued : std::exchange(queue_, {})) fail(queued, *attempt.failure);
  }
  // The next batch is for one of those that wait for it.
  const auto next =
      std::ranges::find_if(queue_, [](const Queued& queued) { return queued.fate->waited_for; });
  if (next != queue_.end()) wake(*next->fate);
  resolved_.notify_all();
}

void Journal::wake(Fate& fate) {
  if (std::exchange(fate.waited_for, false)) fate.told.release();
}

void Journal::settle(const Queued& queued) {
  for (const CommitRecord::Part& part : queued.record->parts()) {
    part.layer->settle();
    if (options_.on_settled) options_.on_settled(part.layer);
  }
  queued.fate->known = true;
  wake(*queued.fate);
}

void Journal::fail(const Queued& queued, const Error& error) {
  for (const CommitRecord::Part& part : queued.record->parts()) part.layer->drop(part.rows);
  queued.record->failed();
  queued.fate->failure = error;
  queued.fate->known = true;
  wake(*queued.fate);
}

// --- the files

/// Moves what cannot be written from the batch to those refused.
Journal::Attempt Journal::write(std::deque<Queued>& batch) {
  Attempt attempt;
  if (batch.empty()) return attempt;
  const auto encode_all = [&] {
    FrameEncoder frame;
    for (const Queued& queued : batch) {
      for (const CommitRecord::Part& part : queued.record->parts())
        frame.add(part.layer->number(), *part.rows);
    }
    return frame;
  };
  FrameEncoder frame = encode_all();
  if (auto room = allocate(frame.bytes(), kReserveBytes); !room.ok()) {
    attempt.failure = room.error();
    const auto kept = std::stable_partition(batch.begin(), batch.end(), [](const Queued& queued) {
      return queued.record->frees_space();
    });
    attempt.refused.assign(kept, batch.end());
    batch.erase(kept, batch.end());
    frame = encode_all();
    if (batch.empty() || !allocate(frame.bytes(), 0).ok()) return refuse(batch, std::move(attempt));
  }
  if (auto written = write_frame(frame); !written.ok()) {
    attempt.failure = written.error();
    return refuse(batch, std::move(attempt));
  }
  // After a sync that failed nobody knows what is on the disk.
  if (auto synced = files_[current_].file->sync(); !synced.ok()) {
    attempt.failure = synced.error();
    attempt.broken = true;
    return refuse(batch, std::move(attempt));
  }
  ++next_sequence_;
  files_[current_].needed = true;
  files_[current_].end = frame_end_;
  bytes_ = frame_end_;
  return attempt;
}

Journal::Attempt Journal::refuse(std::deque<Queued>& batch, Attempt attempt) {
  std::ranges::move(batch, std::back_inserter(attempt.refused));
  batch.clear();
  return attempt;
}

/// Makes the file long enough for a frame, and for `reserve` behind it.
Result<void> Journal::allocate(std::uint64_t frame_bytes, std::uint64_t reserve) {
  File& file = files_[current_];
  const std::uint64_t begin = std::max<std::uint64_t>(file.end, kJournalHeaderBytes);
  const std::uint64_t needed = begin + frame_bytes + reserve;
  if (needed <= file.allocated) return {};
  const std::uint64_t size = (needed + kGrowthBytes - 1) / kGrowthBytes * kGrowthBytes;
  SW_CHECK_OK(file.file->write(file.allocated, Bytes(size - file.allocated)));
  file.allocated = size;
  return {};
}

Result<void> Journal::write_frame(const FrameEncoder& frame) {
  File& file = files_[current_];
  if (file.end != 0) {
    frame_end_ = file.end + frame.bytes();
    return file.file->write(file.end, frame.finish(next_sequence_, header_.salt));
  }
  header_ = {.first_sequence = next_sequence_, .salt = random_number()};
  Bytes bytes = encode(header_);
  const Bytes first = frame.finish(next_sequence_, header_.salt);
  bytes.insert(bytes.end(), first.begin(), first.end());
  frame_end_ = bytes.size();
  return file.file->write(0, bytes);
}

bool Journal::switch_files() {
  MutexLock lock(mutex_);
  while (writing_) resolved_.wait(lock);
  File& other = files_[1 - current_];
  if (other.needed) return false;
  other.end = 0;
  current_ = 1 - current_;
  bytes_ = 0;
  return true;
}

Result<void> Journal::cut() {
  File& file = files_[1 - current_];
  if (!file.needed) return {};
  // On disk before the other file is cut: were this one read again without what came later, old rows
  // would take the place of new ones.
  SW_CHECK_OK(file.file->write(0, Bytes(kJournalHeaderBytes)));
  SW_CHECK_OK(file.file->sync());
  if (file.allocated > kKeptBytes) {
    SW_CHECK_OK(file.file->truncate(kKeptBytes));
    file.allocated = kKeptBytes;
  }
  file.needed = false;
  return {};
}

}  // namespace sw::storage
