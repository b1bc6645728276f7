// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "engine/javascript/declarations.h"

#include <utility>

#include "sandbox_workers/engine/run.h"

namespace sw::engine::javascript {

namespace {

// A name takes two bytes of a cell's code.
constexpr std::size_t kNamesMax = kCodeBytesMax / 2;

// Flags of a property, as JS_GetOwnProperty reports them.
constexpr std::uint32_t kConfigurable = 1 << 0;
constexpr std::uint32_t kWritable = 1 << 1;
constexpr std::uint32_t kDefineAll =
    (1 << 8) | (1 << 9) | (1 << 10) | (1 << 13);  // has configurable, writable, enumerable, value

}  // namespace

Result<Declarations::Property> Declarations::own_property(QuickJs& js, JsValue object,
                                                          std::uint32_t atom) {
  // Flags, then value, getter and setter, each a value.
  const std::uint32_t descriptor = js.anchors().scratch;
  SW_TRY(const std::int32_t exists,
         js.instance().call(js.exports().get_own_property, js.anchors().context, descriptor,
                            object.bits, atom));
  Property property;
  if (exists <= 0) return property;
  property.exists = true;
  property.flags = word<std::uint32_t>(js, descriptor);
  property.value = Owned(js, JsValue{word<std::uint64_t>(js, descriptor + 8)});
  const JsValue getter{word<std::uint64_t>(js, descriptor + 16)};
  const JsValue setter{word<std::uint64_t>(js, descriptor + 24)};
  SW_CHECK_OK(js.free(getter));
  SW_CHECK_OK(js.free(setter));
  return property;
}

Result<void> Declarations::prepare(QuickJs& js, const Internals& internals, JsValue code) {
  const JsValue variables = internals.global_variables_;
  auto at = word<std::uint32_t>(js, code.payload() + internals.code_offset_);
  if (word<std::uint8_t>(js, at) != internals.declare_opcode_) return {};
  SW_TRY(const JsValue kept, js.duplicate(code));
  code_ = Owned(js, kept);
  SW_TRY(const std::uint64_t global,
         js.instance().call(js.exports().global_object, js.anchors().context));
  const Owned global_object(js, JsValue{global});
  for (std::size_t count = 0; word<std::uint8_t>(js, at) == internals.declare_opcode_;
       at += kDeclareBytes) {
    if (++count > kNamesMax)
      return Error{ErrorCode::kCorrupt, "compiled code declares more than its text can", 0};
    const auto atom = word<std::uint32_t>(js, at + 1);
    const bool is_lexical = (word<std::uint8_t>(js, at + kDeclareFlagsAt) & kLexicalFlag) != 0;
    SW_TRY(Property old, own_property(js, variables, atom));
    if (old.exists) {
      SW_TRY(const std::int32_t deleted,
             js.instance().call(js.exports().delete_property, js.anchors().context, variables.bits,
                                atom, 0));
      static_cast<void>(deleted);
    }
    if (!is_lexical) continue;
    SW_TRY(const Property on_global, own_property(js, global_object.get(), atom));
    // A `var` or function of an earlier cell cannot be deleted, but a lexical declaration may hide
    // it once the check is told that this one is a `var` too. What cannot be written is the
    // language's own (undefined, NaN).
    if (on_global.exists && (on_global.flags & (kConfigurable | kWritable)) == kWritable &&
        !js.memory().store(at + kDeclareFlagsAt, std::uint8_t{0})) {
      return Error{ErrorCode::kCorrupt, "compiled code is outside the memory", 0};
    }
    Name name;
    name.atom = atom;
    name.had_old_value = old.exists && !old.value.get().is(JsValue::kUninitialized);
    name.old_flags = old.flags;
    name.old_value = std::move(old.value);
    lexical_.push_back(std::move(name));
  }
  return {};
}

Result<void> Declarations::undo_unreached(QuickJs& js, const Internals& internals) {
  const JsValue variables = internals.global_variables_;
  for (Name& name : lexical_) {
    SW_TRY(const Property now, own_property(js, variables, name.atom));
    if (now.exists) {
      if (!now.value.get().is(JsValue::kUninitialized)) continue;
      SW_TRY(const std::int32_t deleted,
             js.instance().call(js.exports().delete_property, js.anchors().context, variables.bits,
                                name.atom, 0));
      static_cast<void>(deleted);
    }
    if (!name.had_old_value) continue;
    SW_TRY(const std::int32_t defined,
           js.instance().call(js.exports().define_property, js.anchors().context, variables.bits,
                              name.atom, name.old_value.get().bits, JsValue::undefined().bits,
                              JsValue::undefined().bits,
                              static_cast<std::int32_t>(name.old_flags | kDefineAll)));
    static_cast<void>(defined);
  }
  return {};
}

}  // namespace sw::engine::javascript
