#include "weft/base/crc32c.h"

#include <array>

#if defined(__aarch64__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

#include "weft/base/crc_tables.h"

namespace weft {

namespace {

constexpr CrcTables kTables(0x82f63b78);

// The CRC instruction has a throughput of one word per cycle and a latency of two or three cycles,
// so three blocks of the bytes are processed in an interleaved way. Shift combines their
// remainders: it computes the remainder after kBytes further zero bytes. That is a linear map, so
// one table per byte suffices.
#if defined(__aarch64__) || defined(__x86_64__)

class Shift {
 public:
  explicit constexpr Shift(std::size_t bytes) {
    std::array<std::uint32_t, 32> map{};  // column i: the image of bit i, initially for one zero byte
    for (std::size_t i = 0; i < 32; ++i) {
      const std::uint32_t bit = 1U << i;
      map[i] = (bit >> 8) ^ kTables.of_byte(bit & 255);
    }
    for (; bytes > 1; bytes /= 2) {  // REQUIRES: a power of two
      std::array<std::uint32_t, 32> twice{};
      for (std::size_t i = 0; i < 32; ++i) twice[i] = apply(map, map[i]);
      map = twice;
    }
    for (std::uint32_t k = 0; k < 4; ++k)
      for (std::uint32_t byte = 0; byte < 256; ++byte) tables_[k][byte] = apply(map, byte << (8 * k));
  }

  std::uint32_t operator()(std::uint32_t rest) const {
    return tables_[0][rest & 255] ^ tables_[1][rest >> 8 & 255] ^ tables_[2][rest >> 16 & 255] ^
           tables_[3][rest >> 24];
  }

 private:
  static constexpr std::uint32_t apply(const std::array<std::uint32_t, 32>& map, std::uint32_t rest) {
    std::uint32_t sum = 0;
    for (std::size_t i = 0; rest != 0; ++i, rest >>= 1)
      if (rest & 1) sum ^= map[i];
    return sum;
  }

  std::array<std::array<std::uint32_t, 256>, 4> tables_{};
};

// Long blocks amortize the cost of combining; short ones leave less to the slow tail.
constexpr std::size_t kLong = 4096, kShort = 256;
constexpr Shift kLongShift(kLong), kShortShift(kShort);

#if defined(__x86_64__)
#define WEFT_WITH_CRC __attribute__((target("sse4.2")))
bool has_instruction() { return __builtin_cpu_supports("sse4.2"); }
WEFT_WITH_CRC inline std::uint32_t feed(std::uint32_t rest, std::uint64_t word) {
  return static_cast<std::uint32_t>(__builtin_ia32_crc32di(rest, word));
}
WEFT_WITH_CRC inline std::uint32_t feed_byte(std::uint32_t rest, std::byte byte) {
  return __builtin_ia32_crc32qi(rest, static_cast<unsigned char>(byte));
}
#else
bool has_instruction() { return (::getauxval(AT_HWCAP) & HWCAP_CRC32) != 0; }
#if defined(__clang__)
#define WEFT_WITH_CRC __attribute__((target("crc")))
WEFT_WITH_CRC inline std::uint32_t feed(std::uint32_t rest, std::uint64_t word) {
  return __builtin_arm_crc32cd(rest, word);
}
WEFT_WITH_CRC inline std::uint32_t feed_byte(std::uint32_t rest, std::byte byte) {
  return __builtin_arm_crc32cb(rest, static_cast<unsigned char>(byte));
}
#else
#define WEFT_WITH_CRC __attribute__((target("+crc")))
WEFT_WITH_CRC inline std::uint32_t feed(std::uint32_t rest, std::uint64_t word) {
  return __builtin_aarch64_crc32cx(rest, word);
}
WEFT_WITH_CRC inline std::uint32_t feed_byte(std::uint32_t rest, std::byte byte) {
  return __builtin_aarch64_crc32cb(rest, static_cast<unsigned char>(byte));
}
#endif
#endif

template <std::size_t kStretch>
WEFT_WITH_CRC std::uint32_t feed_three(std::uint32_t rest, std::span<const std::byte>& bytes,
                                       const Shift& shift) {
  while (bytes.size() >= 3 * kStretch) {
    const std::byte* at = bytes.data();
    std::uint32_t second = 0, third = 0;
    for (std::size_t i = 0; i < kStretch; i += 8) {
      rest = feed(rest, load_little_endian(at + i));
      second = feed(second, load_little_endian(at + kStretch + i));
      third = feed(third, load_little_endian(at + 2 * kStretch + i));
    }
    rest = shift(shift(rest) ^ second) ^ third;
    bytes = bytes.subspan(3 * kStretch);
  }
  return rest;
}

WEFT_WITH_CRC std::uint32_t crc32c_by_instruction(std::span<const std::byte> bytes, std::uint32_t before) {
  std::uint32_t rest = ~before;
  rest = feed_three<kLong>(rest, bytes, kLongShift);
  rest = feed_three<kShort>(rest, bytes, kShortShift);
  for (; bytes.size() >= 8; bytes = bytes.subspan(8)) rest = feed(rest, load_little_endian(bytes.data()));
  for (const std::byte byte : bytes) rest = feed_byte(rest, byte);
  return ~rest;
}
#undef WEFT_WITH_CRC

#else

bool has_instruction() { return false; }
std::uint32_t crc32c_by_instruction(std::span<const std::byte> bytes, std::uint32_t before) {
  return crc32c_by_tables(bytes, before);
}

#endif

}  // namespace

std::uint32_t crc32c_by_tables(std::span<const std::byte> bytes, std::uint32_t before) {
  return ~kTables.feed(~before, bytes);
}

std::uint32_t crc32c(std::span<const std::byte> bytes, std::uint32_t before) {
  static const bool by_instruction = has_instruction();
  return by_instruction ? crc32c_by_instruction(bytes, before) : crc32c_by_tables(bytes, before);
}

}  // namespace weft
