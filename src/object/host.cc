// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "object/host.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/associated_cancellation_slot.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <condition_variable>
#include <deque>
#include <exception>
#include <future>
#include <list>
#include <map>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "object/alarms.h"
#include "object/output_gate.h"
#include "object/worker_pool.h"

// How it fits together. Each object in use has a Resident: its mailbox and two strands. On the
// object strand run its messages and nothing else that touches the object; on the storage strand,
// over the pool of threads that may wait, run its transactions, in order. The object itself, with
// what belongs to it, is a Life, made for the first message and dropped when it is idle, destroyed
// or broken; then the next message makes another from the storage. A transaction ends with a
// function posted from the storage strand to the object strand, so ends come in order, too.

namespace sw::object {

namespace asio = boost::asio;

namespace {

constexpr std::chrono::milliseconds kNoticePauseMin = std::chrono::seconds(1);

Error cancelled() { return Error{ErrorCode::kUnavailable, "the call was cancelled", 0}; }
Error shutting_down() { return Error{ErrorCode::kUnavailable, "shutting down", 0}; }

Error error_of(const std::exception_ptr& exception) {
  try {
    std::rethrow_exception(exception);
  } catch (const std::exception& error) {
    return Error{ErrorCode::kInternal, fmt::format("exception in an object: {}", error.what()), 0};
  } catch (...) {
    return Error{ErrorCode::kInternal, "exception in an object", 0};
  }
}

// Exceptions do not leave a pool's threads.
Result<void> guarded(const std::function<Result<void>()>& work) {
  try {
    return work();
  } catch (...) {
    return error_of(std::current_exception());
  }
}

// Passes everything on, and remembers what the host has to know of a transaction.
class WatchedTransaction final : public storage::Transaction {
 public:
  explicit WatchedTransaction(storage::Transaction& inner) : inner_(inner) {}

  Result<std::optional<Bytes>> get(storage::TableId table, std::string_view key) override {
    return inner_.get(table, key);
  }
  Result<void> scan(const storage::Range& range, storage::Order order,
                    const storage::RowCallback& each) override {
    return inner_.scan(range, order, each);
  }
  Result<void> scan_keys(const storage::Range& range, storage::Order order,
                         const storage::KeyCallback& each) override {
    return inner_.scan_keys(range, order, each);
  }
  Result<std::optional<Time>> alarm() override { return inner_.alarm(); }
  Result<void> put(storage::TableId table, std::string_view key, BytesView value) override {
    return inner_.put(table, key, value);
  }
  Result<void> erase(storage::TableId table, std::string_view key) override {
    return inner_.erase(table, key);
  }
  Result<void> erase_range(const storage::Range& range) override {
    return inner_.erase_range(range);
  }
  Result<void> set_alarm(std::optional<Time> time) override {
    alarm_set_ = time;
    return inner_.set_alarm(time);
  }

  std::optional<Time> alarm_set() const { return alarm_set_; }

 private:
  storage::Transaction& inner_;
  std::optional<Time> alarm_set_;
};

// The end of a storage job: whether its body succeeded, and what became of all of it.
struct JobEnd {
  Result<void> outcome;
  bool body_failed = false;  // then nothing was lost: the caller learns why, and goes on
};

}  // namespace

class ObjectHost::Impl {
 public:
  Impl(storage::Storage& storage, Clock& clock, HostOptions options);
  ~Impl() {
    try {
      shut_down();
    } catch (...) {
      std::terminate();  // threads that still run would use what is freed
    }
  }

  void add_class(std::string class_name, ObjectClass object_class) {
    classes_.emplace(std::move(class_name), std::move(object_class));
  }
  void start_alarms() { alarms_.start(); }
  std::shared_ptr<Call> send(const storage::ObjectName& name, Message message, Reply reply);
  std::size_t resident() const;
  void shut_down();

 private:
  class Life;
  struct Resident;
  class Envelope;
  using LifeTask = std::function<Task<Result<void>>(Life&)>;
  using StorageStrand = asio::strand<WorkerPool::Executor>;
  using ObjectStrand = asio::strand<WorkerPool::Executor>;

  std::shared_ptr<Call> enqueue(const storage::ObjectName& name, LifeTask task, Reply reply);
  void cancel(const std::shared_ptr<Envelope>& envelope);
  void step(const std::shared_ptr<Resident>& resident);
  Task<Result<void>> run_one(std::shared_ptr<Resident> resident,
                             std::shared_ptr<Envelope> envelope);
  Task<Result<void>> bring_to_life(std::shared_ptr<Resident> resident);
  void finished(const std::shared_ptr<Resident>& resident,
                const std::shared_ptr<Envelope>& envelope, Result<void> outcome);
  void life_settled(const std::shared_ptr<Resident>& resident, const std::shared_ptr<Life>& life);
  void drop_life(const std::shared_ptr<Resident>& resident);
  void drop_idle(Time now);
  void evict(const std::shared_ptr<Resident>& resident);
  void arm_idle_timer();
  void begin_work();
  void end_work();
  void wait_for_cancelled_work(std::unique_lock<std::mutex>& lock);
  void deliver_alarm(storage::DueAlarm alarm, std::function<void(Result<void>)> done);
  static Task<Result<void>> ring(Life* life, Time scheduled);
  void notice(const std::string& text) const {
    if (options_.on_notice) options_.on_notice(text);
  }

  storage::Storage& storage_;
  Clock& clock_;
  const HostOptions options_;
  std::map<std::string, ObjectClass, std::less<>> classes_;

  WorkerPool object_pool_;
  WorkerPool storage_pool_;
  WorkerPool blocking_pool_;

  mutable std::mutex mutex_;  // guards what follows, and the fields of Resident that say so
  std::condition_variable quiet_;
  // shared with what is under way for them
  std::map<storage::ObjectName, std::shared_ptr<Resident>> residents_;
  std::list<std::shared_ptr<Resident>> idle_;  // longest first
  std::size_t lives_ = 0;
  std::uint64_t births_ = 0;
  std::size_t work_ = 0;  // messages and storage jobs that have not ended
  bool accepting_ = true;
  bool shut_down_ = false;
  std::unique_ptr<Timer> idle_timer_;

  Alarms alarms_;
};

// One message, from its sending to its reply.
class ObjectHost::Impl::Envelope final : public Call,
                                         public std::enable_shared_from_this<Envelope> {
 public:
  Envelope(Impl& host, std::shared_ptr<Resident> resident, LifeTask task, Reply reply)
      : host_(host),
        resident_(std::move(resident)),
        task_(std::move(task)),
        reply_(std::move(reply)) {}

  void cancel() override { host_.cancel(shared_from_this()); }

  const std::shared_ptr<Resident>& resident() const { return resident_; }
  Task<Result<void>> start(Life& life) const { return task_(life); }
  asio::cancellation_signal& signal() { return signal_; }

  /// On the object strand, while the message runs.
  void tell_cancelled() {
    told_ = true;
    signal_.emit(asio::cancellation_type::terminal);
  }
  bool told() const { return told_; }

  void reply(Result<void> outcome) {
    // What the task holds on to is let go before the answer is out.
    task_ = nullptr;
    const Reply reply = std::exchange(reply_, nullptr);
    try {
      if (reply) reply(std::move(outcome));
    } catch (...) {
      host_.notice(error_of(std::current_exception()).message);
    }
  }

 private:
  Impl& host_;
  const std::shared_ptr<Resident> resident_;  // shared with the host; alive until the reply is out
  LifeTask task_;
  Reply reply_;
  // Used on the object strand.
  asio::cancellation_signal signal_;
  bool told_ = false;
};

struct ObjectHost::Impl::Resident {
  Resident(Impl& host, storage::ObjectName object_name, const ObjectClass& its_class)
      : name(std::move(object_name)),
        object_class(its_class),
        strand(asio::make_strand(host.object_pool_.executor())),
        storage_strand(asio::make_strand(host.storage_pool_.executor())) {}

  const storage::ObjectName name;
  const ObjectClass& object_class;
  const ObjectStrand strand;
  const StorageStrand storage_strand;

  // Guarded by the host's mutex.
  std::deque<std::shared_ptr<Envelope>> mailbox;
  bool active = false;  // a message runs, or the life is being dropped
  bool listed = false;  // in the list of idle ones
  std::list<std::shared_ptr<Resident>>::iterator place;
  Time last_used;
  std::uint64_t birth = 0;  // of the life, in the order of their making; 0: there is none

  // On the object strand only.
  std::shared_ptr<Life> life;  // shared with its storage jobs
  std::shared_ptr<Envelope> running;
};

// The object in memory, and its context.
class ObjectHost::Impl::Life final : public ObjectContext,
                                     public std::enable_shared_from_this<Life> {
 public:
  Life(Impl& host, std::shared_ptr<Resident> resident)
      : host_(host), resident_(std::move(resident)) {}

  const storage::ObjectName& name() const override { return resident_->name; }
  std::uint64_t generation() const override { return storage_->generation(); }
  Time now() override { return host_.clock_.now(); }

  Task<Result<void>> read(ReadBody body) override {
    return wait_for([life = shared_from_this(), body = std::move(body)]() -> JobEnd {
      auto outcome = life->storage_->read(body);
      // A read loses nothing; but an object that another owner has taken over must not live on.
      const bool fenced = !outcome.ok() && outcome.error().code == ErrorCode::kConflict;
      return {std::move(outcome), !fenced};
    });
  }

  Task<Result<void>> transact(TransactionBody body) override {
    return wait_for([life = shared_from_this(), body = std::move(body)] {
      return life->run_transaction(body);
    });
  }

  void commit(TransactionBody body) override {
    start_job(
        [life = shared_from_this(), body = std::move(body)] {
          JobEnd end = life->run_transaction(body);
          // nobody waits to be told: the object took its success for granted
          end.body_failed = false;
          return end;
        },
        [](Result<void>) {});
  }

  Task<Result<void>> destroy() override {
    ended_ = true;
    return wait_for([life = shared_from_this()]() -> JobEnd {
      return {life->storage_->destroy(), false};
    });
  }

  Task<Result<void>> run_blocking(std::function<Result<void>()> work,
                                  std::function<void()> on_cancel) override {
    return block(std::move(work), std::move(on_cancel), false);
  }

  Task<Result<void>> run_with_storage(StorageWork work, std::function<void()> on_cancel) override {
    return block(
        [life = shared_from_this(), work = std::move(work)] { return work(life->lent_storage_); },
        std::move(on_cancel), true);
  }

  Task<Result<void>> block(std::function<Result<void>()> work, std::function<void()> on_cancel,
                           bool with_storage) {
    auto initiate = [life = shared_from_this(), work = std::move(work),
                     on_cancel = std::move(on_cancel), with_storage](auto handler) mutable {
      auto slot = asio::get_associated_cancellation_slot(handler);
      auto resume = std::make_shared<decltype(handler)>(std::move(handler));
      std::function<void(Result<void>)> then = [slot, resume](Result<void> outcome) mutable {
        if (slot.is_connected()) slot.clear();
        (*resume)(std::move(outcome));
      };
      if (slot.is_connected() && on_cancel) {
        slot.assign([on_cancel = std::move(on_cancel)](asio::cancellation_type) { on_cancel(); });
      }
      if (with_storage) life->start_with_storage(std::move(work), std::move(then));
      else life->start_blocking(std::move(work), std::move(then));
    };
    return asio::async_initiate<const asio::use_awaitable_t<>, void(Result<void>)>(
        std::move(initiate), asio::use_awaitable);
  }

  bool cancelled() const override;

  // On the storage strand: takes the object over.
  Result<void> open() {
    SW_TRY(storage_, host_.storage_.open(resident_->name, resident_->object_class.schema));
    return {};
  }

  // Runs a job on the storage strand, then `then` on the object strand, after the gate knows of the
  // job's end.
  void start_job(std::function<JobEnd()> job, std::function<void(Result<void>)> then) {
    gate_.hold();
    host_.begin_work();
    asio::post(resident_->storage_strand,
               [life = shared_from_this(), job = std::move(job), then = std::move(then)]() mutable {
                 JobEnd end;
                 try {
                   end = job();
                 } catch (...) {
                   end = {error_of(std::current_exception()), true};
                 }
                 job = nullptr;
                 const ObjectStrand strand = life->resident_->strand;
                 asio::post(strand, [life = std::move(life), end = std::move(end),
                                     then = std::move(then)]() mutable {
                   life->job_ended(std::move(end), then);
                 });
               });
  }

  void start_blocking(std::function<Result<void>()> work, std::function<void(Result<void>)> then) {
    host_.begin_work();
    if (cancelled()) work = [] { return object::cancelled(); };
    asio::post(host_.blocking_pool_.executor(), [life = shared_from_this(), work = std::move(work),
                                                 then = std::move(then)]() mutable {
      Result<void> outcome = guarded(work);
      work = nullptr;
      const ObjectStrand strand = life->resident_->strand;
      asio::post(strand,
                 [life = std::move(life), then = std::move(then), outcome = std::move(outcome)] {
                   then(outcome);
                   life->host_.end_work();
                 });
    });
  }

  // Like start_blocking, but what was asked of the storage before comes first, and what the work
  // did to the storage counts. The gate is held meanwhile: no reply leaves before it is known
  // whether the commits were.
  void start_with_storage(std::function<Result<void>()> work,
                          std::function<void(Result<void>)> then) {
    gate_.hold();
    host_.begin_work();
    if (cancelled()) work = [] { return object::cancelled(); };
    asio::post(resident_->storage_strand, [life = shared_from_this(), work = std::move(work),
                                           then = std::move(then)]() mutable {
      const auto pool = life->host_.blocking_pool_.executor();
      asio::post(
          pool, [life = std::move(life), work = std::move(work), then = std::move(then)]() mutable {
            life->lent_storage_.begin();
            Result<void> outcome = guarded(work);
            work = nullptr;
            const ObjectStrand strand = life->resident_->strand;
            asio::post(strand, [life = std::move(life), then = std::move(then),
                                outcome = std::move(outcome)] {
              life->ended_ = life->ended_ || life->lent_storage_.destroyed();
              life->gate_.release(life->lent_storage_.lost());
              then(outcome);
              life->host_.life_settled(life->resident_, life);
              life->host_.end_work();
            });
          });
    });
  }

  OutputGate& gate() { return gate_; }
  bool is_over() const { return ended_ || gate_.broken().has_value(); }
  Object* object() { return object_.get(); }
  void set_object(std::unique_ptr<Object> object) { object_ = std::move(object); }

 private:
  // The object's storage, as work that uses it directly sees it: what happens there is noted for
  // the host.
  class LentStorage final : public storage::ObjectStorage {
   public:
    explicit LentStorage(Life& life) : life_(life) {}

    const storage::ObjectName& name() const override { return life_.storage_->name(); }
    std::uint64_t generation() const override { return life_.storage_->generation(); }
    Result<void> read(const std::function<Result<void>(storage::Reader&)>& body) override {
      auto outcome = life_.storage_->read(body);
      if (!outcome.ok() && outcome.error().code == ErrorCode::kConflict) lost_ = outcome;
      return outcome;
    }
    Result<void> transact(const std::function<Result<void>(storage::Transaction&)>& body) override {
      JobEnd end = life_.run_transaction(body);
      if (!end.outcome.ok() && !end.body_failed) lost_ = end.outcome;
      return std::move(end.outcome);
    }
    Result<void> destroy() override {
      destroyed_ = true;
      auto outcome = life_.storage_->destroy();
      if (!outcome.ok()) lost_ = outcome;
      return outcome;
    }

    void begin() { lost_ = {}; }
    const Result<void>& lost() const { return lost_; }
    bool destroyed() const { return destroyed_; }

   private:
    Life& life_;  // which this is a part of
    Result<void> lost_;
    bool destroyed_ = false;
  };

  void job_ended(JobEnd end, const std::function<void(Result<void>)>& then) {
    gate_.release(end.body_failed ? Result<void>() : end.outcome);
    then(std::move(end.outcome));
    host_.life_settled(resident_, shared_from_this());
    host_.end_work();
  }

  Task<Result<void>> wait_for(std::function<JobEnd()> job) {
    auto initiate = [life = shared_from_this(), job = std::move(job)](auto handler) mutable {
      auto resume = std::make_shared<decltype(handler)>(std::move(handler));
      life->start_job(std::move(job),
                      [resume](Result<void> outcome) { (*resume)(std::move(outcome)); });
    };
    return asio::async_initiate<const asio::use_awaitable_t<>, void(Result<void>)>(
        std::move(initiate), asio::use_awaitable);
  }

  JobEnd run_transaction(const TransactionBody& body) {
    bool body_failed = false;
    std::optional<Time> alarm;
    auto outcome = storage_->transact([&](storage::Transaction& transaction) {
      WatchedTransaction watched(transaction);
      auto done = guarded([&] { return body(watched); });
      body_failed = !done.ok();
      alarm = watched.alarm_set();
      return done;
    });
    if (outcome.ok() && alarm) host_.alarms_.consider(*alarm);
    return {std::move(outcome), body_failed};
  }

  Impl& host_;
  const std::shared_ptr<Resident> resident_;
  // used on the storage strand, or by work it is lent to
  std::unique_ptr<storage::ObjectStorage> storage_;
  LentStorage lent_storage_{*this};
  OutputGate gate_;
  std::unique_ptr<Object> object_;  // last: it goes first, and may use the context until then
  bool ended_ = false;              // destroyed: the next message begins another life
};

ObjectHost::Impl::Impl(storage::Storage& storage, Clock& clock, HostOptions options)
    : storage_(storage),
      clock_(clock),
      options_(std::move(options)),
      object_pool_(options_.threads),
      storage_pool_(options_.storage_threads),
      blocking_pool_(options_.blocking_threads),
      alarms_(storage, clock,
              {options_.alarms_at_once, options_.alarm_retry_first, options_.alarm_retry_longest},
              {[this](std::function<void()> work) {
                 asio::post(storage_pool_.executor(), std::move(work));
               },
               [this](storage::DueAlarm alarm, std::function<void(Result<void>)> done) {
                 deliver_alarm(std::move(alarm), std::move(done));
               },
               [this](std::string_view text) { notice(std::string(text)); },
               [this](const storage::ObjectName& name) {
                 return classes_.contains(name.class_name);
               }}) {
  idle_timer_ = clock_.make_timer([this] { drop_idle(clock_.now()); });
}

std::shared_ptr<Call> ObjectHost::Impl::send(const storage::ObjectName& name, Message message,
                                             Reply reply) {
  return enqueue(
      name, [message = std::move(message)](Life& life) { return message(*life.object()); },
      std::move(reply));
}

std::shared_ptr<Call> ObjectHost::Impl::enqueue(const storage::ObjectName& name, LifeTask task,
                                                Reply reply) {
  std::shared_ptr<Resident> resident;
  std::shared_ptr<Envelope> envelope;
  std::optional<Error> refused;
  bool wake = false;
  {
    const std::lock_guard lock(mutex_);
    const auto object_class = classes_.find(name.class_name);
    const auto known = residents_.find(name);
    if (!accepting_) {
      refused = shutting_down();
    } else if (object_class == classes_.end()) {
      refused = Error{ErrorCode::kNotFound,
                      fmt::format("there is no class of objects {}", name.class_name), 0};
    } else if (known != residents_.end()) {
      resident = known->second;
    } else {
      resident = std::make_shared<Resident>(*this, name, object_class->second);
      residents_.emplace(name, resident);
    }
    if (resident && resident->mailbox.size() >= options_.mailbox_max) {
      refused = Error{ErrorCode::kLimitExceeded,
                      fmt::format("{} has {} messages waiting", storage::to_string(name),
                                  resident->mailbox.size()),
                      0};
    }
    envelope = std::make_shared<Envelope>(*this, resident, std::move(task), std::move(reply));
    if (!refused) {
      resident->mailbox.push_back(envelope);
      ++work_;
      if (resident->listed) idle_.erase(resident->place);
      resident->listed = false;
      wake = !std::exchange(resident->active, true);
    }
  }
  if (refused) {
    envelope->reply(*std::move(refused));
  } else if (wake) {
    asio::post(resident->strand, [this, resident] { step(resident); });
  }
  return envelope;
}

void ObjectHost::Impl::cancel(const std::shared_ptr<Envelope>& envelope) {
  const std::shared_ptr<Resident>& resident = envelope->resident();
  if (!resident) return;  // refused, and answered
  bool waiting = false;
  {
    const std::lock_guard lock(mutex_);
    waiting = std::erase(resident->mailbox, envelope) != 0;
  }
  if (waiting) {
    // Not here: a reply comes from the host's threads.
    asio::post(resident->strand, [this, envelope] {
      envelope->reply(cancelled());
      end_work();
    });
  } else {
    asio::post(resident->strand, [envelope] {
      if (envelope->resident()->running == envelope) envelope->tell_cancelled();
    });
  }
}

// Begins the next message of an object, on its strand. It is `active` until there is none.
void ObjectHost::Impl::step(const std::shared_ptr<Resident>& resident) {
  std::shared_ptr<Envelope> envelope;
  bool surplus = false;
  {
    const std::lock_guard lock(mutex_);
    if (resident->mailbox.empty()) {
      resident->active = false;
      resident->last_used = clock_.now();
      if (!resident->life) {
        residents_.erase(resident->name);
      } else if (resident->life->gate().settled()) {
        resident->place = idle_.insert(idle_.end(), resident);
        resident->listed = true;
        surplus = lives_ > options_.resident_max;
        if (idle_.size() == 1) arm_idle_timer();
      }  // else it is listed when its last commit has ended
    } else {
      envelope = std::move(resident->mailbox.front());
      resident->mailbox.pop_front();
    }
  }
  if (surplus) drop_idle(Time::min());
  if (!envelope) return;
  // Who hears that a commit was lost may send this message before `life_settled` has dropped what
  // rests on it.
  if (resident->life && resident->life->is_over()) drop_life(resident);
  resident->running = envelope;
  asio::co_spawn(
      resident->strand, run_one(resident, envelope),
      asio::bind_cancellation_slot(
          envelope->signal().slot(),
          [this, resident, envelope](const std::exception_ptr& exception, Result<void> outcome) {
            if (exception) outcome = error_of(exception);
            finished(resident, envelope, std::move(outcome));
          }));
}

bool ObjectHost::Impl::Life::cancelled() const {
  return resident_->running && resident_->running->told();
}

Task<Result<void>> ObjectHost::Impl::run_one(std::shared_ptr<Resident> resident,
                                             std::shared_ptr<Envelope> envelope) {
  // A cancellation is told, not thrown: an exception in the midst of a message would leave its work
  // half done.
  co_await asio::this_coro::throw_if_cancelled(false);
  if (!resident->life) {
    Result<void> alive = co_await bring_to_life(resident);
    if (!alive.ok()) co_return alive;
  }
  // Kept for the task, whatever becomes of the object meanwhile.
  const std::shared_ptr<Life> life = resident->life;
  Result<void> outcome = co_await envelope->start(*life);
  co_return outcome;
}

Task<Result<void>> ObjectHost::Impl::bring_to_life(std::shared_ptr<Resident> resident) {
  const auto life = std::make_shared<Life>(*this, resident);
  auto initiate = [life](auto handler) mutable {
    auto resume = std::make_shared<decltype(handler)>(std::move(handler));
    life->start_job(
        [life]() -> JobEnd {
          return {life->open(), true};
        },
        [resume](Result<void> outcome) { (*resume)(std::move(outcome)); });
  };
  Result<void> opened =
      co_await asio::async_initiate<const asio::use_awaitable_t<>, void(Result<void>)>(
          std::move(initiate), asio::use_awaitable);
  if (!opened.ok()) co_return opened;
  life->set_object(resident->object_class.make(*life));
  Result<void> started = co_await life->object()->start();
  if (!started.ok()) co_return started;
  resident->life = life;
  const std::lock_guard lock(mutex_);
  ++lives_;
  resident->birth = ++births_;
  co_return Result<void>();
}

// A message has ended, on the object strand. Its reply leaves through the gate; the next message
// need not wait for it.
void ObjectHost::Impl::finished(const std::shared_ptr<Resident>& resident,
                                const std::shared_ptr<Envelope>& envelope, Result<void> outcome) {
  resident->running = nullptr;
  const std::shared_ptr<Life> life = resident->life;
  const auto leave = [this, envelope,
                      outcome = std::move(outcome)](const Result<void>& open) mutable {
    if (open.ok()) envelope->reply(std::move(outcome));
    else envelope->reply(open);
    end_work();
  };
  if (life) {
    life->gate().when_open(leave);
    if (life->is_over()) drop_life(resident);
  } else {
    auto leave_now = leave;
    leave_now(Result<void>());
  }
  step(resident);
}

// A storage job of `life` has ended, on the object strand.
void ObjectHost::Impl::life_settled(const std::shared_ptr<Resident>& resident,
                                    const std::shared_ptr<Life>& life) {
  if (resident->life != life || resident->running || !life->gate().settled()) return;
  {
    const std::lock_guard lock(mutex_);
    if (resident->active || (resident->listed && !life->is_over())) return;
    resident->active = true;
    if (resident->listed) idle_.erase(resident->place);
    resident->listed = false;
  }
  if (life->is_over()) drop_life(resident);
  step(resident);
}

void ObjectHost::Impl::drop_life(const std::shared_ptr<Resident>& resident) {
  if (!resident->life) return;
  resident->life->set_object(nullptr);
  resident->life.reset();
  const std::lock_guard lock(mutex_);
  --lives_;
  resident->birth = 0;
}

// Drops idle objects: those beyond the limit, and those that were last used `idle_max` before
// `now`.
void ObjectHost::Impl::drop_idle(Time now) {
  std::vector<std::shared_ptr<Resident>> dropped;
  {
    const std::lock_guard lock(mutex_);
    std::size_t surplus = lives_ > options_.resident_max ? lives_ - options_.resident_max : 0;
    while (!idle_.empty()) {
      const std::shared_ptr<Resident>& first = idle_.front();
      const bool too_old = now != Time::min() && now - first->last_used >= options_.idle_max;
      if (surplus == 0 && !too_old) break;
      if (surplus > 0) --surplus;
      first->listed = false;
      first->active = true;
      dropped.push_back(first);
      idle_.pop_front();
    }
    arm_idle_timer();
  }
  for (const auto& resident : dropped) evict(resident);
}

// `resident` was idle and is marked active.
void ObjectHost::Impl::evict(const std::shared_ptr<Resident>& resident) {
  asio::post(resident->strand, [this, resident] {
    drop_life(resident);
    step(resident);
  });
}

void ObjectHost::Impl::arm_idle_timer() {
  if (!idle_timer_) return;
  idle_timer_->set(idle_.empty() ? std::nullopt
                                 : std::optional(idle_.front()->last_used + options_.idle_max));
}

void ObjectHost::Impl::begin_work() {
  const std::lock_guard lock(mutex_);
  ++work_;
}

void ObjectHost::Impl::end_work() {
  const std::lock_guard lock(mutex_);
  if (--work_ == 0) quiet_.notify_all();
}

void ObjectHost::Impl::deliver_alarm(storage::DueAlarm alarm,
                                     std::function<void(Result<void>)> done) {
  const Time scheduled = alarm.time;
  enqueue(
      alarm.name, [scheduled](Life& life) { return ring(&life, scheduled); }, std::move(done));
}

Task<Result<void>> ObjectHost::Impl::ring(Life* life, Time scheduled) {
  // A message before this one may have moved the alarm.
  // shared with the body, which runs on another thread
  auto current = std::make_shared<std::optional<Time>>();
  ReadBody look = [current](storage::Reader& reader) -> Result<void> {
    SW_TRY(*current, reader.alarm());
    return {};
  };
  Result<void> read = co_await life->read(std::move(look));
  if (!read.ok()) co_return read;
  if (!*current || **current > life->now()) co_return Result<void>();
  scheduled = **current;
  Result<void> rung = co_await life->object()->on_alarm(scheduled);
  if (!rung.ok()) co_return rung;
  TransactionBody clear = [scheduled](storage::Transaction& transaction) -> Result<void> {
    SW_TRY(const auto alarm, transaction.alarm());
    if (alarm == scheduled) return transaction.set_alarm(std::nullopt);
    return {};
  };
  Result<void> cleared = co_await life->transact(std::move(clear));
  co_return cleared;
}

std::size_t ObjectHost::Impl::resident() const {
  const std::lock_guard lock(mutex_);
  return lives_;
}

void ObjectHost::Impl::wait_for_cancelled_work(std::unique_lock<std::mutex>& lock) {
  const auto pause = std::max<std::chrono::milliseconds>(options_.drain_max, kNoticePauseMin);
  while (!quiet_.wait_for(lock, pause, [this] { return work_ == 0; })) {
    std::string names;
    for (const auto& [name, resident] : residents_) {
      if (resident->active)
        names += fmt::format("{}{}", names.empty() ? "" : ", ", storage::to_string(name));
    }
    lock.unlock();
    notice(fmt::format("shutting down: waiting for cancelled work of {}", names));
    lock.lock();
  }
}

void ObjectHost::Impl::shut_down() {
  {
    const std::lock_guard lock(mutex_);
    accepting_ = false;
    if (std::exchange(shut_down_, true)) return;
  }
  alarms_.stop();
  std::unique_ptr<Timer> idle_timer;
  std::vector<std::shared_ptr<Resident>> residents;
  {
    std::unique_lock lock(mutex_);
    idle_timer = std::move(idle_timer_);
    quiet_.wait_for(lock, options_.drain_max, [this] { return work_ == 0; });
    for (const auto& [name, resident] : residents_) residents.push_back(resident);
  }
  idle_timer.reset();
  // What is still under way is cancelled; then there is an end to it.
  for (const auto& resident : residents) {
    std::deque<std::shared_ptr<Envelope>> waiting;
    {
      const std::lock_guard lock(mutex_);
      waiting.swap(resident->mailbox);
    }
    asio::post(resident->strand, [this, resident, waiting = std::move(waiting)] {
      if (resident->running) resident->running->tell_cancelled();
      for (const auto& envelope : waiting) {
        envelope->reply(cancelled());
        end_work();
      }
    });
  }
  {
    std::unique_lock lock(mutex_);
    wait_for_cancelled_work(lock);
    residents.clear();
    for (const auto& [name, resident] : residents_) residents.push_back(resident);
    std::sort(residents.begin(), residents.end(),
              [](const auto& a, const auto& b) { return a->birth > b->birth; });
  }
  for (const auto& resident : residents) {
    std::promise<void> dropped;
    asio::post(resident->strand, [this, &resident, &dropped] {
      drop_life(resident);
      dropped.set_value();
    });
    dropped.get_future().wait();
  }
  storage_pool_.join();
  blocking_pool_.join();
  object_pool_.join();
  const std::lock_guard lock(mutex_);
  idle_.clear();
  residents_.clear();
}

// ---- ObjectHost

ObjectHost::ObjectHost(storage::Storage& storage, Clock& clock, HostOptions options)
    : impl_(std::make_unique<Impl>(storage, clock, std::move(options))) {}
ObjectHost::~ObjectHost() = default;

void ObjectHost::add_class(std::string class_name, ObjectClass object_class) {
  impl_->add_class(std::move(class_name), std::move(object_class));
}

void ObjectHost::start_alarms() { impl_->start_alarms(); }

std::shared_ptr<Call> ObjectHost::send(const storage::ObjectName& name, Message message,
                                       Reply reply) {
  return impl_->send(name, std::move(message), std::move(reply));
}

Result<void> ObjectHost::ask(const storage::ObjectName& name, Message message) {
  std::promise<Result<void>> answer;
  send(name, std::move(message),
       [&](Result<void> outcome) { answer.set_value(std::move(outcome)); });
  return answer.get_future().get();
}

std::size_t ObjectHost::resident() const { return impl_->resident(); }

void ObjectHost::shut_down() { impl_->shut_down(); }

}  // namespace sw::object
