#include "weft/device/cpu/dropout.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

namespace weft::device::cpu {
namespace {

// Philox-4x32-10 (see base/random.h) for several counters at once, in loops that compilers
// vectorize.
constexpr std::size_t kCounters = 32;  // with fewer, gcc 12 unrolls the loops instead
constexpr std::int64_t kWords = 4 * kCounters;
using Column = std::array<std::uint32_t, kCounters>;  // one word of each counter's four

constexpr std::uint32_t low(std::uint64_t x) { return static_cast<std::uint32_t>(x); }
constexpr std::uint32_t high(std::uint64_t x) { return static_cast<std::uint32_t>(x >> 32); }

void multiply(std::uint32_t factor, const Column& column, Column& lows, Column& highs) {
  for (std::size_t i = 0; i < kCounters; ++i) {
    const std::uint64_t product = std::uint64_t{column[i]} * factor;
    lows[i] = low(product);
    highs[i] = high(product);
  }
}

void draw(std::uint64_t seed, std::uint64_t stream, std::uint64_t counter,
          std::array<std::uint32_t, kWords>& words) {
  Column c0, c1, c2, c3;
  for (std::size_t i = 0; i < kCounters; ++i) {
    c0[i] = low(counter + i);
    c1[i] = high(counter + i);
  }
  c2.fill(low(stream));
  c3.fill(high(stream));
  std::uint32_t k0 = low(seed), k1 = high(seed);
  for (int round = 0; round < 10; ++round, k0 += 0x9E3779B9, k1 += 0xBB67AE85) {
    Column low0, high0, low1, high1;
    multiply(0xD2511F53, c0, low0, high0);
    multiply(0xCD9E8D57, c2, low1, high1);
    for (std::size_t i = 0; i < kCounters; ++i) {
      c0[i] = high1[i] ^ c1[i] ^ k0;
      c1[i] = low1[i];
      c2[i] = high0[i] ^ c3[i] ^ k1;
      c3[i] = low0[i];
    }
  }
  for (std::size_t i = 0; i < kCounters; ++i) {
    words[4 * i] = c0[i];
    words[4 * i + 1] = c1[i];
    words[4 * i + 2] = c2[i];
    words[4 * i + 3] = c3[i];
  }
}

}  // namespace

void dropout(const Dropout& drop, std::uint64_t place, std::int64_t n, const float* x, float* y) {
  const auto kept = static_cast<float>(1 - drop.rate);
  // A uniform number is 24 bits over 2^24, so comparing integers is exact.
  const auto least = static_cast<std::uint32_t>(std::ceil(drop.rate * 0x1p24));
  std::array<std::uint32_t, kWords> words;
  for (std::int64_t i = 0; i < n;) {
    const auto skipped = static_cast<std::int64_t>((place + static_cast<std::uint64_t>(i)) % 4);
    const std::int64_t count = std::min(kWords - skipped, n - i);
    draw(drop.step, drop.stream, (place + static_cast<std::uint64_t>(i)) / 4, words);
    for (std::int64_t j = 0; j < count; ++j) {
      // A bit mask, since a branch would prevent vectorization.
      const std::uint32_t mask = words[skipped + j] >> 8 >= least ? ~std::uint32_t{0} : 0;
      y[i + j] = std::bit_cast<float>(std::bit_cast<std::uint32_t>(x[i + j] / kept) & mask);
    }
    i += count;
  }
}

}  // namespace weft::device::cpu
