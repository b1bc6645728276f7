// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "sandbox/sandboxes.h"

#include "sandbox/names.h"
#include "sandbox_workers/protocol/answers.h"

namespace sw::sandbox {

Sandboxes::Sandboxes(object::ObjectHost& objects, const SandboxParts& parts)
    : objects_(objects), parts_(parts) {
  objects_.add_class(
      kSandboxClass,
      {Sandbox::schema(),
       [&parts](storage::ObjectStorage& storage) -> Result<std::unique_ptr<object::Object>> {
         return std::unique_ptr<object::Object>(std::make_unique<Sandbox>(storage, parts));
       }});
}

Result<std::shared_ptr<Sandbox>> Sandboxes::get(std::string_view id) {
  SW_TRY(const storage::ObjectName name, object_name(id));
  return objects_.get<Sandbox>(name);
}

protocol::Response Sandboxes::fetch(const protocol::Request& request) {
  const auto id = protocol::find_header(request.headers, "x-sandbox-id").value_or("");
  const auto sandbox = get(id);
  if (sandbox.ok()) return (*sandbox)->fetch(request);
  return protocol::error_response(sandbox.error(), parts_.clock.now().time_since_epoch().count());
}

}  // namespace sw::sandbox
