// weft/base/crc_tables.h -- table-driven 32-bit CRC for any polynomial.
//
//   constexpr CrcTables kTables(0x82f63b78);
//   ~kTables.feed(~0u, bytes)
#pragma once
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace weft {

inline std::uint64_t load_little_endian(const std::byte* bytes) {
  std::uint64_t word;
  std::memcpy(&word, bytes, sizeof word);
  if constexpr (std::endian::native == std::endian::big) word = __builtin_bswap64(word);
  return word;
}

class CrcTables {
 public:
  // Reflected bit order: the coefficient of x^31 is the lowest bit.
  explicit constexpr CrcTables(std::uint32_t polynomial) {
    for (std::uint32_t byte = 0; byte < 256; ++byte) {
      std::uint32_t rest = byte;
      for (int bit = 0; bit < 8; ++bit) rest = (rest >> 1) ^ (rest & 1 ? polynomial : 0);
      tables_[0][byte] = rest;
    }
    for (std::size_t byte = 0; byte < 256; ++byte)
      for (std::size_t k = 1; k < 8; ++k) {
        const std::uint32_t before = tables_[k - 1][byte];
        tables_[k][byte] = (before >> 8) ^ tables_[0][before & 255];
      }
  }

  // The contribution of byte b.
  constexpr std::uint32_t of_byte(std::uint32_t byte) const { return tables_[0][byte]; }

  // The remainder after these bytes, computed eight at a time.
  std::uint32_t feed(std::uint32_t rest, std::span<const std::byte> bytes) const {
    for (; bytes.size() >= 8; bytes = bytes.subspan(8)) {
      const std::uint64_t word = load_little_endian(bytes.data()) ^ rest;
      rest = 0;
      for (std::size_t k = 0; k < 8; ++k) rest ^= tables_[7 - k][word >> (8 * k) & 255];
    }
    for (const std::byte byte : bytes)
      rest = (rest >> 8) ^ tables_[0][(rest ^ static_cast<std::uint32_t>(byte)) & 255];
    return rest;
  }

 private:
  std::array<std::array<std::uint32_t, 256>, 8> tables_{};  // [k][b]: for byte b with k more bytes after it
};

}  // namespace weft
