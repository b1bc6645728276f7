// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "guest.h"

#include <algorithm>
#include <random>
#include <span>
#include <string>
#include <utility>

namespace prolog {

namespace {

using sw::Error;
using sw::ErrorCode;
using sw::Result;
using sw::engine::Reply;
using sw::wasi::Errno;

constexpr char kCellFile[] = "/tmp/cell";
constexpr char kAnswerFile[] = "/tmp/answer";
constexpr char kDriverFile[] = "/tmp/driver.pl";
// How often a query comes back to us to ask whether it shall go on.
constexpr std::int32_t kYieldMs = 10;
constexpr std::int32_t kPointerBytes = 4;

Error driver_failed(std::string_view what) {
  return {ErrorCode::kInternal, "the driver failed: " + std::string(what)};
}

/// An atom of Prolog.
std::string as_atom(std::string_view text) {
  std::string result = "'";
  for (const char c : text) {
    if (c == '\'' || c == '\\') result += '\\';
    if (c == '\n') result += "\\n";
    else result += c;
  }
  return result + "'";
}

std::string_view take_line(std::string_view& text) {
  const std::size_t end = std::min(text.find('\n'), text.size());
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return line;
}

}  // namespace

Result<void> PrologGuest::boot(sw::engine::BakeFacts& facts) {
  SW_CHECK_OK(wasi().start_run({.args = {"tpl", "--ns", "-q", "-g", "use_module(user), halt"}}));
  SW_TRY(const auto start, instance().function<void()>("_start"));
  SW_CHECK_OK(instance().call(start));
  SW_CHECK_OK(bind(facts));
  if (wasi().files().write_file(kDriverFile, sw::as_bytes(manifest_.drivers.at(0).content)) !=
      Errno::kSuccess) {
    return driver_failed("it cannot be written");
  }
  SW_TRY(const bool loaded, query("consult('/tmp/driver.pl'), chdir('/workspace')."));
  if (!loaded) return driver_failed("it cannot be loaded");
  sw::Run warm_up;
  warm_up.code = "?- X = 1.";
  SW_TRY(const Reply reply, evaluate(warm_up, "<bake>"));
  if (!reply.value || reply.value->text != "X = 1") return driver_failed("a cell gives no value");
  return {};
}

Result<void> PrologGuest::bind(const sw::engine::BakeFacts& /*facts*/) {
  SW_TRY(global_, instance().function<i32()>("pl_global"));
  SW_TRY(query_, (instance().function<i32(i32, i32, i32, i32)>("pl_query")));
  SW_TRY(redo_, instance().function<i32(i32)>("pl_redo"));
  SW_TRY(did_yield_, instance().function<i32(i32)>("pl_did_yield"));
  SW_TRY(yield_at_, (instance().function<i32(i32, i32)>("pl_yield_at")));
  SW_TRY(done_, instance().function<i32(i32)>("pl_done"));
  SW_TRY(realloc_, (instance().function<i32(i32, i32, i32, i32)>("canonical_abi_realloc")));
  SW_TRY(free_, (instance().function<void(i32, i32, i32)>("canonical_abi_free")));
  SW_TRY(halted_, instance().function<i32(i32)>("get_halt"));
  SW_TRY(halt_code_, instance().function<i32(i32)>("get_halt_code"));
  SW_TRY(prolog_, instance().call(global_));
  return {};
}

Result<void> PrologGuest::after_restore() {
  // The sequence of random numbers is part of the memory: without this, copies would repeat it.
  SW_TRY(const bool seeded,
         query("set_seed(" + std::to_string(std::random_device()() >> 1) + ")."));
  if (!seeded) return driver_failed("no random numbers");
  first_cell_ = true;
  return {};
}

Result<std::int32_t> PrologGuest::put(std::string_view text) {
  SW_TRY(const i32 address, instance().call(realloc_, 0, 0, 1, static_cast<i32>(text.size() + 1)));
  const auto to = instance().memory().range(static_cast<std::uint32_t>(address), text.size() + 1);
  if (address == 0 || !to)
    return Error{ErrorCode::kGuestTrap, "the guest has no memory for a query"};
  std::ranges::copy(std::as_bytes(std::span(text)), to->begin());
  to->back() = std::byte{0};
  return address;
}

Result<void> PrologGuest::release(i32 address, std::size_t bytes) {
  return instance().call(free_, address, static_cast<i32>(bytes), 1);
}

Result<bool> PrologGuest::query(std::string_view goal) {
  SW_TRY(const i32 text, put(goal));
  SW_TRY(const i32 where, instance().call(realloc_, 0, 0, kPointerBytes, kPointerBytes));
  if (!instance().memory().store<i32>(static_cast<std::uint32_t>(where), 0))
    return driver_failed("a bad address");
  SW_TRY(i32 more, instance().call(query_, prolog_, text, where, kYieldMs));
  const auto found = instance().memory().load<i32>(static_cast<std::uint32_t>(where));
  if (!found) return driver_failed("a bad address");
  const i32 running = *found;
  SW_CHECK_OK(release(text, goal.size() + 1));
  SW_CHECK_OK(release(where, kPointerBytes));
  bool stopped = false;
  while (more != 0 && running != 0) {
    SW_TRY(const i32 yielded, instance().call(did_yield_, running));
    if (yielded == 0) break;
    stopped = stop_;
    if (stopped) break;
    SW_CHECK_OK(instance().call(yield_at_, running, kYieldMs));
    SW_TRY(more, instance().call(redo_, running));
  }
  if (more != 0 && running != 0) SW_CHECK_OK(instance().call(done_, running));
  return !stopped;
}

Result<Reply> PrologGuest::evaluate(const sw::Run& request, std::string_view /*file_name*/) {
  std::string env;
  for (const auto& [name, value] : request.env) {
    env += (env.empty() ? "" : ", ") + as_atom(name) + " = " + as_atom(value);
  }
  // A context may begin in a folder of its own, if that is there.
  std::string go;
  if (first_cell_ && !request.cwd.empty())
    go = "(catch(chdir(" + as_atom(request.cwd) + "), _, true) -> true ; true), ";
  first_cell_ = false;
  sw::wasi::FileSystem& files = wasi().files();
  if (files.write_file(kCellFile, sw::as_bytes(request.code + "\n")) != Errno::kSuccess) {
    return Error{ErrorCode::kUnavailable, "the cell cannot be written"};
  }
  (void)files.remove(kAnswerFile);
  SW_TRY(const bool ended, query(go + "'$cell'([" + env + "])."));
  SW_TRY(const i32 halted, instance().call(halted_, prolog_));
  Reply reply;
  if (!ended) {
    reply.error = sw::GuestError{.name = "Interrupted", .message = "stopped"};
  } else if (halted != 0) {
    SW_TRY(reply.exit_code, instance().call(halt_code_, prolog_));
  } else {
    SW_TRY(reply, read_answer());
    cwd_ = reply.cwd;
  }
  reply.cwd = cwd_;
  return reply;
}

Result<Reply> PrologGuest::read_answer() {
  const auto bytes = wasi().files().read_file(kAnswerFile);
  if (!bytes.ok()) return Error{ErrorCode::kCorrupt, "its driver did not answer"};
  const std::string valid = sw::to_valid_utf8(sw::as_text(bytes->bytes));
  std::string_view text = valid;
  Reply reply;
  reply.cwd = take_line(text);
  if (reply.cwd.size() > 1 && reply.cwd.ends_with('/')) reply.cwd.pop_back();
  const std::string_view kind = take_line(text);
  if (kind == "value") {
    reply.value = sw::Value{.text = std::string(text)};
  } else if (kind == "error") {
    const std::string name(take_line(text));
    reply.error = sw::GuestError{.name = name, .message = std::string(text)};
  } else if (kind != "none") {
    return Error{ErrorCode::kCorrupt, "invalid answer from its driver"};
  }
  return reply;
}

}  // namespace prolog
