#include "weft/base/random.h"

#include <cmath>
#include <cstring>
#include <numbers>

#include "weft/base/check.h"

#ifdef __clang__
#pragma STDC FP_CONTRACT OFF  // no fused multiply-add, so that all machines round alike
#endif

namespace weft {

namespace {

// The multipliers and key increments of the paper.
constexpr std::uint64_t kM0 = 0xD2511F53, kM1 = 0xCD9E8D57;
constexpr std::uint32_t kW0 = 0x9E3779B9, kW1 = 0xBB67AE85;
constexpr int kPhiloxRounds = 10;

}  // namespace

std::array<std::uint32_t, 4> philox(std::uint64_t seed, std::uint64_t stream, std::uint64_t counter) {
  const auto lo = [](std::uint64_t x) { return static_cast<std::uint32_t>(x); };
  const auto hi = [](std::uint64_t x) { return static_cast<std::uint32_t>(x >> 32); };

  std::array<std::uint32_t, 4> c = {lo(counter), hi(counter), lo(stream), hi(stream)};
  std::uint32_t k0 = lo(seed), k1 = hi(seed);
  for (int round = 0; round < kPhiloxRounds; ++round) {
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

namespace {

// Eight at a time, as vectors of any hardware width.
constexpr std::size_t kSide = 8;
using Whole = std::uint64_t __attribute__((vector_size(kSide * 8)));
using Real = double __attribute__((vector_size(kSide * 8)));

// Like philox(), for eight counters. The words are in the low halves.
std::array<Whole, 4> philox(std::uint64_t seed, std::uint64_t stream, const Whole& counters) {
  constexpr std::uint64_t kLow = 0xffffffff;
  const Whole none = {};
  std::array<Whole, 4> c = {counters & kLow, counters >> 32, none + (stream & kLow), none + (stream >> 32)};
  std::uint64_t k0 = seed & kLow, k1 = seed >> 32;
  for (int round = 0; round < kPhiloxRounds; ++round) {
    const Whole p0 = c[0] * kM0, p1 = c[2] * kM1;
    c = {(p1 >> 32) ^ c[1] ^ k0, p1 & kLow, (p0 >> 32) ^ c[3] ^ k1, p0 & kLow};
    k0 = (k0 + kW0) & kLow;
    k1 = (k1 + kW1) & kLow;
  }
  return c;
}

// log m = 2 (s + s^3/3 + s^5/5 + ..) with s = (m - 1) / (m + 1); sine and cosine for angles up to
// pi / 4.
struct Series {
  static constexpr int kLog = 12, kTurn = 9;
  std::array<double, kLog> log = {};
  std::array<double, kTurn> cosine = {}, sine = {};
};
constexpr Series make_series() {
  Series made;
  for (int k = 0; k < Series::kLog; ++k) made.log[static_cast<std::size_t>(k)] = 2.0 / (2 * k + 1);
  double factorial = 1;
  for (int k = 0; k < Series::kTurn; ++k) {
    const double sign = k % 2 == 0 ? 1 : -1;
    made.cosine[static_cast<std::size_t>(k)] = sign / factorial;
    made.sine[static_cast<std::size_t>(k)] = sign / (factorial * (2 * k + 1));
    factorial *= (2 * k + 1) * (2 * k + 2);
  }
  return made;
}
constexpr Series kSeries = make_series();

// Vectors wider than the hardware's are passed by reference: the ABI for returning them depends on
// the processor.
template <std::size_t kTerms>
void add_up(const std::array<double, kTerms>& series, const Real& x, Real& sum) {
  sum = Real{} + series[kTerms - 1];
  for (std::size_t k = kTerms - 1; k-- > 0;) sum = sum * x + series[k];
}

// Converts integers below 2^52 by using their bits as the fraction of a number whose last place is
// worth 1.
void to_real(const Whole& number, Real& real) {
  constexpr std::uint64_t kPlace = 0x4330000000000000;  // 2^52
  const Whole bits = number | kPlace;
  std::memcpy(&real, &bits, sizeof real);
  real -= 0x1p52;
}

// Box-Muller transform of pairs of words. Logarithm and cosine are our own series, because
// libraries differ in the last digits and the samples must not.
void box_muller(const Whole& radius, const Whole& angle, Real& normal) {
  // Adding 0.5 keeps u above zero, whose logarithm is infinite. u = m 2^(exponent - 1024), m from
  // 0.7 to 1.4.
  constexpr std::uint64_t kHalfRoot = 0x3fe6a09e667f3bcd;  // bits of sqrt(0.5)
  Real u, power, m, series;
  to_real(radius, u);
  u = (u + 0.5) * 0x1p-32;
  Whole bits;
  std::memcpy(&bits, &u, sizeof bits);
  const Whole exponent = (bits - kHalfRoot + (std::uint64_t{1024} << 52)) >> 52;
  to_real(exponent, power);
  bits -= (exponent - 1024) << 52;
  std::memcpy(&m, &bits, sizeof m);
  const Real s = (m - 1.0) / (m + 1.0);
  add_up(kSeries.log, s * s, series);
  const Real squared = -2.0 * ((power - 1024.0) * std::numbers::ln2 + s * series);
  // The nearest quarter turn, and the distance to it.
  const Whole quarter = (angle + (1u << 29)) >> 30;
  Real x, nearest, cosine, sine;
  to_real(angle, x);
  to_real(quarter << 30, nearest);
  x = (x - nearest) * (0x1p-32 * 2 * std::numbers::pi);
  add_up(kSeries.cosine, x * x, cosine);
  add_up(kSeries.sine, x * x, sine);
  sine *= x;
  Whole even, odd;
  std::memcpy(&even, &cosine, sizeof even);
  std::memcpy(&odd, &sine, sizeof odd);
  const Whole is_odd = -(quarter & 1), is_minus = ((quarter + 1) & 2) << 62;
  const Whole part = ((odd & is_odd) | (even & ~is_odd)) ^ is_minus;
  std::memcpy(&normal, &part, sizeof normal);
  for (std::size_t i = 0; i < kSide; ++i) normal[i] *= std::sqrt(squared[i]);
}

}  // namespace

void normals_at(std::uint64_t seed, std::uint64_t stream, std::uint64_t first, std::span<double> to) {
  constexpr Whole kCount = {0, 1, 2, 3, 4, 5, 6, 7};
  const std::uint64_t end = first + to.size();
  for (std::uint64_t counter = first / 2; counter * 2 < end; counter += kSide) {
    const std::array<Whole, 4> words = philox(seed, stream, kCount + counter);
    Real even, odd;
    box_muller(words[0], words[1], even);
    box_muller(words[2], words[3], odd);
    for (std::size_t i = 0; i < kSide; ++i) {
      const std::uint64_t place = (counter + i) * 2;
      if (place >= first && place < end) to[place - first] = even[i];
      if (place + 1 >= first && place + 1 < end) to[place + 1 - first] = odd[i];
    }
  }
}

double normal_at(std::uint64_t seed, std::uint64_t stream, std::uint64_t position) {
  double normal = 0;
  normals_at(seed, stream, position, {&normal, 1});
  return normal;
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
