// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "sandbox/binding.h"

#include <fmt/format.h>

#include "sandbox/names.h"
#include "sandbox_workers/runtime/answers.h"

namespace sw::sandbox {

Result<Binding> Binding::find(const runtime::Bindings& bindings, std::string_view name) {
  const auto found = bindings.find(name);
  if (!is_identifier(name) || found == bindings.end() || !found->second) {
    return runtime::refusal(fmt::format("Unknown binding '{}'", name));
  }
  return Binding(found->first, found->second);
}

Result<runtime::WorkerInfo> Binding::probe() const {
  auto info = worker_->info();
  if (!info.ok()) {
    return runtime::refusal(
        fmt::format("Binding '{}' is not a sandbox-workers runtime Worker", name_));
  }
  if (info->protocol != runtime::kProtocolVersion) {
    return runtime::refusal(
        fmt::format("Binding '{}' speaks interpreter protocol {}; this caller supports {}", name_,
                    info->protocol, runtime::kProtocolVersion));
  }
  return info;
}

Result<std::unique_ptr<runtime::Interpreter>> Binding::interpreter(std::string_view key) const {
  return answer(worker_->interpreter(key));
}

}  // namespace sw::sandbox
