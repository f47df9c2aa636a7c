// weft/base/hash.h -- a 128-bit content hash that is the same on every machine and run.
//
//   Digest d = Hasher().text("conv2d").number(3).digest();
//
// Two 64-bit lanes, each a multiply-and-fold of the bytes fed so far. It is not cryptographic and
// does not resist deliberate collisions. Numbers are fed by value, not by memory representation, so
// byte order does not matter.
#pragma once
#include <bit>
#include <compare>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace weft {

struct Digest {
  std::uint64_t high = 0;
  std::uint64_t low = 0;

  std::string hex() const;  // 32 digits
  friend auto operator<=>(const Digest&, const Digest&) = default;
};

// Folds the 128-bit product of two words into one.
constexpr std::uint64_t multiply_fold(std::uint64_t a, std::uint64_t b) {
  __extension__ using Wide = unsigned __int128;
  const Wide product = static_cast<Wide>(a) * b;
  return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
}

// Scrambles a 64-bit word, for tables and seeds.
constexpr std::uint64_t mix(std::uint64_t x) {
  x ^= x >> 32;
  x *= 0xe9846af9b1a615d5u;
  x ^= x >> 32;
  x *= 0xe9846af9b1a615d5u;
  x ^= x >> 28;
  return x;
}

class Hasher {
 public:
  Hasher& number(std::uint64_t word) {
    high_ = multiply_fold(high_ ^ word, kHigh) + word;
    low_ = multiply_fold(low_ + word, kLow) ^ std::rotl(word, 32);
    return *this;
  }
  Hasher& real(double value) {
    // -0.0 and 0.0 are equal, so their hashes must be equal.
    return number(std::bit_cast<std::uint64_t>(value == 0.0 ? 0.0 : value));
  }
  Hasher& text(std::string_view bytes);
  Hasher& digest_of(const Digest& inner) { return number(inner.high).number(inner.low); }

  Digest digest() const {
    return Digest{mix(high_ ^ multiply_fold(low_, kLow)), mix(low_ + multiply_fold(high_, kHigh))};
  }

 private:
  static constexpr std::uint64_t kHigh = 0x9e3779b97f4a7c15u;  // odd, with well mixed bits
  static constexpr std::uint64_t kLow = 0xc2b2ae3d27d4eb4fu;
  std::uint64_t high_ = 0x243f6a8885a308d3u;  // digits of pi, a nothing-up-my-sleeve number
  std::uint64_t low_ = 0x13198a2e03707344u;
};

}  // namespace weft

template <>
struct std::hash<weft::Digest> {
  std::size_t operator()(const weft::Digest& digest) const noexcept {
    return static_cast<std::size_t>(digest.high ^ digest.low);
  }
};
