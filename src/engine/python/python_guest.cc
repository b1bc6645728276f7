// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "engine/python/python_guest.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <chrono>
#include <span>
#include <thread>

#include "engine/python/request.h"
#include "engine/python/stack_limits.h"

namespace sw::engine {

namespace {

// Requests of one byte, as engines/python/driver/cell.py has them.
constexpr std::string_view kProveInterrupt = "i";
constexpr std::string_view kSettle = "s";
constexpr std::string_view kFinish = "f";
constexpr std::string_view kReleaseReserve = "m";

// The guest's word that an interrupt has ended its cell; its answer is still to come.
constexpr std::string_view kStopping = ".";

constexpr char kHomeFolder[] = "/workspace";
constexpr std::string_view kInterrupted = "interrupted";
// From the guest's word that it starts its loop to the interrupt, which shall find it there.
constexpr std::chrono::milliseconds kIntoTheLoop{2};
constexpr std::chrono::seconds kProofTimeMax{10};

constexpr std::uint64_t kGuestBytesMax = std::uint64_t{4} << 30;

/// "waiting 26082032" names the address of KeyboardInterrupt.
Result<std::uint32_t> address_in(std::string_view answer) {
  const std::string_view digits = answer.substr(std::min(answer.find(' ') + 1, answer.size()));
  std::uint32_t address = 0;
  const auto parsed = std::from_chars(digits.data(), digits.data() + digits.size(), address);
  if (parsed.ec != std::errc() || address == 0) {
    return Error{ErrorCode::kCorrupt,
                 fmt::format("the driver answered '{}' instead of an address", answer), 0};
  }
  return address;
}

}  // namespace

Result<void> define_door(wasm::Linker& linker) {
  return linker.define(
      "host", "call",
      [](wasm::Caller& caller, std::uint32_t address, std::uint32_t length,
         std::uint32_t out_address, std::uint32_t out_length) -> Result<std::int32_t> {
        const wasm::MemoryView memory = caller.memory();
        SW_CHECK_OK(static_cast<PythonGuest&>(caller.host()).take_answer(memory, address, length));
        // We send nothing back: an empty buffer at no address.
        if (!memory.store<std::uint32_t>(out_address, 0) ||
            !memory.store<std::uint32_t>(out_length, 0))
          return -1;
        return 0;
      });
}

Result<void> PythonGuest::take_answer(wasm::MemoryView memory, std::uint32_t address,
                                      std::uint32_t length) {
  const auto bytes = memory.range(address, length);
  if (!bytes) return Error{ErrorCode::kCorrupt, "the guest's answer is outside its memory", 0};
  // A value that is one byte too long is enough to see that it is too long.
  const auto kept = bytes->first(std::min<std::uint64_t>(bytes->size(), answer_bytes_max_));
  if (as_text(kept) == kStopping) {
    stopping_ = true;
    return interrupt_.withdraw(memory);
  }
  // The value is taken out of the answer: for a moment there are two.
  SW_CHECK_OK(instance().charge(kept.size()));
  SW_TRY(answer_, copy_out(kept));
  if (on_answer_) SW_CHECK_OK(on_answer_());
  return {};
}

Result<void> PythonGuest::find_entry_points() {
  SW_TRY(host_alloc_, instance().function<std::int32_t(std::int32_t)>("host_alloc"));
  SW_TRY(turn_, (instance().function<std::int32_t(std::int32_t, std::int32_t)>("turn")));
  return {};
}

Result<std::int32_t> PythonGuest::turn(std::string_view request) {
  const auto length = static_cast<std::int32_t>(request.size());
  SW_TRY(const std::int32_t address, instance().call(host_alloc_, length));
  const auto to = instance().memory().range(static_cast<std::uint32_t>(address), request.size());
  if (address == 0 || !to)
    return Error{ErrorCode::kGuestTrap, "the guest has no memory for the request", 0};
  std::ranges::copy(std::as_bytes(std::span(request)), to->begin());
  answer_.clear();
  // The buffer belongs to the guest from here on.
  return instance().call(turn_, address, length);
}

Result<void> PythonGuest::boot(BakeFacts& facts) {
  SW_TRY(const auto initialize, instance().function<void()>("_initialize"));
  SW_CHECK_OK(instance().call(initialize));
  SW_CHECK_OK(find_entry_points());
  SW_TRY(const std::int32_t status, turn(boot_source(manifest_.drivers, manifest_.imports)));
  if (status != 0) {
    return Error{ErrorCode::kInternal, fmt::format("the driver did not load (status {})", status),
                 0};
  }
  SW_TRY(interrupt_, Interrupt::find(instance().memory()));
  SW_CHECK_OK(raise_stack_limits(instance().memory(), interrupt_.thread_state()));
  if (auto proved = prove_interrupt(); !proved.ok()) {
    return std::move(proved).error().while_doing(
        "verifying that a running cell can be interrupted");
  }
  interrupt_.save(facts);
  SW_CHECK_OK(turn(kSettle));
  return {};
}

Result<void> PythonGuest::prove_interrupt() {
  std::atomic<bool> in_loop{false};
  std::atomic<bool> over{false};
  on_answer_ = [&]() -> Result<void> {
    if (in_loop) return {};
    SW_TRY(const std::uint32_t exception, address_in(answer_));
    interrupt_.set_exception(exception);
    in_loop = true;
    in_loop.notify_one();
    return {};
  };
  std::thread interrupter([&] {
    in_loop.wait(false);
    std::this_thread::sleep_for(kIntoTheLoop);
    soft_stop();
    const auto give_up = std::chrono::steady_clock::now() + kProofTimeMax;
    while (!over) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      if (std::chrono::steady_clock::now() > give_up) instance().stop();
    }
  });
  const auto result = turn(kProveInterrupt);
  in_loop = true;  // also when the guest never got there
  in_loop.notify_one();
  over = true;
  interrupter.join();
  on_answer_ = nullptr;
  if (!result.ok()) return result.error();
  if (answer_ != kInterrupted) {
    return Error{ErrorCode::kInternal, fmt::format("the loop ended with '{}'", answer_), 0};
  }
  return {};
}

Result<void> PythonGuest::bind(const BakeFacts& facts) {
  SW_TRY(interrupt_, Interrupt::load(facts));
  return find_entry_points();
}

Result<void> PythonGuest::after_restore() {
  fresh_ = true;
  cwd_ = kHomeFolder;
  return {};
}

Result<Reply> PythonGuest::evaluate(const Run& request, std::string_view file_name) {
  // An interrupt of the last cell that came too late for it must not hit this one.
  SW_CHECK_OK(interrupt_.withdraw(instance().memory()));
  stopping_ = false;
  asked_to_stop_ = false;
  // A cell after the first may have written files itself.
  const CellFlags flags{.fresh = fresh_,
                        .files = !fresh_ || request.files != nullptr,
                        .script = !request.file_name.empty() && !request.file_name.starts_with('<'),
                        .home = request.home};
  answer_bytes_max_ =
      kReplyHeadBytesMax + std::min(request.limits.result_bytes_max, kGuestBytesMax) + 1;
  SW_CHECK_OK(turn(cell_request(request, file_name, flags)));
  release_reserve();
  // An interrupt can hit the driver before its first or after its last line that would catch it.
  if (answer_.empty() && asked_to_stop_) return interrupted_before_answer();
  fresh_ = false;
  SW_TRY(Reply reply, parse_reply(std::move(answer_)));
  cwd_ = reply.cwd;
  return reply;
}

/// Where memory may be full, what the driver keeps back is for the next request. If even this
/// request of a byte finds no room, there is nothing left to do.
void PythonGuest::release_reserve() {
  if (instance().refused_growths() == 0) return;
  std::string answer = std::move(answer_);
  (void)turn(kReleaseReserve);
  answer_ = std::move(answer);
}

Reply PythonGuest::interrupted_before_answer() const {
  Reply reply;
  reply.error =
      GuestError{.name = "KeyboardInterrupt", .message = {}, .traceback = {}, .line_number = {}};
  reply.cwd = cwd_;
  return reply;
}

Result<void> PythonGuest::finish() {
  SW_CHECK_OK(interrupt_.withdraw(instance().memory()));
  stopping_ = false;
  SW_CHECK_OK(turn(kFinish));
  return {};
}

void PythonGuest::soft_stop() {
  if (stopping_) return;
  asked_to_stop_ = true;
  instance().while_running([this](wasm::MemoryView memory) { interrupt_.request(memory); });
}

}  // namespace sw::engine
