#include "weft/base/random.h"

#include <cmath>
#include <numbers>

#include "weft/base/check.h"

namespace weft {

std::array<std::uint32_t, 4> philox(std::uint64_t seed, std::uint64_t stream, std::uint64_t counter) {
  // Multipliers and key increments are the paper's.
  constexpr std::uint64_t kM0 = 0xD2511F53, kM1 = 0xCD9E8D57;
  constexpr std::uint32_t kW0 = 0x9E3779B9, kW1 = 0xBB67AE85;
  const auto lo = [](std::uint64_t x) { return static_cast<std::uint32_t>(x); };
  const auto hi = [](std::uint64_t x) { return static_cast<std::uint32_t>(x >> 32); };

  std::array<std::uint32_t, 4> c = {lo(counter), hi(counter), lo(stream), hi(stream)};
  std::uint32_t k0 = lo(seed), k1 = hi(seed);
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t p0 = kM0 * c[0], p1 = kM1 * c[2];
    c = {hi(p1) ^ c[1] ^ k0, lo(p1), hi(p0) ^ c[3] ^ k1, lo(p0)};
    k0 += kW0;
    k1 += kW1;
  }
  return c;
}

float uniform_at(std::uint64_t seed, std::uint64_t stream, std::uint64_t position) {
  const auto words = philox(seed, stream, position / 4);
  return static_cast<float>(words[position % 4] >> 8) * 0x1p-24f;
}

double normal_at(std::uint64_t seed, std::uint64_t stream, std::uint64_t position) {
  const auto words = philox(seed, stream, position / 2);
  const std::size_t pair = (position % 2) * 2;
  // The half keeps the first away from zero, whose logarithm is not finite.
  const double radius = (words[pair] + 0.5) * 0x1p-32;
  const double angle = words[pair + 1] * 0x1p-32;
  return std::sqrt(-2.0 * std::log(radius)) * std::cos(2.0 * std::numbers::pi * angle);
}

std::uint64_t Random::next() {
  const auto words = philox(seed_, stream_, counter_++);
  return (static_cast<std::uint64_t>(words[0]) << 32) | words[1];
}

std::uint64_t Random::below(std::uint64_t limit) {
  WEFT_CHECK(limit > 0);
  __extension__ using Wide = unsigned __int128;
  return static_cast<std::uint64_t>((static_cast<Wide>(next()) * limit) >> 64);
}

std::int64_t Random::between(std::int64_t low, std::int64_t high) {
  WEFT_CHECK(low <= high);
  return low + static_cast<std::int64_t>(below(static_cast<std::uint64_t>(high - low) + 1));
}

double Random::uniform() { return static_cast<double>(next() >> 11) * 0x1p-53; }

}  // namespace weft
