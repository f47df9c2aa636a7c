// The frame checksum: published values, equal results from every implementation, and detection of
// damage.

#include "weft/base/crc32c.h"
#include "weft/base/crc32.h"

#include <gtest/gtest.h>

#include <string_view>
#include <vector>

#include "weft/base/random.h"

namespace {

using weft::crc32, weft::crc32c, weft::crc32c_by_tables;

std::span<const std::byte> bytes_of(std::string_view text) { return std::as_bytes(std::span(text)); }

std::vector<std::byte> random_bytes(std::size_t count, weft::Random& random) {
  std::vector<std::byte> bytes(count);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random.below(256));
  return bytes;
}

// One bit at a time, straight from the definition: shares nothing with the code under test.
std::uint32_t crc32c_by_bits(std::span<const std::byte> bytes) {
  std::uint32_t rest = 0xffffffff;
  for (const std::byte byte : bytes) {
    rest ^= static_cast<std::uint32_t>(byte);
    for (int bit = 0; bit < 8; ++bit) rest = rest & 1 ? (rest >> 1) ^ 0x82f63b78 : rest >> 1;
  }
  return ~rest;
}

// RFC 3720, section B.4, and the check value of the CRC catalogue.
TEST(Crc32c, MatchesPublishedValues) {
  std::vector<std::byte> ascending(32);
  for (std::size_t i = 0; i < 32; ++i) ascending[i] = static_cast<std::byte>(i);
  const std::vector<std::byte> descending(ascending.rbegin(), ascending.rend());
  const struct {
    std::vector<std::byte> bytes;
    std::uint32_t checksum;
  } cases[] = {{std::vector<std::byte>(32, std::byte{0}), 0x8a9136aa},
               {std::vector<std::byte>(32, std::byte{0xff}), 0x62a8ab43},
               {ascending, 0x46dd794e},
               {descending, 0x113fdb5c},
               {{}, 0}};
  for (const auto& one : cases) {
    EXPECT_EQ(crc32c(one.bytes), one.checksum);
    EXPECT_EQ(crc32c_by_tables(one.bytes), one.checksum);
  }
  EXPECT_EQ(crc32c(bytes_of("123456789")), 0xe3069283);
}

// Lengths around every unrolled loop: 8 bytes, three stretches of 256 and three of 4096, unaligned.
TEST(Crc32c, EveryLengthAndAlignment) {
  weft::Random random(1);
  const std::vector<std::byte> bytes = random_bytes(3 * 4096 * 2 + 900, random);
  std::vector<std::size_t> lengths;
  for (std::size_t length = 0; length < 40; ++length) lengths.push_back(length);
  for (const std::size_t around : {767UL, 768UL, 1535UL, 1536UL, 12287UL, 12288UL, 13059UL, 25000UL})
    lengths.push_back(around);
  for (const std::size_t length : lengths)
    for (const std::size_t start : {0UL, 1UL, 7UL}) {
      const auto stretch = std::span(bytes).subspan(start, length);
      EXPECT_EQ(crc32c(stretch), crc32c_by_bits(stretch)) << length << " bytes from " << start;
      EXPECT_EQ(crc32c_by_tables(stretch), crc32c(stretch)) << length << " bytes from " << start;
    }
}

TEST(Crc32c, ContinuesAChecksum) {
  weft::Random random(2);
  const std::vector<std::byte> bytes = random_bytes(20000, random);
  const auto all = std::span<const std::byte>(bytes);
  for (const std::size_t cut : {0UL, 1UL, 32UL, 4096UL, 13000UL, 20000UL})
    EXPECT_EQ(crc32c(all.subspan(cut), crc32c(all.first(cut))), crc32c(all));
}

TEST(Crc32c, DetectsAnyFlippedBit) {
  weft::Random random(3);
  std::vector<std::byte> bytes = random_bytes(700, random);
  const std::uint32_t right = crc32c(bytes);
  for (std::size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    bytes[bit / 8] ^= std::byte{1} << (bit % 8);
    EXPECT_NE(crc32c(bytes), right) << bit;
    bytes[bit / 8] ^= std::byte{1} << (bit % 8);
  }
}

// The check value of the CRC catalogue, and values that zlib computes.
TEST(Crc32, MatchesPublishedValues) {
  EXPECT_EQ(crc32(bytes_of("123456789")), 0xcbf43926);
  EXPECT_EQ(crc32(bytes_of("")), 0u);
  EXPECT_EQ(crc32(bytes_of("The quick brown fox jumps over the lazy dog")), 0x414fa339u);
  EXPECT_EQ(crc32(bytes_of("56789"), crc32(bytes_of("1234"))), 0xcbf43926);
}

}  // namespace
