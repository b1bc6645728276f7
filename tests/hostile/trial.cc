// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "hostile/trial.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <condition_variable>
#include <fstream>
#include <mutex>
#include <thread>

#include "engine/result_json.h"
#include "hostile/command.h"
#include "sandbox_workers/engine/all_languages.h"
#include "sandbox_workers/host.h"
#include "trace_probes.h"

namespace sw::hostile {

namespace {

/// The process's memory: what it has, and the most it had since `reset`.
struct ResidentMemory {
  static void reset() { std::ofstream("/proc/self/clear_refs") << "5"; }
  static std::uint64_t of(std::string_view field) {
    std::ifstream status("/proc/self/status");
    for (std::string line; std::getline(status, line);) {
      if (line.starts_with(field)) return std::stoull(line.substr(field.size() + 1)) << 10;
    }
    return 0;
  }
};

/// Cancels after a time, from another thread.
class Canceller {
 public:
  explicit Canceller(const std::optional<std::chrono::microseconds>& after) {
    if (!after) return;
    thread_ = std::jthread([this, after](const std::stop_token& ended) {
      std::unique_lock lock(mutex_);
      changed_.wait_for(lock, ended, *after, [] { return false; });
      source_.request_stop();
    });
  }
  std::stop_token token() const { return source_.get_token(); }

 private:
  std::stop_source source_;
  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::jthread thread_;
};

sw::Run request_of(const Program& program, const Plan& plan) {
  sw::Run request;
  request.code = program.code;
  request.limits = plan.limits;
  return request;
}

/// A run that must be good, whatever was run before it.
sw::Run probe_of(const std::string& code) {
  sw::Run request;
  request.code = code;
  request.limits.wall_max = std::chrono::minutes(10);
  return request;
}

std::string value_of(const Outcome& outcome) {
  if (outcome.error) return outcome.error->name + ": " + outcome.error->message.substr(0, 500);
  return outcome.value ? outcome.value->text.substr(0, 500)
                       : fmt::format("({})", engine::ending_name(outcome.ending));
}

/// The value of a cell that must be good. What a cell before it left behind, such as a timer that
/// throws, may end it, and has then had its turn: there may be several tries.
std::string next_cell(const Context& context, int tries) {
  std::string value;
  for (; tries > 0 && value != "42"; --tries) {
    const auto outcome = context.run(probe_of("42"));
    if (!outcome.ok()) return "the host failed: " + outcome.error().message;
    value = value_of(*outcome);
  }
  return value;
}

}  // namespace

Trial::Trial(std::string language, std::filesystem::path command,
             std::unique_ptr<engine::Machine> machine, std::shared_ptr<engine::Engine> engine,
             TemporaryDirectory folder)
    : language_(std::move(language)),
      command_(std::move(command)),
      machine_(std::move(machine)),
      engine_(std::move(engine)),
      folder_(std::move(folder)) {}

Result<std::unique_ptr<Trial>> Trial::create(const std::string& language,
                                             std::filesystem::path command) {
  SW_TRY(auto machine, engine::Machine::create());
  SW_TRY(auto found, engine::find_language(language));
  SW_TRY(auto engine, machine->load(std::move(found)));
  SW_TRY(auto folder,
         TemporaryDirectory::create(std::filesystem::temp_directory_path(), "hostile-"));
  return std::unique_ptr<Trial>(new Trial(language, std::move(command), std::move(machine),
                                          std::move(engine), std::move(folder)));
}

Result<std::uint64_t> Trial::image_bytes() {
  RunOutput sink;
  SW_TRY(const Outcome outcome, engine_->run(probe_of("1"), sink));
  return outcome.usage.memory_bytes;
}

Complaints Trial::judged(const Plan& plan, const Program& program, const Outcome& outcome,
                         const RunOutput& sink) {
  ++totals_.endings[std::string(engine::ending_name(outcome.ending))];
  totals_.cpu_longest = std::max(totals_.cpu_longest, outcome.usage.cpu);
  Complaints complaints = judge(plan, program, outcome, sink.out, sink.err);
  Outcome told = outcome;
  told.out = sink.out;
  told.err = sink.err;
  const engine::EngineInfo& info = engine_->info();
  const std::string json = engine::execution_result_json(info.language, info.engine_name,
                                                         request_of(program, plan), told);
  if (const auto complaint = judge_json(json)) complaints.push_back(*complaint);
  return complaints;
}

Complaints Trial::run_fresh(const Plan& plan) {
  const Program& program = plan.programs.front();
  RunOutput sink;
  Canceller canceller(plan.cancel_after);
  sw::Run request = request_of(program, plan);
  request.cancel = canceller.token();
  const auto outcome = engine_->run(request, sink);
  if (!outcome.ok()) return {"the host failed: " + outcome.error().message};
  return judged(plan, program, *outcome, sink);
}

Complaints Trial::run_in_context(const Plan& plan) {
  const auto host = Host::open({.engines = {engine_}});
  if (!host.ok()) return {host.error().message};
  const auto context = host->sandbox("hostile").create_context({.language = language_, .id = "c"});
  if (!context.ok()) return {context.error().message};
  Complaints complaints;
  bool may_disturb = false;
  for (const Program& program : plan.programs) {
    RunOutput sink;
    Canceller canceller(plan.cancel_after);
    sw::Run request = request_of(program, plan);
    request.cancel = canceller.token();
    const auto outcome = context->run(request, sink);
    if (!outcome.ok() && request.cancel.stop_requested()) continue;  // before it began
    if (!outcome.ok()) return {"the host failed: " + outcome.error().message};
    std::ranges::move(judged(plan, program, *outcome, sink), std::back_inserter(complaints));
    may_disturb = may_disturb || program.lingers;
  }
  const std::string value = next_cell(*context, may_disturb ? 3 : 1);
  if (value != "42") complaints.push_back("the next cell of the context: " + value);
  return complaints;
}

Complaints Trial::run_by_command(const Plan& plan) {
  using std::chrono::duration_cast;
  using std::chrono::microseconds;
  const Program& program = plan.programs.front();
  const RunLimits& limits = plan.limits;
  std::vector<std::string> words = {command_.native(), "run", "--json", "-l", language_, "-"};
  const auto add = [&](const char* option, std::string value) {
    words.emplace_back(option);
    words.push_back(std::move(value));
  };
  add("--timeout",
      fmt::format("{}ms", duration_cast<std::chrono::milliseconds>(limits.wall_max).count()));
  if (limits.cpu_max.count() != 0) {
    add("--cpu",
        fmt::format("{}ms",
                    std::max<std::int64_t>(
                        duration_cast<std::chrono::milliseconds>(limits.cpu_max).count(), 1)));
  }
  add("--memory", std::to_string(limits.memory_bytes_max));
  const auto ended = run_command(words, program.code, folder_.path(), std::chrono::minutes(5));
  if (!ended.ok()) return {ended.error().message};
  if (!ended->out.ends_with('\n')) return {fmt::format("status {} and no answer", ended->status)};
  const std::string_view line = std::string_view(ended->out).substr(0, ended->out.size() - 1);
  Complaints complaints;
  if (const auto complaint = judge_json(line)) return {*complaint};
  if (const auto complaint = judge_status(ended->status, line)) complaints.push_back(*complaint);
  if (ended->resident_bytes_max > memory_bound(plan) + kMemorySlack) {
    complaints.push_back(fmt::format("{} MiB of memory", ended->resident_bytes_max >> 20));
  }
  // It starts, and has the usual grace.
  if (ended->cpu > cpu_bound(limits) + kTimeSlack) {
    complaints.push_back(fmt::format("{} of CPU time", std::chrono::duration<double>(ended->cpu)));
  }
  ++totals_.endings["by the command"];
  return complaints;
}

Complaints Trial::look_for_traces() {
  RunOutput sink;
  const auto outcome = engine_->run(probe_of(trace_probe(language_)), sink);
  if (!outcome.ok()) return {"the host failed at the next run: " + outcome.error().message};
  if (const std::string value = value_of(*outcome); value != "'clean'")
    return {"the next run: " + value};
  if (sink.out != "unfinished") return {"the next run printed " + sink.out};
  return {};
}

Complaints Trial::carry_out(const Plan& plan) {
  const std::uint64_t before = ResidentMemory::of("VmRSS");
  ResidentMemory::reset();
  Complaints complaints;
  switch (plan.manner) {
    case Manner::kFresh: complaints = run_fresh(plan); break;
    case Manner::kContext: complaints = run_in_context(plan); break;
    case Manner::kCommand: complaints = run_by_command(plan); break;
  }
  const std::uint64_t most = ResidentMemory::of("VmHWM");
  const std::uint64_t grown = most > before ? most - before : 0;
  totals_.memory_most = std::max(totals_.memory_most, grown);
  // A context has two memories, one of them stored; and its next cell is run as well.
  const std::uint64_t shares = plan.manner == Manner::kContext ? 3 : 1;
  if (grown > shares * memory_bound(plan)) {
    complaints.push_back(fmt::format("{} MiB more than before", grown >> 20));
  }
  std::ranges::move(look_for_traces(), std::back_inserter(complaints));
  return complaints;
}

}  // namespace sw::hostile
