// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Host functions: ordinary C++ callables whose Wasm signature is read off their types.
//
//   linker.define("env", "add",
//                 [](Caller& caller, std::int32_t a, std::int32_t b) { return a + b; });
//
// Parameters are Caller& and then any of std::int32_t, std::uint32_t, std::int64_t, std::uint64_t,
// float, double. The result is one of those, void, or a Result of either; an Error ends the guest's
// run with that error (a trap the guest cannot catch), and the instance must then be thrown away.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "sandbox_workers/base/result.h"
#include "sandbox_workers/wasm/memory_view.h"

namespace sw::wasm {

class Runtime;
class Instance;
class Module;

/// What the host keeps for one instance (its open files, streams, …); host functions reach it
/// through their Caller. Owned by whoever made the instance, and outlives it.
class HostState {
 public:
  virtual ~HostState() = default;
};

/// One call from the guest into the host. Valid during that call only.
class Caller {
 public:
  explicit Caller(Instance& instance) : instance_(instance) {}
  Instance& instance() const { return instance_; }
  /// The guest's memory now.
  MemoryView memory() const;
  HostState& host() const;

 private:
  Instance& instance_;
};

enum class ValueType : std::uint8_t { kI32, kI64, kF32, kF64 };

/// One Wasm value; has the layout of Wasmtime's raw values. Only the member that fits the signature
/// is valid.
union RawValue {
  std::int32_t i32;
  std::int64_t i64;
  float f32;
  double f64;
  std::uint8_t v128[16];
};

struct Signature {
  std::vector<ValueType> params;
  std::vector<ValueType> results;
  bool operator==(const Signature&) const = default;
};

/// Arguments come in `values`, results go to its start.
using HostFunction = std::function<Result<void>(Caller&, RawValue* values)>;

namespace detail {

template <class T>
constexpr ValueType value_type() {
  if constexpr (std::is_same_v<T, std::int32_t> || std::is_same_v<T, std::uint32_t>)
    return ValueType::kI32;
  else if constexpr (std::is_same_v<T, std::int64_t> || std::is_same_v<T, std::uint64_t>)
    return ValueType::kI64;
  else if constexpr (std::is_same_v<T, float>) return ValueType::kF32;
  else {
    static_assert(std::is_same_v<T, double>, "not a Wasm value type");
    return ValueType::kF64;
  }
}

template <class T>
T from_raw(const RawValue& raw) {
  if constexpr (value_type<T>() == ValueType::kI32) return static_cast<T>(raw.i32);
  else if constexpr (value_type<T>() == ValueType::kI64) return static_cast<T>(raw.i64);
  else if constexpr (value_type<T>() == ValueType::kF32) return raw.f32;
  else return raw.f64;
}

template <class T>
void to_raw(RawValue& raw, T value) {
  if constexpr (value_type<T>() == ValueType::kI32) raw.i32 = static_cast<std::int32_t>(value);
  else if constexpr (value_type<T>() == ValueType::kI64) raw.i64 = static_cast<std::int64_t>(value);
  else if constexpr (value_type<T>() == ValueType::kF32) raw.f32 = value;
  else raw.f64 = value;
}

template <class T>
struct Unwrapped {
  using type = T;
  static constexpr bool kIsResult = false;
};
template <class T>
struct Unwrapped<Result<T>> {
  using type = T;
  static constexpr bool kIsResult = true;
};

template <class R, class... A>
Signature signature_of() {
  Signature signature;
  (signature.params.push_back(value_type<A>()), ...);
  if constexpr (!std::is_void_v<R>) signature.results.push_back(value_type<R>());
  return signature;
}

template <class F, class R, class... A, std::size_t... I>
Result<void> invoke_host(F& function, Caller& caller, RawValue* values, std::index_sequence<I...>) {
  using Value = typename Unwrapped<R>::type;
  // The results overwrite the arguments, so the arguments are copied first.
  const std::tuple<A...> arguments{from_raw<A>(values[I])...};
  if constexpr (Unwrapped<R>::kIsResult) {
    auto result = function(caller, std::get<I>(arguments)...);
    if (!result.ok()) return std::move(result).error();
    if constexpr (!std::is_void_v<Value>) to_raw<Value>(values[0], *result);
  } else if constexpr (std::is_void_v<R>) {
    function(caller, std::get<I>(arguments)...);
  } else {
    to_raw<R>(values[0], function(caller, std::get<I>(arguments)...));
  }
  return {};
}

}  // namespace detail

/// Host functions by module and name. Build it once, then make an InstancePre per module.
/// Threads: not thread-safe while defining; after that it is only read.
class Linker {
 public:
  explicit Linker(Runtime& runtime);
  ~Linker();
  Linker(Linker&&) noexcept;
  Linker& operator=(Linker&&) noexcept;

  /// Defines a function; a second definition of the same name is an error.
  Result<void> define_raw(std::string_view module, std::string_view name,
                          const Signature& signature, HostFunction function);

  template <class F>
  Result<void> define(std::string_view module, std::string_view name, F function) {
    return define_typed(module, name, std::function(std::move(function)));
  }

  /// All that were defined, for tests that go through them.
  struct Definition {
    std::string module;
    std::string name;
    Signature signature;
  };
  const std::vector<Definition>& definitions() const { return definitions_; }

  /// Gives every function import of `module` that is still missing a stub which traps when called,
  /// naming the import.
  Result<void> define_missing_as_traps(const Module& module);

 private:
  friend class InstancePre;
  struct State;

  template <class R, class... A>
  Result<void> define_typed(std::string_view module, std::string_view name,
                            std::function<R(Caller&, A...)> function) {
    return define_raw(module, name,
                      detail::signature_of<typename detail::Unwrapped<R>::type, A...>(),
                      [function = std::move(function)](Caller& caller, RawValue* values) mutable {
                        return detail::invoke_host<decltype(function), R, A...>(
                            function, caller, values, std::index_sequence_for<A...>());
                      });
  }

  std::unique_ptr<State> state_;
  std::vector<Definition> definitions_;
};

}  // namespace sw::wasm
