// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Guests of a few lines for tests, and what they run on.

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <memory>
#include <string_view>

#include "sandbox_workers/base/files.h"
#include "sandbox_workers/wasm/guest_thread.h"
#include "sandbox_workers/wasm/image.h"
#include "sandbox_workers/wasm/instance.h"
#include "sandbox_workers/wasm/linker.h"
#include "sandbox_workers/wasm/module.h"
#include "sandbox_workers/wasm/runtime.h"

namespace sw::wasm {

inline Runtime& shared_engine() {
  static const auto runtime = Runtime::create({}).value();
  return *runtime;
}

inline Runtime& engine_with_checks() {
  static const auto runtime = Runtime::create({.stop_means = StopMeans::kEpoch}).value();
  return *runtime;
}

inline Runtime& runtime_of(StopMeans means) {
  return means == StopMeans::kEpoch ? engine_with_checks() : shared_engine();
}

/// Runs the test's body where guests may run.
inline void on_guest_thread(const std::function<void()>& body) {
  ASSERT_TRUE(run_on_guest_thread(shared_engine().options(), body).ok());
}

struct Guest {
  HostState host;
  std::shared_ptr<InstancePre> pre;
  std::unique_ptr<Instance> instance;
};

struct Setup {
  std::function<void(Linker&)> define = [](Linker&) {};
  bool with_image = false;
  std::uint64_t memory_bytes_max = std::uint64_t{64} << 20;
  StopMeans stop_means = StopMeans::kFault;
};

inline std::shared_ptr<const Image> image_of(BytesView memory) {
  auto folder =
      TemporaryDirectory::create(std::filesystem::temp_directory_path(), "sw-image-").value();
  EXPECT_TRUE(Image::write(folder.path() / "image", memory).ok());
  return Image::open(folder.path() / "image").value();
}

/// Prepares, compiles and instantiates a module; with an image of its memory right after its data
/// segments.
inline std::unique_ptr<Guest> make_guest(std::string_view wat, const Setup& setup = {}) {
  auto guest = std::make_unique<Guest>();
  const PreparedModule prepared = prepare_module(wat_to_wasm(wat).value()).value();
  Runtime& runtime = runtime_of(setup.stop_means);
  const Module module = Module::compile(runtime, prepared.wasm).value();
  Linker linker(runtime);
  setup.define(linker);
  guest->pre = InstancePre::create(runtime, linker, module, prepared.facts, nullptr).value();
  const InstanceLimits limits{.memory_bytes_max = setup.memory_bytes_max};
  guest->instance = guest->pre->instantiate(guest->host, limits).value();
  for (const DataSegment& segment : prepared.segments) {
    const auto to = guest->instance->memory().range(segment.offset, segment.bytes.size()).value();
    std::ranges::copy(segment.bytes, to.begin());
  }
  if (setup.with_image) {
    const auto image = image_of(guest->instance->memory().bytes());
    guest->instance.reset();
    guest->pre = InstancePre::create(runtime, linker, module, prepared.facts, image).value();
    guest->instance = guest->pre->instantiate(guest->host, limits).value();
  }
  return guest;
}

template <class F>
Function<F> find(Guest& guest, std::string_view name) {
  return guest.instance->function<F>(name).value();
}

inline constexpr std::string_view kCounter = R"((module
  (memory (export "memory") 2)
  (global $stack (mut i32) (i32.const 4096))
  (data (i32.const 16) "\2a\00\00\00")
  (func (export "get") (param i32) (result i32) (i32.load (local.get 0)))
  (func (export "set") (param i32 i32) (i32.store (local.get 0) (local.get 1)))
  (func (export "set_global") (param i32) (global.set $stack (local.get 0)))
  (func (export "grow") (param i32) (result i32) (memory.grow (local.get 0)))
  (func (export "trap") unreachable)
  (func $deep (export "deep") (param i32) (result i32)
    (if (result i32) (i32.eqz (local.get 0)) (then (i32.const 0))
      (else (i32.add (i32.const 1) (call $deep (i32.sub (local.get 0) (i32.const 1))))))) ))";

}  // namespace sw::wasm
