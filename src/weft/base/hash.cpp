#include "weft/base/hash.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include <fmt/format.h>

namespace weft {
namespace {

// The word that the first bytes are, up to eight of them.
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
  Hasher fed = *this;  // a copy, whose lanes no byte can be suspected to change
  for (; bytes.size() >= 8; bytes.remove_prefix(8)) fed.number(little_endian(bytes));
  if (!bytes.empty()) fed.number(little_endian(bytes));
  return *this = fed;
}

}  // namespace weft
