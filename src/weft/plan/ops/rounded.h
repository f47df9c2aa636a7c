// weft/plan/ops/rounded.h -- a double with a bound on its rounding error.
//
//   1/3 + 1/3 + 1/3      value 1, error 1.7e-16: the real number is within the error of the value
//   3 - 3                value 0, error 0: small integers have no error
//
// The prime field (number.h) proves identities, but it has no order, no functions and no infinity.
// Here both sides run in floating point, with true maxima, exp and ties. They are the same real
// number unless they differ by more than their errors: a difference is proven, never guessed from a
// tolerance. Errors come from running error analysis; exact sums and products have no error.
//
//   value    error     meaning
//   finite   finite    that number, give or take the error
//   NaN      0         undefined: 0/0, log(-1), the root of -1
//   +-inf    0         infinite: 1/0, log(0), the maximum of an empty set
//   +-inf    inf       a number too large for a double
//   NaN      NaN       a number lost to rounding
//   NaN      inf       a number lost because an operand was too large
#pragma once
#include <cmath>
#include <cstdint>
#include <limits>

#include "weft/plan/graph/dtype.h"
#include "weft/plan/ops/number.h"

namespace weft::ops {

struct Rounded {
  double value = 0, error = 0;

  bool is_known() const { return std::isfinite(value) && std::isfinite(error); }
  bool is_undefined() const { return std::isnan(value) && error == 0; }
  bool is_infinite() const { return std::isinf(value) && error == 0; }
  bool is_too_large() const { return std::isinf(value) && error != 0; }
  bool is_lost() const { return std::isnan(value) && error != 0; }
  bool is_overrun() const {
    return error == std::numeric_limits<double>::infinity();
  }  // too large, or lost because of that

  friend Rounded operator+(Rounded a, Rounded b);
  friend Rounded operator-(Rounded a) { return {-a.value, a.error}; }
  friend Rounded operator-(Rounded a, Rounded b) { return a + -b; }
  friend Rounded operator*(Rounded a, Rounded b);
  Rounded& operator+=(Rounded b) { return *this = *this + b; }
  Rounded& operator-=(Rounded b) { return *this = *this - b; }
  Rounded& operator*=(Rounded b) { return *this = *this * b; }
  // Compares like doubles. Numbers::equal also records whether rounding leaves the answer open.
  friend bool operator==(Rounded a, Rounded b) { return a.value == b.value; }
};

// Conditions of a run that its results do not show.
struct RoundedNotes {
  bool doubt = false;  // rounding may have changed a comparison, an integer part or a position
};

template <>
struct Numbers<Rounded> {
  RoundedNotes* notes = nullptr;  // may be null
  // Whether values are rounded to their dtype as in kernels: 16-bit floats, wrapping integers,
  // casts. If not, every dtype has the precision of a double.
  bool rounds = false;
  std::uint64_t key = 0;  // seed of dropout masks

  Rounded from(double value) const { return {value, 0}; }
  Rounded from_integer(std::int64_t value) const;
  std::int64_t to_integer(Rounded value) const;
  Rounded divide(Rounded a, Rounded b) const;
  Rounded apply(Function function, Rounded x) const;
  Rounded power(Rounded base, Rounded exponent) const;
  Rounded remainder(Rounded a, Rounded b) const;
  bool less(Rounded a, Rounded b) const;
  bool equal(Rounded a, Rounded b) const;
  Rounded choose(bool which, Rounded yes, Rounded no) const { return which ? yes : no; }
  Rounded max(Rounded a, Rounded b) const;
  Rounded min(Rounded a, Rounded b) const { return -max(-a, -b); }
  Rounded least() const { return {-std::numeric_limits<double>::infinity(), 0}; }
  Rounded greatest() const { return {std::numeric_limits<double>::infinity(), 0}; }
  bool keeps(const DropoutElement& place) const { return keeps_half(key, place); }
  // The result after storing it in this dtype.
  Rounded stored(Rounded x, plan::DType dtype) const;
  // The same for a cast, where a number that is too large becomes infinite.
  Rounded converted(Rounded x, plan::DType to) const;

 private:
  void doubt() const {
    if (notes != nullptr) notes->doubt = true;
  }
};

// The result of comparing two results.
enum class Agreement : std::uint8_t {
  same,      // the same double
  close,     // within their errors, which are relatively small: equal up to rounding
  open,      // undecided because of rounding or overflow
  different  // beyond rounding; or only one of them is a number
};

// `right` may be finite where `left` overflowed a double, but not vice versa.
Agreement compare(Rounded left, Rounded right);

}  // namespace weft::ops
