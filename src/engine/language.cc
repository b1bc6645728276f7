// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "sandbox_workers/engine/language.h"

#include <fmt/format.h>

#include <boost/json.hpp>
#include <new>

#include "engine/json_text.h"

#include "base/pieces.h"

namespace sw::engine {

namespace {

namespace json = boost::json;

/// Ends with std::bad_alloc what wants more. Small values in large numbers take many times their
/// text's size.
class LimitedMemory final : public json::memory_resource {
 private:
  // Boost.JSON gives a key's memory back with another alignment than it asked for; none is more
  // than new's.
  void* do_allocate(std::size_t bytes, std::size_t /*alignment*/) override {
    if (bytes > kHeadMemoryBytesMax - used_) throw std::bad_alloc();
    void* const memory = ::operator new(bytes);
    used_ += bytes;
    return memory;
  }
  void do_deallocate(void* memory, std::size_t bytes, std::size_t /*alignment*/) override {
    ::operator delete(memory);
    used_ -= bytes;
  }
  bool do_is_equal(const json::memory_resource& other) const noexcept override {
    return this == &other;
  }

  // The texts of the longest error, four times: the parser keeps them twice, and its buffers grow
  // by doubling.
  static constexpr std::size_t kHeadMemoryBytesMax = 4 * kReplyHeadBytesMax;
  std::size_t used_ = 0;
};

// Linux has no longer ones.
constexpr std::size_t kPathBytesMax = 4096;

const json::value* present(const json::object& object, std::string_view key) {
  const json::value* found = object.if_contains(key);
  return found == nullptr || found->is_null() ? nullptr : found;
}

GuestError to_error(const json::object& object) {
  GuestError error{.name = json::value_to<std::string>(object.at("name")),
                   .message = json::value_to<std::string>(object.at("message")),
                   .traceback = {},
                   .line_number = std::nullopt};
  if (const auto* lines = present(object, "traceback"))
    error.traceback = json::value_to<std::vector<std::string>>(*lines);
  if (const auto* line = present(object, "lineNumber")) {
    const auto number = line->to_number<std::int64_t>();
    if (number > 0 && number <= static_cast<std::int64_t>(kCodeBytesMax) + 1)
      error.line_number = number;
  }
  return error;
}

/// What a context may begin in the next time.
bool is_folder_name(std::string_view path) {
  return path.starts_with('/') && path.size() < kPathBytesMax &&
         path.find('\0') == std::string_view::npos;
}

Reply to_reply(const json::object& object, std::string body) {
  Reply reply;
  if (const auto* kind = present(object, "value")) {
    auto json = kind->as_string() == "json" ? normal_json(body) : std::nullopt;
    reply.value = json ? Value{Value::Kind::kJson, *std::move(json)}
                       : Value{Value::Kind::kText, std::move(body)};
  }
  if (const auto* error = present(object, "error")) reply.error = to_error(error->as_object());
  if (const auto* exit = present(object, "exit")) {
    // What a process can report: the low byte, as a shell shows it.
    reply.exit_code = static_cast<std::int32_t>(exit->to_number<std::int64_t>() & 0xFF);
  }
  if (const auto* cwd = present(object, "cwd"); cwd && is_folder_name(cwd->as_string())) {
    reply.cwd = std::string(cwd->as_string());
  }
  return reply;
}

}  // namespace

Guest::Guest(std::shared_ptr<const wasi::Layout> layout, const wasi::Clocks& clocks)
    : wasi_(std::move(layout), clocks, {.keep_preopens = true}) {}

Result<std::string> Guest::copy_out(std::span<const std::byte> bytes) {
  SW_CHECK_OK(instance().charge(bytes.size()));
  std::string copy;
  copy.reserve(bytes.size());
  SW_CHECK_OK(in_pieces(wasi().run().cancellation, bytes,
                        [&](std::span<const std::byte> piece) { copy += as_text(piece); }));
  return copy;
}

Result<Bytes> Language::read_module(const std::filesystem::path& package) const {
  return read_file(package / manifest_.module);
}

Result<Reply> parse_reply(std::string answer) {
  const std::size_t end = std::min(answer.find('\n'), answer.size());
  if (end > kReplyHeadBytesMax)
    return Error{ErrorCode::kCorrupt, "answer from its driver is too large", 0};
  LimitedMemory memory;
  try {
    json::parser parser(&memory);
    parser.reset(&memory);
    parser.write(with_whole_surrogates(answer.substr(0, end)));
    // The value may be large: what is left of the answer becomes it.
    answer.erase(0, end + 1);
    return to_reply(parser.release().as_object(), std::move(answer));
  } catch (const std::exception&) {
    return Error{ErrorCode::kCorrupt, "invalid answer from its driver", 0};
  }
}

}  // namespace sw::engine
