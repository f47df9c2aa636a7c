#include "weft/base/hash.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include <fmt/format.h>

namespace weft {
namespace {

// The first bytes, up to eight, as a little-endian word.
std::uint64_t little_endian(std::string_view bytes) {
  std::uint64_t word = 0;
  if (bytes.size() >= sizeof word && std::endian::native == std::endian::little) {
    std::memcpy(&word, bytes.data(), sizeof word);
    return word;
  }
  for (std::size_t i = 0; i < std::min(bytes.size(), sizeof word); ++i)
    word |= static_cast<std::uint64_t>(static_cast<unsigned char>(bytes[i])) << (8 * i);
  return word;
}

}  // namespace

std::string Digest::hex() const { return fmt::format("{:016x}{:016x}", high, low); }

Hasher& Hasher::text(std::string_view bytes) {
  number(bytes.size());
  Hasher fed = *this;  // a local copy, so that the compiler knows that `bytes` cannot alias it
  for (; bytes.size() >= 8; bytes.remove_prefix(8)) fed.number(little_endian(bytes));
  if (!bytes.empty()) fed.number(little_endian(bytes));
  return *this = fed;
}

}  // namespace weft
