#include "weft/plan/ops/number.h"

#include <array>
#include <bit>
#include <cstdlib>

#include "weft/base/random.h"

namespace weft::ops {
namespace {

// A field element that stands for a value with no residue, such as infinity.
constexpr Field stand_in(std::uint64_t which) { return Field(mix(which + 0x5bd1e9955bd1e995u)); }

// Integers up to this magnitude count as counters and positions rather than residues that happen to
// be small: a random residue is below it with probability 2^-20.
constexpr std::int64_t kLargestWhole = std::int64_t{1} << 40;

bool is_whole(std::int64_t value) { return value <= kLargestWhole && value >= -kLargestWhole; }

Field raised(Field base, std::uint64_t exponent) {
  Field product(1);
  for (; exponent != 0; exponent >>= 1) {
    if (exponent & 1) product *= base;
    base *= base;
  }
  return product;
}

// The result of an uninterpreted function.
Field scrambled(std::uint64_t key, std::uint64_t function, Field x, Field y = {}) {
  const std::uint64_t seed = mix(key + 0x9e3779b97f4a7c15u * (function + 1));
  return Field(mix(mix(x.residue() ^ seed) + multiply_fold(y.residue() ^ seed, 0xc2b2ae3d27d4eb4fu)));
}

// The inverse of mix().
constexpr std::uint64_t unmix(std::uint64_t mixed) {
  constexpr std::uint64_t kFactor = 0xe9846af9b1a615d5u;
  std::uint64_t inverse = kFactor;  // correct in the low 3 bits; each round doubles that
  for (int round = 0; round < 5; ++round) inverse *= 2 - kFactor * inverse;
  std::uint64_t x = mixed ^ mixed >> 28 ^ mixed >> 56;
  x *= inverse;
  x ^= x >> 32;
  x *= inverse;
  return x ^ x >> 32;
}
static_assert(unmix(mix(0x0123456789abcdefu)) == 0x0123456789abcdefu);

constexpr std::uint64_t kPower = 101, kRemainder = 102, kOrder = 103;  // larger than any Function

std::uint64_t order_seed(std::uint64_t key) { return mix(key + 0x9e3779b97f4a7c15u * kOrder); }

}  // namespace

// Fermat: a^(p-1) = 1. In binary p - 2 is 59 ones, a zero and a one. Doubling runs of ones takes 70
// products; square-and-multiply would take 119.
Field Field::inverse() const {
  const auto joined = [](Field ones, Field more, int length) {
    for (int i = 0; i < length; ++i) ones *= ones;
    return ones * more;
  };
  const Field one = *this, three = joined(joined(one, one, 1), one, 1),
              seven = joined(joined(three, three, 3), one, 1);
  const Field fourteen = joined(seven, seven, 7),
              twenty_nine = joined(joined(fourteen, fourteen, 14), one, 1);
  const Field all = joined(joined(twenty_nine, twenty_nine, 29), one, 1);
  return joined(all, one, 2);
}

template <class T>
std::int64_t Numbers<T>::to_integer(T value) const {
  constexpr double kEdge = 0x1p62;
  const double wide = static_cast<double>(value);
  if (!(wide > -kEdge)) return -(std::int64_t{1} << 62);  // NaN too
  if (wide >= kEdge) return std::int64_t{1} << 62;
  return std::llround(wide);
}

template <class T>
T Numbers<T>::apply(Function function, T x) const {
  switch (function) {
    case Function::exp: return std::exp(x);
    case Function::log: return std::log(x);
    case Function::tanh: return std::tanh(x);
    case Function::erf: return std::erf(x);
    case Function::sqrt: return std::sqrt(x);
    case Function::rsqrt: return T(1) / std::sqrt(x);
    case Function::sin: return std::sin(x);
    case Function::cos: return std::cos(x);
    case Function::truncate: return std::trunc(x);
  }
  return x;
}

template <class T>
bool Numbers<T>::keeps(const DropoutElement& at) const {
  return static_cast<double>(uniform_at(at.step, at.stream, at.place)) >= at.rate;
}

bool keeps_half(std::uint64_t key, const DropoutElement& at) {
  if (at.rate == 0) return true;
  std::uint64_t word = mix(key + std::bit_cast<std::uint64_t>(at.rate));
  for (const std::uint64_t part : {at.step, at.stream, at.place})
    word = mix(word ^ mix(part + 0x9e3779b97f4a7c15u));
  return (word >> 32 & 1) != 0;
}

template struct Numbers<float>;
template struct Numbers<double>;

Field Numbers<Field>::from(double value) const {
  if (std::isnan(value)) return stand_in(0);
  if (std::isinf(value)) return value > 0 ? stand_in(1) : -stand_in(1);
  // value = mantissa * 2^exponent with an integer mantissa, and 2^61 = 1.
  int exponent = 0;
  const double mantissa = std::ldexp(std::frexp(value, &exponent), 53);
  const int turn = ((exponent - 53) % 61 + 61) % 61;
  return from_integer(static_cast<std::int64_t>(mantissa)) * Field(std::uint64_t{1} << turn);
}

Field Numbers<Field>::from_integer(std::int64_t value) const {
  return value >= 0 ? Field(static_cast<std::uint64_t>(value)) : -Field(-static_cast<std::uint64_t>(value));
}

std::int64_t Numbers<Field>::to_integer(Field value) const {
  const auto residue = static_cast<std::int64_t>(value.residue());
  constexpr auto kModulus = static_cast<std::int64_t>(Field::kPrime);
  return residue > kModulus / 2 ? residue - kModulus : residue;
}

// Caches inverses: most divisors (a count, the divisor of scores, the sum of a row) are used many
// times, and an inverse takes 70 products.
Field Numbers<Field>::divide(Field a, Field b) const {
  struct Known {
    std::uint64_t residue = 0;
    Field inverse;  // zero for zero
  };
  constexpr int kBits = 6;
  thread_local std::array<Known, std::size_t{1} << kBits> known;
  Known& at = known[(b.residue() * 0x9e3779b97f4a7c15u) >> (64 - kBits)];
  if (at.residue != b.residue()) at = {b.residue(), b.inverse()};
  return a * at.inverse;
}

Field Numbers<Field>::apply(Function function, Field x) const {
  if (function == Function::rsqrt) return apply(Function::sqrt, x).inverse();
  if (function == Function::truncate && is_whole(to_integer(x))) return x;
  return scrambled(key, static_cast<std::uint64_t>(function), x);
}

Field Numbers<Field>::power(Field base, Field exponent) const {
  const std::int64_t times = to_integer(exponent);
  if (!is_whole(times)) return scrambled(key, kPower, base, exponent);
  const Field product = raised(base, static_cast<std::uint64_t>(std::abs(times)));
  return times < 0 ? product.inverse() : product;
}

Field Numbers<Field>::remainder(Field a, Field b) const {
  const std::int64_t left = to_integer(a), right = to_integer(b);
  if (!is_whole(left) || !is_whole(right)) return scrambled(key, kRemainder, a, b);
  return right == 0 ? Field() : from_integer(left % right);
}

bool Numbers<Field>::less(Field a, Field b) const {
  // mix() is a bijection on 64-bit words, so the shuffled residues are totally ordered.
  return mix(a.residue() ^ order_seed(key)) < mix(b.residue() ^ order_seed(key));
}

// One 64-bit word in eight is a residue, so a few steps from the end of the order find one.
Field Numbers<Field>::least() const {
  std::uint64_t place = 0;
  while ((unmix(place) ^ order_seed(key)) >= Field::kPrime) ++place;
  return Field(unmix(place) ^ order_seed(key));
}

Field Numbers<Field>::greatest() const {
  std::uint64_t place = ~std::uint64_t{0};
  while ((unmix(place) ^ order_seed(key)) >= Field::kPrime) --place;
  return Field(unmix(place) ^ order_seed(key));
}

}  // namespace weft::ops
