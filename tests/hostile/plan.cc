// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "hostile/plan.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

namespace sw::hostile {

namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

// A run that a context or a process is made for takes much longer than a fresh one.
constexpr std::uint64_t kContextShare = 10;
constexpr std::uint64_t kCommandShare = 40;
constexpr std::uint64_t kCancelShare = 30;

std::uint64_t draw_memory(Dice& dice, std::uint64_t image_bytes) {
  constexpr std::uint64_t kMost = std::uint64_t{1} << 30;
  if (dice.one_in(20)) return dice.magnitude(kMost);  // perhaps less than it begins with
  if (dice.one_in(3)) return kMost;
  return image_bytes + dice.magnitude(std::uint64_t{64} << 20);
}

RunLimits draw_limits(Dice& dice, std::uint64_t image_bytes) {
  RunLimits limits;
  // What sleeps is waited for; what computes has CPU time, which a busy machine does not use up.
  limits.wall_max = milliseconds(50 + dice.magnitude(400));
  if (!dice.one_in(5)) limits.cpu_max = microseconds(1000 + dice.magnitude(32'000));
  limits.grace = milliseconds(dice.magnitude(60));
  limits.memory_bytes_max = draw_memory(dice, image_bytes);
  limits.output_bytes_max = dice.magnitude(std::uint64_t{2} << 20);
  limits.result_bytes_max = dice.magnitude(std::uint64_t{2} << 20);
  return limits;
}

/// Limits that leave only one ending.
RunLimits known_limits(Dice& dice, const Known& known, std::uint64_t image_bytes) {
  RunLimits limits;
  limits.wall_max = std::chrono::minutes(10);
  if (known.ending == "time-limit") limits.cpu_max = milliseconds(dice.between(10, 60));
  if (known.ending == "memory-limit") {
    limits.memory_bytes_max =
        image_bytes + (std::uint64_t{8} << 20) + dice.magnitude(std::uint64_t{32} << 20);
  }
  return limits;
}

}  // namespace

Plan draw_plan(const Grammar& grammar, std::uint64_t seed, std::uint64_t image_bytes) {
  Dice dice(seed);
  Plan plan;
  plan.seed = seed;
  plan.image_bytes = image_bytes;
  if (dice.one_in(kContextShare)) plan.manner = Manner::kContext;
  else if (dice.one_in(kCommandShare)) plan.manner = Manner::kCommand;
  plan.programs.push_back(grammar.draw(dice));
  if (const auto& known = plan.programs.front().known) {
    plan.limits = known_limits(dice, *known, image_bytes);
    return plan;
  }
  if (plan.manner == Manner::kContext) {
    for (std::uint64_t more = dice.below(3); more > 0; --more) {
      plan.programs.push_back(grammar.draw(dice));
      plan.programs.back().known.reset();  // the cells before it may decide otherwise
    }
  }
  plan.limits = draw_limits(dice, image_bytes);
  if (plan.manner != Manner::kCommand && dice.one_in(kCancelShare)) {
    plan.cancel_after = microseconds(dice.magnitude(20'000));
  }
  return plan;
}

std::string describe(const Plan& plan, std::size_t bytes_max) {
  constexpr const char* kManners[] = {"fresh", "in a context", "by the command"};
  const RunLimits& limits = plan.limits;
  std::string text = fmt::format(
      "{}, wall {}, cpu {}, grace {}, memory {} bytes, output {} bytes, result {} bytes{}\n",
      kManners[static_cast<int>(plan.manner)],
      std::chrono::duration_cast<milliseconds>(limits.wall_max),
      std::chrono::duration_cast<microseconds>(limits.cpu_max),
      std::chrono::duration_cast<milliseconds>(limits.grace), limits.memory_bytes_max,
      limits.output_bytes_max, limits.result_bytes_max,
      plan.cancel_after ? fmt::format(", cancelled after {}", *plan.cancel_after) : "");
  for (const Program& program : plan.programs) {
    text +=
        program.known ? fmt::format("--- program ({})\n", program.known->ending) : "--- program\n";
    text += program.code.substr(0, bytes_max);
    if (program.code.size() > bytes_max)
      text += fmt::format("\n… ({} bytes; --print shows all)", program.code.size());
    text += '\n';
  }
  return text;
}

}  // namespace sw::hostile
