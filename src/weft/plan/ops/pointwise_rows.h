// weft/plan/ops/pointwise_rows.h -- the table of pointwise functions. To add a function, add a row.
//
//   row("silu", 1, kTranscendental + 4, real, [](auto& n, auto* x) { return x[0] * sigmoid_of(n, x[0]); })
//       .with_gradient([](auto& n, Term dy, Term x, Term) { .. })
//       .in_weftql("silu(x)", "x * sigmoid(x)")
//
// A row has the name, the number and kind of operands, the FLOPs, and the meaning over every number
// type (number.h). The meaning generates the reference for proofs and tests, the CPU vector code
// and the GPU source. If a device has something faster or safer, the row overrides it with
// on_processor() or on_cuda().
//
//   with_gradient(f)      dx from dy, x and y, written like the meaning; a function of several operands
//                         that may be broadcast gives a Status(Gradient&) instead
//   slope()               marks a gradient function f(dy, x), linear in dy: one node instead of ten
//   of_integers(f)        the meaning for integers, if it differs
//   in_weftql(usage, ..)  its WeftQL name; a row without one is not a WeftQL function
//
// Separate from pointwise.h because the CPU loops are compiled from it, once per instruction set.
#pragma once
#include <numbers>
#include <string_view>
#include <tuple>

#include "weft/plan/ops/pointwise.h"

namespace weft::ops {

struct Nothing {};

template <class Means, class Slope = Nothing, class Vectors = Nothing, class Integers = Nothing>
struct PointwiseRow {
  std::string_view name;
  std::size_t arity;
  double flops;
  Elements takes;
  Means means;
  Slope gradient = {};
  Vectors vectors = {};
  Integers integers = {};
  bool gives_bool = false, is_slope = false;
  std::string_view cuda = {}, usage = {}, summary = {};

  template <class F>
  constexpr auto with_gradient(F f) const {
    return PointwiseRow<Means, F, Vectors, Integers>{
        name, arity, flops, takes, means, f, vectors, integers, gives_bool, is_slope, cuda, usage, summary};
  }
  template <class F>
  constexpr auto on_processor(F f) const {
    return PointwiseRow<Means, Slope, F, Integers>{name,     arity,      flops,    takes, means, gradient, f,
                                                   integers, gives_bool, is_slope, cuda,  usage, summary};
  }
  template <class F>
  constexpr auto of_integers(F f) const {
    return PointwiseRow<Means, Slope, Vectors, F>{name, arity,      flops,    takes, means, gradient, vectors,
                                                  f,    gives_bool, is_slope, cuda,  usage, summary};
  }
  constexpr PointwiseRow on_cuda(std::string_view text) const {  // {0}, {1}, {2}: the operands, f32
    PointwiseRow row = *this;
    row.cuda = text;
    return row;
  }
  constexpr PointwiseRow in_weftql(std::string_view usage_of, std::string_view summary_of) const {
    PointwiseRow row = *this;
    row.usage = usage_of;
    row.summary = summary_of;
    return row;
  }
  constexpr PointwiseRow boolean_result() const {
    PointwiseRow row = *this;
    row.gives_bool = true;
    return row;
  }
  constexpr PointwiseRow slope() const {
    PointwiseRow row = *this;
    row.is_slope = true;
    return row;
  }
};

template <class Means>
constexpr auto row(std::string_view name, std::size_t arity, double flops, Elements takes, Means means) {
  return PointwiseRow<Means>{name, arity, flops, takes, means};
}

// Approximate length of the polynomial that a vector math library evaluates for exp, log or sin.
inline constexpr double kTranscendental = 8;

// Building blocks of several rows. They have the same form in every number type, so an identity of
// floats is also one of the field, and rules can use it.
namespace part {

using std::numbers::inv_sqrtpi;
using std::numbers::sqrt2;

inline constexpr auto truth = [](auto& n, auto which) { return n.choose(which, n.from(1), n.from(0)); };
inline constexpr auto at_most = [](auto& n, auto a, auto b) {
  return n.choose(n.less(a, b), n.from(1), truth(n, n.equal(a, b)));
};
inline constexpr auto sigmoid_of = [](auto& n, auto x) {
  if constexpr (requires { n.sigmoid(x); })  // on a device: avoids overflow
    return n.sigmoid(x);
  else
    return n.divide(n.from(1), n.from(1) + n.apply(Function::exp, -x));
};
inline constexpr auto half_of = [](auto& n, auto x) { return n.divide(x, n.from(2)); };

// The CDF of the normal distribution: (1 + erf(x / sqrt 2)) / 2.
inline constexpr auto normal_cdf = [](auto& n, auto x) {
  return half_of(n, n.from(1) + n.apply(Function::erf, n.divide(x, n.from(sqrt2))));
};
inline constexpr auto normal_density = [](auto& n, auto x) {
  return n.from(inv_sqrtpi / sqrt2) * n.apply(Function::exp, -half_of(n, x * x));
};
// The same without a division.
inline constexpr auto quick_normal_cdf = [](auto& n, auto x) {
  return n.from(0.5) * (n.from(1) + n.apply(Function::erf, x * n.from(1 / sqrt2)));
};
inline constexpr auto quick_normal_density = [](auto& n, auto x) {
  return n.from(inv_sqrtpi / sqrt2) * n.apply(Function::exp, n.from(-0.5) * (x * x));
};

// gelu-tanh is x (1 + tanh u(x)) / 2 with u(x) = sqrt(2/pi) (x + 0.044715 x^3).
inline constexpr double kCubic = 0.044715;
inline constexpr double kSteepness = sqrt2 * inv_sqrtpi;
inline constexpr auto tanh_of_cubic = [](auto& n, auto x) {
  return n.apply(Function::tanh, n.from(kSteepness) * (x + n.from(kCubic) * x * x * x));
};
inline constexpr auto gelu_tanh_slope = [](auto& n, auto x) {
  const auto one = n.from(1);
  const auto t = tanh_of_cubic(n, x);
  const auto inner = n.from(kSteepness) * (one + n.from(3 * kCubic) * x * x);
  return half_of(n, one + t + x * (one - t * t) * inner);
};
// (1 + tanh u) / 2 is the logistic function of 2u: one exp, and no cancellation where tanh nears
// -1.
inline constexpr auto gelu_gate = [](auto& n, auto x) {
  return sigmoid_of(n, n.from(2 * kSteepness) * (x + n.from(kCubic) * (x * x * x)));
};
inline constexpr auto silu_slope = [](auto& n, auto x) {
  const auto s = sigmoid_of(n, x);
  return s * (n.from(1) + x * (n.from(1) - s));
};

// tanh(log(1 + e)) is w / (w + 2) with w = e^2 + 2e: one exp, and accurate for negative x, where w
// is small. From 20 on it is 1 in a float, so the exponent is clamped there and e^2 stays finite.
inline constexpr auto mish_terms = [](auto& n, auto e) { return e * (e + n.from(2)); };

// Integer division truncates. Division by zero gives zero, so that it is never undefined.
inline constexpr auto quotient = [](auto& n, auto a, auto b) {
  const std::int64_t divisor = n.to_integer(b);
  if (divisor == -1) return -a;  // a special case: the smallest integer cannot be negated
  return n.from_integer(divisor == 0 ? 0 : n.to_integer(a) / divisor);
};
inline constexpr auto remainder = [](auto& n, auto a, auto b) {
  const std::int64_t divisor = n.to_integer(b);
  return n.from_integer(divisor == 0 || divisor == -1 ? 0 : n.to_integer(a) % divisor);
};

}  // namespace part

// GPU code uses the accurate versions of functions: results on different devices must differ only
// by rounding.
// clang-format off
inline constexpr std::tuple kPointwiseRows{
    row("add", 2, 1, Elements::number, [](auto&, auto* x) { return x[0] + x[1]; })
        .with_gradient(gradient_of::add).on_cuda("({0} + {1})"),
    row("sub", 2, 1, Elements::number, [](auto&, auto* x) { return x[0] - x[1]; })
        .with_gradient(gradient_of::sub).on_cuda("({0} - {1})"),
    row("mul", 2, 1, Elements::number, [](auto&, auto* x) { return x[0] * x[1]; })
        .with_gradient(gradient_of::mul).on_cuda("({0} * {1})"),
    row("div", 2, 1, Elements::number, [](auto& n, auto* x) { return n.divide(x[0], x[1]); })
        .of_integers([](auto& n, auto* x) { return part::quotient(n, x[0], x[1]); })
        .with_gradient(gradient_of::div).on_cuda("({0} / {1})"),
    row("mod", 2, 3, Elements::number, [](auto& n, auto* x) { return n.remainder(x[0], x[1]); })
        .of_integers([](auto& n, auto* x) { return part::remainder(n, x[0], x[1]); })
        .with_gradient(gradient_of::mod).on_cuda("fmodf({0}, {1})"),
    row("pow", 2, 2 * kTranscendental, Elements::real, [](auto& n, auto* x) { return n.power(x[0], x[1]); })
        .with_gradient(gradient_of::pow).on_cuda("powf({0}, {1})").in_weftql("pow(x, y)", "x to the y"),
    row("maximum", 2, 1, Elements::number, [](auto& n, auto* x) { return n.max(x[0], x[1]); })
        .with_gradient(gradient_of::extremum).on_cuda("weft_max({0}, {1})")
        .in_weftql("greatest(a, b)", "the larger of two, element by element"),
    row("minimum", 2, 1, Elements::number, [](auto& n, auto* x) { return n.min(x[0], x[1]); })
        .with_gradient(gradient_of::extremum).on_cuda("weft_min({0}, {1})")
        .in_weftql("least(a, b)", "the smaller of two, element by element"),
    row("neg", 1, 1, Elements::number, [](auto&, auto* x) { return -x[0]; })
        .with_gradient([](auto&, Term dy, Term, Term) { return -dy; }).on_cuda("(-{0})"),
    row("abs", 1, 1, Elements::number, [](auto& n, auto* x) { return n.max(x[0], -x[0]); })
        .with_gradient(gradient_of::abs).on_cuda("fabsf({0})").in_weftql("abs(x)", "absolute value"),

    row("equal", 2, 1, Elements::any, [](auto& n, auto* x) { return part::truth(n, n.equal(x[0], x[1])); })
        .boolean_result().on_cuda("({0} == {1} ? 1.0f : 0.0f)"),
    row("not-equal", 2, 1, Elements::any, [](auto& n, auto* x) { return n.choose(n.equal(x[0], x[1]), n.from(0), n.from(1)); })
        .boolean_result().on_cuda("({0} != {1} ? 1.0f : 0.0f)"),
    row("less", 2, 1, Elements::number, [](auto& n, auto* x) { return part::truth(n, n.less(x[0], x[1])); })
        .boolean_result().on_cuda("({0} < {1} ? 1.0f : 0.0f)"),
    row("less-equal", 2, 1, Elements::number, [](auto& n, auto* x) { return part::at_most(n, x[0], x[1]); })
        .boolean_result().on_cuda("({0} <= {1} ? 1.0f : 0.0f)"),
    row("greater", 2, 1, Elements::number, [](auto& n, auto* x) { return part::truth(n, n.less(x[1], x[0])); })
        .boolean_result().on_cuda("({0} > {1} ? 1.0f : 0.0f)"),
    row("greater-equal", 2, 1, Elements::number, [](auto& n, auto* x) { return part::at_most(n, x[1], x[0]); })
        .boolean_result().on_cuda("({0} >= {1} ? 1.0f : 0.0f)"),
    row("and", 2, 1, Elements::boolean, [](auto&, auto* x) { return x[0] * x[1]; })
        .boolean_result().on_cuda("({0} * {1})"),
    row("or", 2, 1, Elements::boolean, [](auto&, auto* x) { return x[0] + x[1] - x[0] * x[1]; })
        .boolean_result().on_cuda("({0} + {1} - {0} * {1})"),
    row("not", 1, 1, Elements::boolean, [](auto& n, auto* x) { return n.from(1) - x[0]; })
        .boolean_result().on_cuda("(1.0f - {0})"),
    row("select", 3, 1, Elements::any, [](auto& n, auto* x) { return n.choose(x[0] == n.from(0), x[2], x[1]); })
        .with_gradient(gradient_of::select).on_cuda("({0} == 0.0f ? {2} : {1})"),

    row("exp", 1, kTranscendental, Elements::real, [](auto& n, auto* x) { return n.apply(Function::exp, x[0]); })
        .with_gradient([](auto&, Term dy, Term, Term y) { return dy * y; })
        .on_cuda("expf({0})").in_weftql("exp(x)", "e to the x"),
    row("log", 1, kTranscendental, Elements::real, [](auto& n, auto* x) { return n.apply(Function::log, x[0]); })
        .with_gradient([](auto& n, Term dy, Term x, Term) { return n.divide(dy, x); })
        .on_cuda("logf({0})").in_weftql("log(x)", "natural logarithm"),
    row("sqrt", 1, 1, Elements::real, [](auto& n, auto* x) { return n.apply(Function::sqrt, x[0]); })
        .with_gradient([](auto& n, Term dy, Term, Term y) { return n.divide(dy * n.from(0.5), y); })
        .on_cuda("sqrtf({0})").in_weftql("sqrt(x)", "square root"),
    row("rsqrt", 1, 2, Elements::real, [](auto& n, auto* x) { return n.apply(Function::rsqrt, x[0]); })
        .with_gradient([](auto& n, Term dy, Term x, Term y) { return n.divide(dy * y * n.from(-0.5), x); })
        .on_cuda("(1.0f / sqrtf({0}))").in_weftql("rsqrt(x)", "reciprocal square root"),
    row("sin", 1, kTranscendental, Elements::real, [](auto& n, auto* x) { return n.apply(Function::sin, x[0]); })
        .with_gradient([](auto& n, Term dy, Term x, Term) { return dy * n.apply(Function::cos, x); })
        .on_cuda("sinf({0})").in_weftql("sin(x)", "sine"),
    row("cos", 1, kTranscendental, Elements::real, [](auto& n, auto* x) { return n.apply(Function::cos, x[0]); })
        .with_gradient([](auto& n, Term dy, Term x, Term) { return -(dy * n.apply(Function::sin, x)); })
        .on_cuda("cosf({0})").in_weftql("cos(x)", "cosine"),
    row("tanh", 1, kTranscendental, Elements::real, [](auto& n, auto* x) { return n.apply(Function::tanh, x[0]); })
        .with_gradient([](auto& n, Term dy, Term, Term y) { return dy * (n.from(1) - y * y); })
        .on_cuda("tanhf({0})").in_weftql("tanh(x)", "hyperbolic tangent"),
    row("erf", 1, kTranscendental, Elements::real, [](auto& n, auto* x) { return n.apply(Function::erf, x[0]); })
        .with_gradient([](auto& n, Term dy, Term x, Term) {
          return dy * (n.apply(Function::exp, -(x * x)) * n.from(2 * part::inv_sqrtpi));
        })
        .on_cuda("erff({0})").in_weftql("erf(x)", "error function"),
    row("sigmoid", 1, kTranscendental + 3, Elements::real, [](auto& n, auto* x) { return part::sigmoid_of(n, x[0]); })
        .with_gradient([](auto& n, Term dy, Term, Term y) { return dy * (y * (n.from(1) - y)); })
        .on_cuda("weft_sigmoid({0})").in_weftql("sigmoid(x)", "1 / (1 + exp(-x))"),
    row("relu", 1, 1, Elements::real, [](auto& n, auto* x) { return n.max(x[0], n.from(0)); })
        .with_gradient([](auto& n, Term dy, Term, Term y) {
          return n.choose(n.greater(y, n.from(0)), dy, n.from(0));
        })
        .on_cuda("weft_max({0}, 0.0f)").in_weftql("relu(x)", "x where positive, else zero"),

    row("gelu", 1, kTranscendental + 4, Elements::real, [](auto& n, auto* x) { return x[0] * part::normal_cdf(n, x[0]); })
        .with_gradient([](auto& n, Term dy, Term x, Term) { return n.call("gelu-gradient", dy, x); })
        .on_processor([](auto& n, auto* x) { return x[0] * part::quick_normal_cdf(n, x[0]); })
        .on_cuda("({0} * weft_normal_below({0}))")
        .in_weftql("gelu(x)", "x times the normal distribution function at x"),
    row("gelu-tanh", 1, kTranscendental + 7, Elements::real,
        [](auto& n, auto* x) { return part::half_of(n, x[0] * (n.from(1) + part::tanh_of_cubic(n, x[0]))); })
        .with_gradient([](auto& n, Term dy, Term x, Term) { return n.call("gelu-tanh-gradient", dy, x); })
        .on_processor([](auto& n, auto* x) { return x[0] * part::gelu_gate(n, x[0]); })
        .on_cuda("(0.5f * {0} * (1.0f + weft_tanh_of_cubic({0})))")
        .in_weftql("gelu_tanh(x)", "gelu by its tanh approximation"),
    row("silu", 1, kTranscendental + 4, Elements::real, [](auto& n, auto* x) { return x[0] * part::sigmoid_of(n, x[0]); })
        .with_gradient([](auto& n, Term dy, Term x, Term) { return n.call("silu-gradient", dy, x); })
        .on_cuda("({0} * weft_sigmoid({0}))").in_weftql("silu(x)", "x * sigmoid(x)"),

    row("mish", 1, kTranscendental + 7, Elements::real,
        [](auto& n, auto* x) {
          const auto w = part::mish_terms(n, n.apply(Function::exp, n.min(x[0], n.from(20))));
          return x[0] * n.divide(w, w + n.from(2));
        })
        .with_gradient([](auto& n, Term dy, Term x, Term) {
          const Term bounded = n.min(x, n.from(20)), e = n.apply(Function::exp, bounded);
          const Term w = part::mish_terms(n, e), rest = n.divide(n.from(2), w + n.from(2));
          return dy * (n.divide(w, w + n.from(2)) + bounded * (e * (e + n.from(1)) * rest * rest));
        })
        .in_weftql("mish(x)", "x * tanh(log(1 + exp(x)))"),

    row("gelu-gradient", 2, 2 * kTranscendental + 9, Elements::real,
        [](auto& n, auto* x) { return x[0] * (part::normal_cdf(n, x[1]) + x[1] * part::normal_density(n, x[1])); })
        .slope()
        .on_processor([](auto& n, auto* x) {
          return x[0] * (part::quick_normal_cdf(n, x[1]) + x[1] * part::quick_normal_density(n, x[1]));
        })
        .on_cuda("({0} * (weft_normal_below({1}) + {1} * weft_normal_density({1})))"),
    row("gelu-tanh-gradient", 2, kTranscendental + 16, Elements::real,
        [](auto& n, auto* x) { return x[0] * part::gelu_tanh_slope(n, x[1]); })
        .slope()
        .on_processor([](auto& n, auto* x) {  // the derivative of the gate is 2 u' gate (1 - gate)
          const auto gate = part::gelu_gate(n, x[1]);
          const auto inner = n.from(2 * part::kSteepness) * (n.from(1) + n.from(3) * n.from(part::kCubic) * (x[1] * x[1]));
          return x[0] * (gate + x[1] * (gate * (n.from(1) - gate)) * inner);
        })
        .on_cuda("({0} * weft_gelu_tanh_slope({1}))"),
    row("silu-gradient", 2, kTranscendental + 8, Elements::real,
        [](auto& n, auto* x) { return x[0] * part::silu_slope(n, x[1]); })
        .slope().on_cuda("({0} * weft_silu_slope({1}))"),
};
// clang-format on

inline constexpr std::size_t kPointwiseCount = std::tuple_size_v<decltype(kPointwiseRows)>;

}  // namespace weft::ops
