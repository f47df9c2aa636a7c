// weft/plan/ops/rounded.h -- a double that knows how far rounding may have carried it.
//
//   1/3 + 1/3 + 1/3      value 1, error 1.7e-16: the real number lies within the error of the value
//   3 - 3                value 0, error 0: small whole numbers make no error at all
//
// The prime field (number.h) proves identities, but it has no order, no functions and no infinity. Here two
// sides are run as floats are, with true maxima, exp and ties, and are the same real number unless they lie
// further apart than their errors: a difference is shown, never guessed at with a tolerance. Errors are those
// of a running error analysis; sums and products that are exact are known to be so.
//
//   value    error     it is
//   finite   finite    that number, give or take the error
//   NaN      0         undefined: 0/0, log(-1), the root of -1
//   +-inf    0         infinite: 1/0, log(0), the maximum of nothing
//   +-inf    inf       a number too large for a double
//   NaN      NaN       a number of which rounding left nothing
//   NaN      inf       one of which a number too large left nothing
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
  }  // too large, or lost so

  friend Rounded operator+(Rounded a, Rounded b);
  friend Rounded operator-(Rounded a) { return {-a.value, a.error}; }
  friend Rounded operator-(Rounded a, Rounded b) { return a + -b; }
  friend Rounded operator*(Rounded a, Rounded b);
  Rounded& operator+=(Rounded b) { return *this = *this + b; }
  Rounded& operator-=(Rounded b) { return *this = *this - b; }
  Rounded& operator*=(Rounded b) { return *this = *this * b; }
  // As doubles compare; Numbers::equal says also whether rounding leaves it open.
  friend bool operator==(Rounded a, Rounded b) { return a.value == b.value; }
};

// What a run came across that its numbers do not show.
struct RoundedNotes {
  bool doubt = false;  // a comparison, a whole part or a position that rounding may have turned over
};

template <>
struct Numbers<Rounded> {
  RoundedNotes* notes = nullptr;  // may be null
  // Whether values are rounded to their dtype as kernels do: 16-bit reals, integers that wrap, casts. Else
  // every dtype holds what a double does.
  bool rounds = false;
  std::uint64_t key = 0;  // of dropout's masks

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
  bool keeps(const DropoutPlace& place) const { return keeps_half(key, place); }
  // What is left of a result that is stored in this dtype.
  Rounded stored(Rounded x, plan::DType dtype) const;
  // The same of a cast, where a number that is too large becomes infinite for good.
  Rounded converted(Rounded x, plan::DType to) const;

 private:
  void doubt() const {
    if (notes != nullptr) notes->doubt = true;
  }
};

// How two results compare.
enum class Agreement : std::uint8_t {
  same,      // the same double
  close,     // within their errors, which are small beside them: the same number, rounded in another way
  open,      // rounding, or a number too large, leaves it open
  different  // no rounding explains it; or one is a number and the other is not
};

// `right` may be a number where `left` overran what a double holds, but not the other way round.
Agreement compare(Rounded left, Rounded right);

}  // namespace weft::ops
