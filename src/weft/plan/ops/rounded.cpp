#include "weft/plan/ops/rounded.h"

#include <algorithm>
#include <array>

namespace weft::ops {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kUlp = 0x1p-53;             // half an ulp of 1: the error of one rounding
constexpr double kLeast = 0x1p-1022;         // the smallest normal double
constexpr double kFunctionError = 4 * kUlp;  // of the C library; glibc's is below 1 ulp

constexpr Rounded kLost{kNan, kNan};
constexpr Rounded kUndefined{kNan, 0};
constexpr Rounded too_large(double sign) { return {sign < 0 ? -kInfinity : kInfinity, kInfinity}; }

// A result without information, because an operand overflowed or because of rounding.
Rounded lost(Rounded a, Rounded b = {}) {
  return a.is_overrun() || b.is_overrun() ? Rounded{kNan, kInfinity} : kLost;
}

// A sum or product with an operand that is not a known number.
Rounded special_sum(Rounded a, Rounded b) {
  if (a.is_undefined() || b.is_undefined()) return kUndefined;
  if (a.is_infinite() && b.is_infinite()) return a.value == b.value ? a : kUndefined;
  if (a.is_infinite()) return a;
  if (b.is_infinite()) return b;
  if (a.is_lost() || b.is_lost()) return lost(a, b);
  if (a.is_too_large() && b.is_too_large()) return a.value == b.value ? a : lost(a, b);
  return a.is_too_large() ? a : b;
}

Rounded special_product(Rounded a, Rounded b) {
  if (a.is_undefined() || b.is_undefined()) return kUndefined;
  if (!a.is_infinite() && !a.is_too_large()) std::swap(a, b);
  const bool zero = b.value == 0 && b.error == 0;
  if (a.is_infinite()) {
    if (zero) return kUndefined;
    return b.is_lost() || std::abs(b.value) <= b.error ? lost(a, b) : Rounded{a.value * b.value, 0};
  }
  if (zero) return {0, 0};
  if (a.is_too_large() && !b.is_lost() &&
      (b.is_too_large() || b.is_infinite() || std::abs(b.value) - b.error >= 1))
    return too_large(std::copysign(1, a.value) * b.value);
  return lost(a, b);
}

// Precision and range of a dtype.
struct Format {
  int digits;
  int least_exponent;
  double largest;
};
Format format_of(plan::DType dtype) {
  switch (dtype) {
    case plan::DType::bf16: return {8, -126, 0x1.FEp127};
    case plan::DType::f16: return {11, -14, 65504};
    case plan::DType::f8e4m3: return {4, -6, plan::largest_f8(dtype)};
    case plan::DType::f8e5m2: return {3, -14, plan::largest_f8(dtype)};
    default: return {24, -126, 0x1.FFFFFEp127};
  }
}

double nearest(double value, const Format& format) {
  if (value == 0 || !std::isfinite(value)) return value;
  const int exponent = std::max(std::ilogb(value), format.least_exponent);
  const double unit = std::ldexp(1.0, exponent - format.digits + 1);
  return std::nearbyint(value / unit) * unit;  // ties to even
}

Rounded shortened(Rounded x, plan::DType dtype, bool cast) {
  const Format format = format_of(dtype);
  if (!x.is_known()) return x;
  const double value = nearest(x.value, format);
  if (std::abs(value) > format.largest)
    return cast ? Rounded{std::copysign(kInfinity, value), 0} : too_large(value);
  return {value, x.error + std::abs(value - x.value)};
}

Rounded wrapped(Rounded x, plan::DType dtype) {
  const double half = dtype == plan::DType::i32 ? 0x1p31 : 0x1p63;
  if (!x.is_known()) return x;
  if (x.value >= -half && x.value < half) return x;
  if (x.error > 0) return kLost;
  const double turned = std::fmod(x.value, 2 * half);
  return {turned >= half ? turned - 2 * half : turned < -half ? turned + 2 * half : turned, 0};
}

// The propagated error of the argument: the steepest slope within the error, or the interval's
// ends.
double carried(Function function, Rounded x, double value) {
  switch (function) {
    case Function::exp: return value * std::expm1(x.error);
    case Function::log: return -std::log1p(-x.error / x.value);
    case Function::sqrt: return x.error / std::sqrt(x.value - x.error);
    case Function::erf: return 1.13 * x.error;  // 2 / sqrt(pi)
    default: return x.error;                    // tanh, sin, cos
  }
}

double plain(Function function, double x) { return Numbers<double>{}.apply(function, x); }

}  // namespace

Rounded operator+(Rounded a, Rounded b) {
  if (!a.is_known() || !b.is_known()) return special_sum(a, b);
  const double sum = a.value + b.value;
  if (std::isinf(sum)) return too_large(sum);
  // Knuth's two-sum: the exact rounding error of the addition.
  const double part = sum - a.value;
  const double lost = (a.value - (sum - part)) + (b.value - part);
  return {sum, a.error + b.error + std::abs(lost)};
}

Rounded operator*(Rounded a, Rounded b) {
  if (!a.is_known() || !b.is_known()) return special_product(a, b);
  const double product = a.value * b.value;
  if (std::isinf(product)) return too_large(product);
  double error = std::abs(std::fma(a.value, b.value, -product));
  if (std::abs(product) < kLeast / kUlp && a.value != 0 && b.value != 0) error += kLeast;
  if (a.error != 0 || b.error != 0)
    error += std::abs(a.value) * b.error + std::abs(b.value) * a.error + a.error * b.error;
  return {product, error};
}

Rounded Numbers<Rounded>::from_integer(std::int64_t value) const {
  const auto nearest = static_cast<double>(value);
  return {nearest, std::abs(nearest) <= 0x1p53 ? 0 : std::abs(nearest) * kUlp};
}

std::int64_t Numbers<Rounded>::to_integer(Rounded x) const {
  if (!x.is_known() || (x.error > 0 && std::round(x.value - x.error) != std::round(x.value + x.error)))
    doubt();
  return Numbers<double>{}.to_integer(x.value);
}

Rounded Numbers<Rounded>::divide(Rounded a, Rounded b) const {
  if (a.is_undefined() || b.is_undefined()) return kUndefined;
  if (b.is_lost()) return lost(a, b);
  if (b.is_too_large()) return a.is_known() ? Rounded{0, kLeast * (1 + std::abs(a.value))} : lost(a, b);
  if (b.is_infinite()) return a.is_infinite() ? kUndefined : Rounded{0, 0};
  if (b.value == 0 && b.error == 0) {
    if (a.is_known() && a.error > 0 && std::abs(a.value) <= a.error) return lost(a, b);
    if (a.is_lost()) return lost(a, b);
    return a.value == 0 ? kUndefined : Rounded{a.value / b.value, 0};
  }
  if (std::abs(b.value) <= b.error) return lost(a, b);
  if (a.is_infinite()) return {a.value / b.value, 0};
  if (!a.is_known())
    return a.is_too_large() && std::abs(b.value) + b.error <= 1 ? too_large(a.value / b.value) : lost(a, b);
  const double ratio = a.value / b.value;
  if (std::isinf(ratio)) return too_large(ratio);
  double error = (a.error + std::abs(ratio) * b.error) / (std::abs(b.value) - b.error);
  if (std::fma(-ratio, b.value, a.value) != 0) error += std::abs(ratio) * kUlp + kLeast;
  return {ratio, error};
}

Rounded Numbers<Rounded>::apply(Function function, Rounded x) const {
  if (x.is_undefined()) return kUndefined;
  if (function == Function::rsqrt) return divide(from(1), apply(Function::sqrt, x));
  if (function == Function::truncate) {
    if (!x.is_known()) return x;
    if (x.error > 0 && std::trunc(x.value - x.error) != std::trunc(x.value + x.error)) doubt();
    return {std::trunc(x.value), 0};
  }
  const bool saturates = function == Function::tanh || function == Function::erf;
  if (x.is_too_large()) {
    if (function == Function::exp) return x.value > 0 ? x : Rounded{0, kLeast};
    if (saturates) return {std::copysign(1, x.value), kUlp};
    if (x.value < 0 && (function == Function::log || function == Function::sqrt)) return kUndefined;
    return lost(x);
  }
  if (x.is_lost()) return lost(x);
  const bool of_positive = function == Function::log || function == Function::sqrt;
  if (of_positive && x.value + x.error < 0) return kUndefined;
  if (of_positive && x.error > 0 && x.value - x.error <= 0)
    return function == Function::log
               ? lost(x)
               : Rounded{std::sqrt(std::max(x.value, 0.0)), std::sqrt(x.value + x.error)};
  const double value = plain(function, x.value);
  if (std::isnan(value)) return kUndefined;
  if (std::isinf(value))
    return x.is_infinite() || function == Function::log ? Rounded{value, 0} : too_large(value);
  const bool exact =
      x.is_infinite() || (function == Function::sqrt && std::fma(value, value, -x.value) == 0) ||
      (x.value == 0 && function != Function::log) || (function == Function::log && x.value == 1);
  double error = exact ? 0 : kFunctionError * std::abs(value) + kLeast;
  if (x.error > 0) error += carried(function, x, value);
  return std::isfinite(error) ? Rounded{value, error} : lost(x);
}

Rounded Numbers<Rounded>::power(Rounded base, Rounded exponent) const {
  if (base.is_undefined() || exponent.is_undefined()) return kUndefined;
  constexpr double kMostProducts = 8;
  const bool whole = exponent.error == 0 && exponent.value == std::trunc(exponent.value);
  if (whole && std::abs(exponent.value) <= kMostProducts) {
    Rounded product{1, 0};
    for (int k = 0; k < std::abs(static_cast<int>(exponent.value)); ++k) product *= base;
    return exponent.value < 0 ? divide(from(1), product) : product;
  }
  if (!base.is_known() || !exponent.is_known()) return lost(base, exponent);
  const double value = std::pow(base.value, exponent.value);
  if (std::isnan(value)) return base.error > 0 ? lost(base, exponent) : kUndefined;
  if (std::isinf(value)) return base.value == 0 && base.error == 0 ? Rounded{value, 0} : too_large(value);
  double error = kFunctionError * std::abs(value) + kLeast;
  if (base.value == 1 && base.error == 0) error = 0;
  if (base.error > 0 || exponent.error > 0) {
    if (std::abs(base.value) <= 2 * base.error) return lost(base, exponent);
    error += 2 * std::abs(value) *
             (std::abs(exponent.value) * base.error / std::abs(base.value) +
              std::abs(std::log(std::abs(base.value))) * exponent.error);
  }
  return std::isfinite(error) ? Rounded{value, error} : lost(base, exponent);
}

Rounded Numbers<Rounded>::remainder(Rounded a, Rounded b) const {
  if (a.is_undefined() || b.is_undefined() || (b.value == 0 && b.error == 0)) return kUndefined;
  if (!a.is_known() || !b.is_known()) return lost(a, b);
  const double value = std::fmod(a.value, b.value);
  if (a.error == 0 && b.error == 0) return {value, 0};
  const double error = a.error + std::abs(a.value / b.value) * b.error;
  if (std::abs(value) <= error || std::abs(b.value) - std::abs(value) <= error) doubt();
  return {value, error};
}

bool Numbers<Rounded>::less(Rounded a, Rounded b) const {
  if (a.is_lost() || b.is_lost() || std::abs(a.value - b.value) <= a.error + b.error)
    if (a.error + b.error > 0) doubt();
  return a.value < b.value;
}

bool Numbers<Rounded>::equal(Rounded a, Rounded b) const {
  if (a.is_lost() || b.is_lost() || std::abs(a.value - b.value) <= a.error + b.error)
    if (a.error + b.error > 0) doubt();
  return a.value == b.value;
}

Rounded Numbers<Rounded>::max(Rounded a, Rounded b) const {
  if (a.is_undefined() || b.is_undefined()) return kUndefined;
  if (a.is_lost() || b.is_lost()) return lost(a, b);
  if (std::abs(a.value - b.value) <= a.error + b.error)  // undecidable: use the larger error of the two
    return {std::max(a.value, b.value), std::max(a.error, b.error)};
  return a.value < b.value ? b : a;
}

Rounded Numbers<Rounded>::stored(Rounded x, plan::DType dtype) const {
  if (!rounds) return x;
  if (plan::is_integer(dtype)) return wrapped(x, dtype);
  if (dtype == plan::DType::bf16 || dtype == plan::DType::f16 || plan::is_f8(dtype))
    return shortened(x, dtype, false);
  return x;
}

Rounded Numbers<Rounded>::converted(Rounded x, plan::DType to) const {
  if (!rounds) return x;
  if (plan::is_integer(to)) return wrapped(x, to);
  if (to == plan::DType::boolean) return x;
  if (to == plan::DType::f64) {
    // A 64-bit integer may have more digits than a double: treat it as having slightly fewer.
    constexpr int kWholeDigits = 50;
    const bool is_long = x.is_known() && std::abs(x.value) >= 0x1p50 && x.value == std::trunc(x.value);
    return is_long ? Rounded{nearest(x.value, {kWholeDigits, -1022, kInfinity}), x.error} : x;
  }
  return shortened(x, to, true);
}

Agreement compare(Rounded left, Rounded right) {
  // A larger relative error than kTells is inconclusive, unless the absolute error is below kFloor.
  constexpr double kTells = 1e-6, kFloor = 1e-9;
  if (left.is_known() && left.error <= kTells * std::abs(left.value) && right.is_overrun())
    return Agreement::different;
  if (left.is_lost() || right.is_lost()) return Agreement::open;
  const bool left_is_none = left.is_undefined() || left.is_infinite(),
             right_is_none = right.is_undefined() || right.is_infinite();
  if (left_is_none && right_is_none) {
    if (left.is_infinite() && right.is_infinite() && left.value == right.value) return Agreement::same;
    return Agreement::open;
  }
  if (left_is_none || right_is_none) {
    // A number that overflowed may be infinite as well.
    return left.is_too_large() || right.is_too_large() ? Agreement::open : Agreement::different;
  }
  if (left.is_too_large())
    return right.is_too_large() && left.value != right.value ? Agreement::different : Agreement::open;
  if (right.is_too_large()) return Agreement::open;
  const double apart = std::abs(left.value - right.value), error = left.error + right.error;
  if (apart > error * (1 + 1e-9)) return Agreement::different;
  const double scale = std::max(std::abs(left.value), std::abs(right.value));
  if (error > kTells * scale && error > kFloor) return Agreement::open;
  return apart == 0 ? Agreement::same : Agreement::close;
}

}  // namespace weft::ops
