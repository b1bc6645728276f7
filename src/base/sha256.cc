// SPDX-FileCopyrightText: The sandbox-workers authors
// SPDX-License-Identifier: Apache-2.0
#include "sandbox_workers/base/sha256.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <openssl/evp.h>

#include <array>
#include <cerrno>

#include "sandbox_workers/base/unique_fd.h"

namespace sw {

struct Sha256::State {
  std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context{EVP_MD_CTX_new(),
                                                                  &EVP_MD_CTX_free};
};

Sha256::Sha256() : state_(std::make_unique<State>()) {
  EVP_DigestInit_ex(state_->context.get(), EVP_sha256(), nullptr);
}
Sha256::~Sha256() = default;
Sha256::Sha256(Sha256&&) noexcept = default;
Sha256& Sha256::operator=(Sha256&&) noexcept = default;

Sha256& Sha256::update(BytesView bytes) {
  EVP_DigestUpdate(state_->context.get(), bytes.data(), bytes.size());
  return *this;
}

Sha256& Sha256::field(std::string_view text) {
  return update(as_bytes(fmt::format("{}:", text.size()))).update(as_bytes(text));
}

std::string Sha256::hex() {
  std::array<unsigned char, 32> digest = {};
  unsigned int size = 0;
  EVP_DigestFinal_ex(state_->context.get(), digest.data(), &size);
  std::string text;
  for (const unsigned char byte : digest) text += fmt::format("{:02x}", byte);
  return text;
}

std::string sha256_hex(BytesView bytes) { return Sha256().update(bytes).hex(); }

Result<std::string> sha256_file(const std::filesystem::path& path) {
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return errno_error(errno, fmt::format("cannot open {}", path.native()));
  Sha256 hash;
  std::vector<std::byte> block(1 << 20);
  for (;;) {
    const ssize_t got = ::read(fd.get(), block.data(), block.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return errno_error(errno, fmt::format("cannot read {}", path.native()));
    if (got == 0) return hash.hex();
    hash.update(BytesView(block).first(static_cast<std::size_t>(got)));
  }
}

}  // namespace sw
