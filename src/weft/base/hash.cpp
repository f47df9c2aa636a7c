#include "weft/base/hash.h"

#include <fmt/format.h>

namespace weft {

std::string Digest::hex() const { return fmt::format("{:016x}{:016x}", high, low); }

Hasher& Hasher::text(std::string_view bytes) {
  number(bytes.size());
  std::uint64_t word = 0;
  std::uint32_t filled = 0;
  for (const char c : bytes) {
    word |= static_cast<std::uint64_t>(static_cast<unsigned char>(c)) << (8 * filled);
    if (++filled == 8) {
      number(word);
      word = 0;
      filled = 0;
    }
  }
  if (filled != 0) number(word);
  return *this;
}

}  // namespace weft
