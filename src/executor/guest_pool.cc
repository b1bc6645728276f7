// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "executor/guest_pool.h"

#include <fmt/format.h>
#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <deque>
#include <future>
#include <list>
#include <map>
#include <optional>
#include <semaphore>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "base/thread_safety.h"

namespace sw::executor {

namespace {

/// A thread that is made while it lives takes no signals that are sent to the process: they are for
/// the program's own threads. Those that a thread's own code raises are needed to stop guests.
class NoAsynchronousSignals {
 public:
  NoAsynchronousSignals() {
    sigset_t blocked;
    ::sigfillset(&blocked);
    for (const int own : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS}) {
      ::sigdelset(&blocked, own);
    }
    ::pthread_sigmask(SIG_SETMASK, &blocked, &before_);
  }
  ~NoAsynchronousSignals() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  NoAsynchronousSignals(const NoAsynchronousSignals&) = delete;
  NoAsynchronousSignals& operator=(const NoAsynchronousSignals&) = delete;

 private:
  sigset_t before_{};
};

Error shutting_down() { return Error{ErrorCode::kUnavailable, "shutting down", 0}; }
Error cancelled() { return Error{ErrorCode::kUnavailable, "cancelled before it started", 0}; }

}  // namespace

class GuestPool::Impl {
 public:
  explicit Impl(const GuestPoolOptions& options)
      : options_(options),
        slots_(options.slots != 0 ? options.slots
                                  : std::max(1U, std::thread::hardware_concurrency())) {}
  ~Impl() { shut_down(); }

  void submit(Request request, Job job) SW_EXCLUDES(mutex_);
  GuestPoolStats stats() const SW_EXCLUDES(mutex_);
  void shut_down() SW_EXCLUDES(mutex_);

 private:
  struct Waiting {
    Request request;
    Job job;
    bool queued = false;  // guarded by the pool's mutex
    // Last: it may call as soon as it is made.
    std::optional<std::stop_callback<std::function<void()>>> on_cancel;
  };
  using WaitingPtr = std::shared_ptr<Waiting>;  // shared by the queue, its callback and its thread

  /// A thread, and the slot of the guest on it.
  struct Guest final : Slot {
    explicit Guest(Impl& owner) : pool(owner) {}
    void on_wait() override {
      if (!released) pool.pause();
    }
    void on_resume() override {
      if (!released) pool.resume(*this);
    }
    void release() override {
      if (!std::exchange(released, true)) pool.pause();
    }

    Impl& pool;
    pthread_t thread = {};
    WaitingPtr job;                    // to run; null: the thread ends
    bool released = false;             // its job has no slot any more; the thread's own
    std::binary_semaphore go{0};       // released when there is a job
    std::binary_semaphore compute{0};  // released when a guest that has waited may go on
  };
  using Guests = std::list<Guest>;

  void enqueue(const WaitingPtr& waiting) SW_REQUIRES(mutex_);
  void remove(Waiting& waiting) SW_REQUIRES(mutex_);
  Error take_back(Waiting& waiting) SW_REQUIRES(mutex_);
  void cancel(const WaitingPtr& waiting) SW_EXCLUDES(mutex_);
  void dispatch() SW_REQUIRES(mutex_);
  WaitingPtr take_next() SW_REQUIRES(mutex_);
  void untake(const WaitingPtr& waiting) SW_REQUIRES(mutex_);
  void leave(const Request& request) SW_REQUIRES(mutex_);
  bool fits(const Request& request) const SW_REQUIRES(mutex_);
  Guest* idle_guest() SW_REQUIRES(mutex_);
  bool start_thread(Guest& guest);
  static void* thread_main(void* guest);
  void work(Guest& guest) SW_EXCLUDES(mutex_);
  WaitingPtr finished(Guest& guest, const Request& request) SW_EXCLUDES(mutex_);
  void pause() SW_EXCLUDES(mutex_);
  void resume(Guest& guest) SW_EXCLUDES(mutex_);
  std::vector<WaitingPtr> take_all() SW_REQUIRES(mutex_);

  const GuestPoolOptions options_;
  const std::size_t slots_;

  mutable Mutex mutex_;
  CondVar quiet_;
  // By owner; none is empty.
  std::map<std::string, std::deque<WaitingPtr>> queues_ SW_GUARDED_BY(mutex_);
  // The owners with a queue, who is next first.
  std::deque<std::string> rotation_ SW_GUARDED_BY(mutex_);
  std::size_t queued_ SW_GUARDED_BY(mutex_) = 0;
  std::set<std::string> turns_ SW_GUARDED_BY(mutex_);  // in progress
  // Guests that have waited and want a slot, longest first.
  std::deque<Guest*> resuming_ SW_GUARDED_BY(mutex_);
  std::size_t computing_ SW_GUARDED_BY(mutex_) = 0;
  std::size_t in_progress_ SW_GUARDED_BY(mutex_) = 0;
  std::uint64_t memory_ SW_GUARDED_BY(mutex_) = 0;  // of those in progress
  Guests guests_ SW_GUARDED_BY(mutex_);
  // Threads without a job; the last one was used last.
  std::vector<Guest*> idle_ SW_GUARDED_BY(mutex_);
  bool accepting_ SW_GUARDED_BY(mutex_) = true;
};

void GuestPool::Impl::submit(Request request, Job job) {
  const auto waiting = std::make_shared<Waiting>();
  waiting->request = std::move(request);
  waiting->job = std::move(job);
  if (waiting->request.cancel.stop_possible()) {
    const std::weak_ptr<Waiting> weak = waiting;
    waiting->on_cancel.emplace(waiting->request.cancel, [this, weak] {
      if (const WaitingPtr held = weak.lock()) cancel(held);
    });
  }
  std::optional<Error> refused;
  {
    const MutexLock lock(mutex_);
    if (!accepting_) {
      refused = shutting_down();
    } else if (queued_ >= options_.queue_max) {
      refused = Error{ErrorCode::kLimitExceeded, fmt::format("{} runs are waiting", queued_), 0};
    } else if (waiting->request.cancel.stop_requested()) {
      refused = cancelled();
    } else {
      enqueue(waiting);
      dispatch();
      if (guests_.empty()) refused = take_back(*waiting);
    }
  }
  if (refused) waiting->job(*std::move(refused));
}

void GuestPool::Impl::enqueue(const WaitingPtr& waiting) {
  auto& queue = queues_[waiting->request.owner];
  if (queue.empty()) rotation_.push_back(waiting->request.owner);
  queue.push_back(waiting);
  waiting->queued = true;
  ++queued_;
}

/// There is no thread that could ever begin the job.
Error GuestPool::Impl::take_back(Waiting& waiting) {
  remove(waiting);
  return Error{ErrorCode::kUnavailable, "cannot start a thread with a stack for guests", 0};
}

void GuestPool::Impl::remove(Waiting& waiting) {
  const auto queue = queues_.find(waiting.request.owner);
  std::erase_if(queue->second, [&](const WaitingPtr& one) { return one.get() == &waiting; });
  if (queue->second.empty()) {
    std::erase(rotation_, waiting.request.owner);
    queues_.erase(queue);
  }
  waiting.queued = false;
  --queued_;
}

void GuestPool::Impl::cancel(const WaitingPtr& waiting) {
  {
    const MutexLock lock(mutex_);
    if (!waiting->queued) return;  // it has begun, or is about to be refused
    remove(*waiting);
  }
  waiting->job(cancelled());
}

/// Gives free slots away: first to guests that have waited, then to the next jobs.
void GuestPool::Impl::dispatch() {
  while (computing_ < slots_) {
    if (!resuming_.empty()) {
      ++computing_;
      resuming_.front()->compute.release();
      resuming_.pop_front();
      continue;
    }
    WaitingPtr next = take_next();
    if (!next) return;
    Guest* const guest = idle_guest();
    if (!guest) return untake(next);  // the next guest that ends begins it
    guest->job = std::move(next);
    guest->go.release();
  }
}

/// The next job that may begin, which is in progress from now on; null: none may.
GuestPool::Impl::WaitingPtr GuestPool::Impl::take_next() {
  if (in_progress_ >= options_.guests_max) return nullptr;
  for (std::size_t i = 0; i < rotation_.size(); ++i) {
    std::deque<WaitingPtr>& queue = queues_.at(rotation_[i]);
    const auto free =
        std::ranges::find_if(queue, [this](const WaitingPtr& one) SW_REQUIRES(mutex_) {
          return one->request.turn.empty() || !turns_.contains(one->request.turn);
        });
    if (free == queue.end()) continue;
    WaitingPtr next = *free;
    // Smaller ones behind it wait as well, or it would wait for ever.
    if (!fits(next->request)) return nullptr;
    const std::string owner = rotation_[i];
    remove(*next);
    if (queues_.contains(owner)) {  // its turn comes after all the others'
      std::erase(rotation_, owner);
      rotation_.push_back(owner);
    }
    if (!next->request.turn.empty()) turns_.insert(next->request.turn);
    memory_ += next->request.memory_bytes;
    ++in_progress_;
    ++computing_;
    return next;
  }
  return nullptr;
}

/// Back to the head of the queue.
void GuestPool::Impl::untake(const WaitingPtr& waiting) {
  leave(waiting->request);
  --computing_;
  auto& queue = queues_[waiting->request.owner];
  if (queue.empty()) rotation_.push_front(waiting->request.owner);
  queue.push_front(waiting);
  waiting->queued = true;
  ++queued_;
}

/// A job is not in progress any more.
void GuestPool::Impl::leave(const Request& request) {
  --in_progress_;
  memory_ -= request.memory_bytes;
  if (!request.turn.empty()) turns_.erase(request.turn);
}

bool GuestPool::Impl::fits(const Request& request) const {
  return options_.memory_bytes_max == 0 || in_progress_ == 0 ||
         memory_ + request.memory_bytes <= options_.memory_bytes_max;
}

/// A thread without a job, out of the list; null: none can be started.
GuestPool::Impl::Guest* GuestPool::Impl::idle_guest() {
  if (!idle_.empty()) {
    Guest* const guest = idle_.back();
    idle_.pop_back();
    return guest;
  }
  Guest& guest = guests_.emplace_back(*this);
  if (start_thread(guest)) return &guest;
  guests_.pop_back();
  return nullptr;
}

bool GuestPool::Impl::start_thread(Guest& guest) {
  pthread_attr_t attributes;
  ::pthread_attr_init(&attributes);
  int failed = ::pthread_attr_setstacksize(&attributes, options_.stack_bytes);
  const NoAsynchronousSignals signals;
  if (failed == 0) failed = ::pthread_create(&guest.thread, &attributes, thread_main, &guest);
  ::pthread_attr_destroy(&attributes);
  return failed == 0;
}

void* GuestPool::Impl::thread_main(void* guest) {
  auto& self = *static_cast<Guest*>(guest);
  self.pool.work(self);
  return nullptr;
}

void GuestPool::Impl::work(Guest& guest) {
  for (;;) {
    guest.go.acquire();
    WaitingPtr waiting = std::move(guest.job);
    if (!waiting) return;
    while (waiting) {
      waiting->on_cancel.reset();
      guest.released = false;
      waiting->job(&guest);
      waiting->job = nullptr;  // what it holds goes before its turn ends
      waiting = finished(guest, waiting->request);
    }
  }
}

/// The job this thread goes on with; null: it waits for one.
GuestPool::Impl::WaitingPtr GuestPool::Impl::finished(Guest& guest, const Request& request) {
  const MutexLock lock(mutex_);
  leave(request);
  if (!guest.released) --computing_;
  WaitingPtr next;
  if (computing_ < slots_ && resuming_.empty()) next = take_next();
  if (!next) idle_.push_back(&guest);
  dispatch();
  if (in_progress_ == 0) quiet_.notify_all();
  return next;
}

void GuestPool::Impl::pause() {
  const MutexLock lock(mutex_);
  --computing_;
  dispatch();
}

void GuestPool::Impl::resume(Guest& guest) {
  {
    const MutexLock lock(mutex_);
    if (computing_ < slots_ && resuming_.empty()) {
      ++computing_;
      return;
    }
    resuming_.push_back(&guest);
  }
  guest.compute.acquire();
}

GuestPoolStats GuestPool::Impl::stats() const {
  const MutexLock lock(mutex_);
  return {.queued = queued_,
          .in_progress = in_progress_,
          .computing = computing_,
          .threads = guests_.size()};
}

std::vector<GuestPool::Impl::WaitingPtr> GuestPool::Impl::take_all() {
  std::vector<WaitingPtr> taken;
  for (auto& [owner, queue] : queues_) {
    for (WaitingPtr& waiting : queue) {
      waiting->queued = false;
      taken.push_back(std::move(waiting));
    }
  }
  queues_.clear();
  rotation_.clear();
  queued_ = 0;
  return taken;
}

void GuestPool::Impl::shut_down() {
  std::vector<WaitingPtr> refused;
  {
    const MutexLock lock(mutex_);
    if (!std::exchange(accepting_, false)) return;
    refused = take_all();
  }
  for (const WaitingPtr& waiting : refused) waiting->job(shutting_down());
  std::vector<Guest*> guests;
  {
    MutexLock lock(mutex_);
    while (in_progress_ != 0) quiet_.wait(lock);
    for (Guest& guest : guests_) guests.push_back(&guest);
  }
  for (Guest* const guest : guests) guest->go.release();  // without a job
  for (Guest* const guest : guests) ::pthread_join(guest->thread, nullptr);
}

// ---- GuestPool

GuestPool::GuestPool(const GuestPoolOptions& options) : impl_(std::make_unique<Impl>(options)) {}
GuestPool::~GuestPool() = default;

void GuestPool::submit(Request request, Job job) {
  impl_->submit(std::move(request), std::move(job));
}

Result<void> GuestPool::run(Request request, const std::function<void(Slot&)>& body) {
  // Shared with the job, which may still be within set_value when the waiting has ended.
  const auto done = std::make_shared<std::promise<Result<void>>>();
  auto outcome = done->get_future();
  submit(std::move(request), [done, &body](const Result<Slot*>& slot) {
    if (!slot.ok()) return done->set_value(slot.error());
    body(**slot);
    done->set_value({});
  });
  return outcome.get();
}

GuestPoolStats GuestPool::stats() const { return impl_->stats(); }

void GuestPool::shut_down() { impl_->shut_down(); }

}  // namespace sw::executor
