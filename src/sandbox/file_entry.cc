// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "sandbox/file_entry.h"

#include <stdexcept>

namespace sw::sandbox {

namespace json = boost::json;
using wasi::FileType;

json::object to_json(const FileEntry& entry) {
  json::object object = {{"type", static_cast<int>(entry.type)}, {"modified", entry.modified_ns}};
  if (entry.type == FileType::kRegularFile) object["sha256"] = entry.digest;
  if (entry.type == FileType::kSymbolicLink) object["target"] = entry.target;
  return object;
}

FileEntry file_entry_of(const json::value& value) {
  const json::object& object = value.as_object();
  FileEntry entry;
  entry.type = static_cast<FileType>(object.at("type").to_number<std::uint8_t>());
  entry.modified_ns = object.at("modified").to_number<std::uint64_t>();
  switch (entry.type) {
    case FileType::kDirectory: break;
    case FileType::kRegularFile:
      entry.digest = json::value_to<std::string>(object.at("sha256"));
      break;
    case FileType::kSymbolicLink:
      entry.target = json::value_to<std::string>(object.at("target"));
      break;
    default: throw std::invalid_argument("unknown type");
  }
  return entry;
}

}  // namespace sw::sandbox
