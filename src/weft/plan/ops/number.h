// weft/plan/ops/number.h -- the number types over which reference semantics are written.
//
//   float, double   the processor's arithmetic
//   Field           integers modulo the prime 2^61 - 1
//   Rounded         a double with a bound on its rounding error (rounded.h)
//
// Over the field, + - * / are exact, so two plans that agree on random inputs are equal as
// polynomials with overwhelming probability: this is how rules are proven. A non-linear function
// has no meaning in the field. It is *uninterpreted*: a keyed hash, equal for equal arguments and
// otherwise unrelated. Order is uninterpreted too: a keyed shuffle of the field, a total order that
// respects no arithmetic. So for max and <, only what holds in every total order can be proven.
#pragma once
#include <cmath>
#include <cstdint>
#include <limits>

#include "weft/base/hash.h"

namespace weft::ops {

class Field {
 public:
  static constexpr std::uint64_t kPrime = (std::uint64_t{1} << 61) - 1;

  constexpr Field() = default;
  constexpr explicit Field(std::uint64_t residue) : residue_(residue % kPrime) {}

  constexpr std::uint64_t residue() const { return residue_; }

  friend constexpr Field operator+(Field a, Field b) { return reduced(a.residue_ + b.residue_); }
  friend constexpr Field operator-(Field a, Field b) { return reduced(a.residue_ + kPrime - b.residue_); }
  friend constexpr Field operator-(Field a) { return Field() - a; }
  friend constexpr Field operator*(Field a, Field b) {
    __extension__ using Wide = unsigned __int128;
    const Wide product = static_cast<Wide>(a.residue_) * b.residue_;
    // 2^61 = 1 modulo the prime, so the high bits are added to the low ones.
    return reduced(static_cast<std::uint64_t>(product & kPrime) + static_cast<std::uint64_t>(product >> 61));
  }
  Field& operator+=(Field b) { return *this = *this + b; }
  Field& operator-=(Field b) { return *this = *this - b; }
  Field& operator*=(Field b) { return *this = *this * b; }
  friend constexpr bool operator==(Field, Field) = default;

  Field inverse() const;  // zero for zero, so that it is a total function

 private:
  static constexpr Field reduced(std::uint64_t sum) {  // REQUIRES: sum < 2 * kPrime
    Field field;
    field.residue_ = sum >= kPrime ? sum - kPrime : sum;
    return field;
  }
  std::uint64_t residue_ = 0;
};

// The non-linear unary functions. `truncate` drops the fraction, as in a cast to an integer.
enum class Function : std::uint8_t { exp, log, tanh, erf, sqrt, rsqrt, sin, cos, truncate };

// The inputs of a dropout mask for one element.
struct DropoutElement {
  std::uint64_t step = 0, stream = 0, place = 0;
  double rate = 0;
};

// Whether a proof keeps that element. The mask is a keyed hash that keeps one half at any rate (all
// at rate 0), so that a rule sees both kept and dropped elements. Different rates have different
// masks.
bool keeps_half(std::uint64_t key, const DropoutElement& at);

template <class T>
struct Numbers {  // float and double
  T from(double value) const { return static_cast<T>(value); }
  T from_integer(std::int64_t value) const { return static_cast<T>(value); }
  std::int64_t to_integer(
      T value) const;  // the nearest; NaN and values beyond 64 bits become large negative or positive
  T divide(T a, T b) const { return a / b; }
  T apply(Function function, T x) const;
  T power(T base, T exponent) const { return std::pow(base, exponent); }
  T remainder(T a, T b) const { return std::fmod(a, b); }
  bool less(T a, T b) const { return a < b; }
  bool equal(T a, T b) const { return a == b; }
  T choose(bool which, T yes, T no) const { return which ? yes : no; }
  T max(T a, T b) const { return a < b || std::isnan(b) ? b : a; }  // propagates NaN
  T min(T a, T b) const { return b < a || std::isnan(b) ? b : a; }
  T least() const { return -std::numeric_limits<T>::infinity(); }  // the maximum of an empty set
  T greatest() const { return std::numeric_limits<T>::infinity(); }
  bool keeps(const DropoutElement& at) const;  // the mask that kernels draw
};

template <>
struct Numbers<Field> {
  std::uint64_t key = 0;  // seed of the uninterpreted functions and the order

  Field from(double value) const;  // exact for every finite double; infinities are fixed field elements
  Field from_integer(std::int64_t value) const;
  // Indices and counters are small integers in the field as well; negative ones are returned
  // negative.
  std::int64_t to_integer(Field value) const;
  Field divide(Field a, Field b) const;
  Field apply(Function function, Field x) const;
  Field power(Field base, Field exponent) const;  // exact for small integer exponents, else uninterpreted
  Field remainder(Field a, Field b) const;        // exact for integers, else uninterpreted
  bool less(Field a, Field b) const;
  bool equal(Field a, Field b) const { return a == b; }
  Field choose(bool which, Field yes, Field no) const { return which ? yes : no; }
  Field max(Field a, Field b) const { return less(a, b) ? b : a; }
  Field min(Field a, Field b) const { return less(b, a) ? b : a; }
  Field least() const;  // in the shuffled order
  Field greatest() const;
  bool keeps(const DropoutElement& at) const { return keeps_half(key, at); }
};

}  // namespace weft::ops
