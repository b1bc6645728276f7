// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Things that a durable session needs and QuickJS has no function for. The host reaches into the
// interpreter's structures for them:
//
//   - a `let`, `const` or `class` of an earlier cell may be declared again;
//   - the random generator behind Math.random starts anew after a restore;
//   - a cell's value comes in an object that no getter, setter or `then` of Object.prototype gets
//   to see;
//   - errors of the engine in the driver's realm lead back to the user's;
//   - promise jobs that are left when a cell was stopped are set aside, or they would run in the
//   next one.
//
// Where these structures lie is not written down here but found out at bake, by watching what a
// known piece of code changes; each find is checked against a second fact, so another build of
// QuickJS fails the bake instead of being misread.

#include <cstdint>
#include <functional>

#include "engine/javascript/quickjs.h"
#include "sandbox_workers/base/result.h"
#include "sandbox_workers/engine/language.h"

namespace sw::engine::javascript {

// A "declare" instruction: opcode, atom, flags.
inline constexpr std::uint32_t kDeclareBytes = 6;
inline constexpr std::uint32_t kDeclareFlagsAt = 5;
inline constexpr std::uint8_t kLexicalFlag = 1 << 7;

/// What lies in the guest's memory; 0 beyond its end.
template <class T>
T word(const QuickJs& js, std::uint32_t address) {
  return js.memory().load<T>(address).value_or(0);
}

class Internals {
 public:
  /// At bake, when no job is pending.
  static Result<Internals> find(QuickJs& js);
  static Result<Internals> from_facts(const BakeFacts& facts);
  void add_to(BakeFacts& facts) const;

  JsValue global_variables() const { return global_variables_; }

  /// Lets compiled code hand over its value in an object without a prototype.
  Result<void> guard_value(QuickJs& js, JsValue code) const;

  /// Fresh bytes from the kernel.
  Result<void> reseed(QuickJs& js) const;
  /// Moves the pending jobs to the list at `list`, in no time whatever their number.
  Result<void> set_aside_jobs(QuickJs& js, std::uint32_t list) const;
  /// Frees jobs of that list until it is empty or `must_stop` says so.
  Result<void> free_jobs(QuickJs& js, std::uint32_t list,
                         const std::function<bool()>& must_stop) const;

 private:
  friend class Declarations;

  Result<void> find_object_opcodes(QuickJs& js);
  Result<void> check_guard(QuickJs& js) const;

  JsValue global_variables_;  ///< holds top-level let, const and class; made once, never replaced
  std::uint32_t random_state_ = 0;
  std::uint32_t job_list_ = 0;
  std::uint32_t code_offset_ = 0;  ///< of the pointer to the instructions in a compiled function
  // How compiled code makes objects and gives them properties.
  std::uint32_t value_atom_ = 0;
  std::uint32_t object_opcode_ = 0;
  std::uint32_t null_object_opcode_ = 0;  ///< without a prototype
  std::uint32_t null_object_kind_ = 0;    ///< the byte after it
  std::uint32_t define_opcode_ = 0;       ///< runs no setter, and leaves the object on the stack
  std::uint32_t declare_opcode_ =
      0;  ///< "check that this name can be declared"; a program begins with these
};

/// What the engine itself throws in the context `realm`, past every `catch`, gets the prototype of
/// the current context's: as the reason of a promise it may reach programs, to which its own would
/// open the realm. At bake.
Result<void> share_internal_error(QuickJs& js, std::uint32_t realm);

}  // namespace sw::engine::javascript
