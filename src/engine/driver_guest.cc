// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "engine/driver_guest.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <span>
#include <thread>

#include "wasi/descriptors.h"

namespace sw::engine {

namespace {

constexpr std::uint64_t kGuestBytesMax = std::uint64_t{4} << 30;
// Longer than any clock counts, and short enough to be added to the time of day.
constexpr std::uint64_t kAlarmMillisecondsMax = std::uint64_t{1} << 40;
constexpr std::chrono::seconds kProofTimeMax{10};

std::string first_line(std::string_view text) {
  return std::string(text.substr(0, text.find('\n')));
}

}  // namespace

Result<void> define_driver_imports(wasm::Linker& linker) {
  SW_CHECK_OK(linker.define("sw", "answer",
                            [](wasm::Caller& caller, std::uint32_t address, std::uint32_t length) {
                              return static_cast<DriverGuest&>(caller.host())
                                  .take_answer(caller.memory(), address, length);
                            }));
  SW_CHECK_OK(linker.define("sw", "alarm", [](wasm::Caller& caller, std::uint64_t milliseconds) {
    static_cast<DriverGuest&>(caller.host()).set_alarm(milliseconds);
  }));
  return linker.define(
      "sw", "fd_dup", [](wasm::Caller& caller, std::uint32_t descriptor) -> std::int32_t {
        const auto copy =
            static_cast<DriverGuest&>(caller.host()).wasi().descriptors().duplicate(descriptor);
        return copy.ok() ? static_cast<std::int32_t>(*copy)
                         : -static_cast<std::int32_t>(copy.error());
      });
}

DriverGuest::DriverGuest(const Manifest& manifest, const DriverFacts& driver,
                         std::shared_ptr<const wasi::Layout> layout, const wasi::Clocks& clocks)
    : Guest(std::move(layout), clocks),
      manifest_(manifest),
      driver_(driver),
      alarm_([this] { raise(alarm_word_); }) {}

Result<void> DriverGuest::take_answer(wasm::MemoryView memory, std::uint32_t address,
                                      std::uint32_t length) {
  const auto bytes = memory.range(address, length);
  if (!bytes) return Error{ErrorCode::kCorrupt, "the guest's answer is outside its memory", 0};
  // A value that is one byte too long is enough to see that it is too long.
  const auto kept = bytes->first(std::min<std::uint64_t>(bytes->size(), answer_bytes_max_));
  // The value is taken out of the answer: for a moment there are two.
  SW_CHECK_OK(instance().charge(kept.size()));
  SW_TRY(answer_, copy_out(kept));
  return {};
}

void DriverGuest::set_alarm(std::uint64_t milliseconds) {
  if (milliseconds == 0) alarm_.set(std::nullopt);
  else alarm_.set(std::chrono::milliseconds(std::min(milliseconds, kAlarmMillisecondsMax)));
}

Result<void> DriverGuest::find_entry_points() {
  SW_TRY(buffer_, instance().function<std::int32_t(std::int32_t)>("sw_buffer"));
  SW_TRY(run_, instance().function<void(std::int32_t)>("sw_run"));
  SW_TRY(renew_, instance().function<void()>("sw_fresh"));
  return find_more_entry_points();
}

Result<std::int32_t> DriverGuest::send(std::string_view request) {
  if (request.size() > INT32_MAX)
    return Error{ErrorCode::kInvalidArgument, "the request is too large", 0};
  const auto length = static_cast<std::int32_t>(request.size());
  SW_TRY(const std::int32_t address, instance().call(buffer_, length));
  const auto to = instance().memory().range(static_cast<std::uint32_t>(address), request.size());
  if (address == 0 || !to)
    return Error{ErrorCode::kGuestTrap, "the guest has no memory for the request", 0};
  std::ranges::copy(std::as_bytes(std::span(request)), to->begin());
  answer_.clear();
  return length;
}

Result<void> DriverGuest::boot(BakeFacts& facts) {
  SW_TRY(const auto initialize, instance().function<void()>("_initialize"));
  SW_CHECK_OK(instance().call(initialize));
  SW_CHECK_OK(find_entry_points());
  SW_CHECK_OK(start_driver());
  for (const char* name : {driver_.interrupt_word, driver_.stop_word, driver_.alarm_word}) {
    SW_TRY(const auto tell, instance().function<std::int32_t()>(name));
    SW_TRY(const std::int32_t address, instance().call(tell));
    facts[name] = static_cast<std::uint32_t>(address);
  }
  SW_CHECK_OK(bind(facts));
  SW_CHECK_OK(warm_up());
  if (auto proved = prove_interrupt(); !proved.ok()) {
    return std::move(proved).error().while_doing(
        "verifying that a running cell can be interrupted");
  }
  SW_TRY(const auto settle, instance().function<void()>("sw_settle"));
  return instance().call(settle);
}

Result<void> DriverGuest::start_driver() {
  SW_TRY(const auto start, instance().function<std::int32_t(std::int32_t)>("sw_boot"));
  SW_TRY(const std::int32_t length, send(boot_code()));
  SW_TRY(const std::int32_t status, instance().call(start, length));
  if (status == 0) return {};
  return Error{ErrorCode::kInternal,
               fmt::format("the driver did not start: {}", first_line(answer_)), 0};
}

/// Cells that walk the usual paths once: output, a value of each kind, an error with a traceback.
Result<void> DriverGuest::warm_up() {
  Run usual;
  usual.code = driver_file(manifest_, driver_.warm_file);
  for (int i = 0; i < 2; ++i) {
    SW_TRY(const Reply reply, evaluate(usual, "<warm>"));
    if (reply.error) {
      return Error{ErrorCode::kInternal,
                   fmt::format("{} failed: {}", driver_.warm_file, reply.error->message), 0};
    }
  }
  Run failing;
  failing.code = driver_.failing_code;
  return evaluate(failing, "<warm>").ok() ? Result<void>()
                                          : Error{ErrorCode::kInternal, "no error can be shown", 0};
}

Result<void> DriverGuest::prove_interrupt() {
  std::atomic<bool> over = false;
  std::thread interrupter([&] {
    const auto give_up = std::chrono::steady_clock::now() + kProofTimeMax;
    while (!over) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      soft_stop();
      if (std::chrono::steady_clock::now() > give_up) instance().stop();
    }
  });
  Run endless;
  endless.code = driver_.endless_code;
  const auto reply = evaluate(endless, "<warm>");
  over = true;
  interrupter.join();
  if (!reply.ok()) return reply.error();
  if (!reply->error) return Error{ErrorCode::kInternal, "the loop ended without an error", 0};
  return {};
}

Result<void> DriverGuest::bind(const BakeFacts& facts) {
  const std::pair<const char*, std::uint32_t*> all[] = {{driver_.interrupt_word, &interrupt_word_},
                                                        {driver_.stop_word, &stop_word_},
                                                        {driver_.alarm_word, &alarm_word_}};
  for (const auto& [name, address] : all) {
    SW_TRY(*address, fact<std::uint32_t>(facts, name));
    if (!instance().memory().load<std::int32_t>(*address)) {
      return Error{ErrorCode::kCorrupt, fmt::format("the image does not say where {} is", name), 0};
    }
  }
  return find_entry_points();
}

Result<void> DriverGuest::after_restore() {
  fresh_ = true;
  return instance().call(renew_);
}

Result<Reply> DriverGuest::evaluate(const Run& request, std::string_view file_name) {
  // A wish to stop that came too late for the last cell must not hit this one.
  if (!instance().memory().store<std::int32_t>(stop_word_, 0)) {
    return Error{ErrorCode::kCorrupt, "the stop flag is outside the guest's memory", 0};
  }
  answer_bytes_max_ =
      kReplyHeadBytesMax + std::min(request.limits.result_bytes_max, kGuestBytesMax) + 1;
  SW_TRY(const std::int32_t length, send(cell(request, file_name, fresh_)));
  SW_CHECK_OK(instance().call(run_, length));
  fresh_ = false;
  SW_TRY(Reply reply, parse_reply(std::move(answer_)));
  return reply;
}

void DriverGuest::raise(std::uint32_t word) {
  instance().while_running([&](wasm::MemoryView memory) {
    // In this order: the guest looks at the second to learn that there is something in the first.
    if (memory.store<std::int32_t>(word, 1)) (void)memory.store<std::int32_t>(interrupt_word_, 1);
  });
}

void DriverGuest::soft_stop() { raise(stop_word_); }

void put_number(std::string& request, std::size_t value) {
  for (int shift = 0; shift < 32; shift += 8) request += static_cast<char>(value >> shift & 0xFF);
}

void put_string(std::string& request, std::string_view text) {
  put_number(request, text.size());
  request += text;
}

std::string driver_request(const Run& request, std::string_view file_name, bool fresh,
                           std::string_view program) {
  // One more than is wanted is enough to see that a value is too long. 0 would be no limit.
  constexpr std::uint64_t kLongest = UINT32_MAX - 1;
  std::string out;
  out.reserve(request.code.size() + file_name.size() + 64);
  put_number(out,
             static_cast<std::size_t>(std::min(request.limits.result_bytes_max, kLongest) + 1));
  put_string(out, request.code);
  put_string(out, file_name);
  put_string(out, fresh ? request.cwd : std::string());
  put_number(out, request.args.size());
  for (std::size_t i = 0; i < request.args.size(); ++i) {
    put_string(out, i == 0 && !program.empty() ? program : request.args[i]);
  }
  put_number(out, request.env.size());
  for (const auto& [name, value] : request.env) {
    put_string(out, name);
    put_string(out, value);
  }
  return out;
}

std::string_view driver_file(const Manifest& manifest, std::string_view name) {
  for (const DriverFile& file : manifest.drivers) {
    if (file.name.ends_with(name)) return file.content;
  }
  return {};
}

}  // namespace sw::engine
