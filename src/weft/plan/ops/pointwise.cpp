#include "weft/plan/ops/pointwise.h"

#include <array>
#include <numbers>
#include <typeinfo>

#include "weft/plan/ops/operators.h"

namespace weft::ops {
namespace {

using enum Elements;
using std::numbers::inv_sqrtpi;
using std::numbers::sqrt2;

// About the length of the polynomial that a vector math library evaluates for exp, log or sin.
constexpr double kTranscendental = 8;

// Functions made of others are spelled so in every number type: what is an identity of floats
// is then one of the field, and rules may use it.
constexpr auto truth = [](auto& n, bool value) { return n.from(value ? 1 : 0); };
constexpr auto at_most = [](auto& n, auto a, auto b) { return n.less(a, b) || n.equal(a, b); };
constexpr auto sigmoid_of = [](auto& n, auto x) {
  return n.divide(n.from(1), n.from(1) + n.apply(Function::exp, -x));
};
constexpr auto half_of = [](auto& n, auto x) { return n.divide(x, n.from(2)); };
// The normal distribution below x: (1 + erf(x / sqrt 2)) / 2.
constexpr auto normal_below = [](auto& n, auto x) {
  return half_of(n, n.from(1) + n.apply(Function::erf, n.divide(x, n.from(sqrt2))));
};
constexpr auto normal_density = [](auto& n, auto x) {
  return n.from(inv_sqrtpi / sqrt2) * n.apply(Function::exp, -half_of(n, x * x));
};
// gelu-tanh is x (1 + tanh u(x)) / 2 with u(x) = sqrt(2/pi) (x + 0.044715 x^3).
constexpr double kCubic = 0.044715;
constexpr double kSteepness = sqrt2 * inv_sqrtpi;
constexpr auto tanh_of_cubic = [](auto& n, auto x) {
  return n.apply(Function::tanh, n.from(kSteepness) * (x + n.from(kCubic) * x * x * x));
};
constexpr auto gelu_tanh_slope = [](auto& n, auto x) {
  const auto one = n.from(1);
  const auto t = tanh_of_cubic(n, x);
  const auto inner = n.from(kSteepness) * (one + n.from(3 * kCubic) * x * x);
  return half_of(n, one + t + x * (one - t * t) * inner);
};
constexpr auto silu_slope = [](auto& n, auto x) {
  const auto s = sigmoid_of(n, x);
  return s * (n.from(1) + x * (n.from(1) - s));
};
// Integer division drops the fraction; dividing by zero gives zero, so that it is never undefined.
constexpr auto quotient = [](auto& n, auto a, auto b) {
  const std::int64_t divisor = n.to_integer(b);
  if (divisor == -1) return -a;  // apart: the least integer has no positive twin
  return n.from_integer(divisor == 0 ? 0 : n.to_integer(a) / divisor);
};
constexpr auto remainder = [](auto& n, auto a, auto b) {
  const std::int64_t divisor = n.to_integer(b);
  return n.from_integer(divisor == 0 || divisor == -1 ? 0 : n.to_integer(a) % divisor);
};
// name, arity, flops, takes, gives bool, meaning, gradient, of integers
// clang-format off
constexpr std::array kTable = {
    Pointwise{"add",           2, 1, number,  false, [](auto&, auto* x) { return x[0] + x[1]; }, gradient_of::add},
    Pointwise{"sub",           2, 1, number,  false, [](auto&, auto* x) { return x[0] - x[1]; }, gradient_of::sub},
    Pointwise{"mul",           2, 1, number,  false, [](auto&, auto* x) { return x[0] * x[1]; }, gradient_of::mul},
    Pointwise{"div",           2, 1, number,  false, [](auto& n, auto* x) { return n.divide(x[0], x[1]); }, gradient_of::div,
              [](auto& n, auto* x) { return quotient(n, x[0], x[1]); }},
    Pointwise{"mod",           2, 3, number,  false, [](auto& n, auto* x) { return n.remainder(x[0], x[1]); }, gradient_of::mod,
              [](auto& n, auto* x) { return remainder(n, x[0], x[1]); }},
    Pointwise{"pow",           2, 2 * kTranscendental, real, false, [](auto& n, auto* x) { return n.power(x[0], x[1]); }, gradient_of::pow},
    Pointwise{"maximum",       2, 1, number,  false, [](auto& n, auto* x) { return n.max(x[0], x[1]); }, gradient_of::extremum},
    Pointwise{"minimum",       2, 1, number,  false, [](auto& n, auto* x) { return n.min(x[0], x[1]); }, gradient_of::extremum},
    Pointwise{"neg",           1, 1, number,  false, [](auto&, auto* x) { return -x[0]; }, gradient_of::neg},
    Pointwise{"abs",           1, 1, number,  false, [](auto& n, auto* x) { return n.max(x[0], -x[0]); }, gradient_of::abs},

    Pointwise{"equal",         2, 1, any,     true,  [](auto& n, auto* x) { return truth(n, n.equal(x[0], x[1])); }, nullptr},
    Pointwise{"not-equal",     2, 1, any,     true,  [](auto& n, auto* x) { return truth(n, !n.equal(x[0], x[1])); }, nullptr},
    Pointwise{"less",          2, 1, number,  true,  [](auto& n, auto* x) { return truth(n, n.less(x[0], x[1])); }, nullptr},
    Pointwise{"less-equal",    2, 1, number,  true,  [](auto& n, auto* x) { return truth(n, at_most(n, x[0], x[1])); }, nullptr},
    Pointwise{"greater",       2, 1, number,  true,  [](auto& n, auto* x) { return truth(n, n.less(x[1], x[0])); }, nullptr},
    Pointwise{"greater-equal", 2, 1, number,  true,  [](auto& n, auto* x) { return truth(n, at_most(n, x[1], x[0])); }, nullptr},
    Pointwise{"and",           2, 1, boolean, true,  [](auto&, auto* x) { return x[0] * x[1]; }, nullptr},
    Pointwise{"or",            2, 1, boolean, true,  [](auto&, auto* x) { return x[0] + x[1] - x[0] * x[1]; }, nullptr},
    Pointwise{"not",           1, 1, boolean, true,  [](auto& n, auto* x) { return n.from(1) - x[0]; }, nullptr},
    Pointwise{"select",        3, 1, any,     false, [](auto& n, auto* x) { return x[0] == n.from(0) ? x[2] : x[1]; }, gradient_of::select},

    Pointwise{"exp",     1, kTranscendental,     real, false, [](auto& n, auto* x) { return n.apply(Function::exp, x[0]); }, gradient_of::exp},
    Pointwise{"log",     1, kTranscendental,     real, false, [](auto& n, auto* x) { return n.apply(Function::log, x[0]); }, gradient_of::log},
    Pointwise{"sqrt",    1, 1,                   real, false, [](auto& n, auto* x) { return n.apply(Function::sqrt, x[0]); }, gradient_of::sqrt},
    Pointwise{"rsqrt",   1, 2,                   real, false, [](auto& n, auto* x) { return n.apply(Function::rsqrt, x[0]); }, gradient_of::rsqrt},
    Pointwise{"sin",     1, kTranscendental,     real, false, [](auto& n, auto* x) { return n.apply(Function::sin, x[0]); }, gradient_of::sin},
    Pointwise{"cos",     1, kTranscendental,     real, false, [](auto& n, auto* x) { return n.apply(Function::cos, x[0]); }, gradient_of::cos},
    Pointwise{"tanh",    1, kTranscendental,     real, false, [](auto& n, auto* x) { return n.apply(Function::tanh, x[0]); }, gradient_of::tanh},
    Pointwise{"erf",     1, kTranscendental,     real, false, [](auto& n, auto* x) { return n.apply(Function::erf, x[0]); }, gradient_of::erf},
    Pointwise{"sigmoid", 1, kTranscendental + 3, real, false, [](auto& n, auto* x) { return sigmoid_of(n, x[0]); }, gradient_of::sigmoid},
    Pointwise{"relu",    1, 1,                   real, false, [](auto& n, auto* x) { return n.max(x[0], n.from(0)); }, gradient_of::relu},
    Pointwise{"gelu",    1, kTranscendental + 4, real, false, [](auto& n, auto* x) { return x[0] * normal_below(n, x[0]); }, gradient_of::gelu},
    Pointwise{"gelu-tanh", 1, kTranscendental + 7, real, false,
              [](auto& n, auto* x) { return half_of(n, x[0] * (n.from(1) + tanh_of_cubic(n, x[0]))); }, gradient_of::gelu_tanh},
    Pointwise{"silu",    1, kTranscendental + 4, real, false, [](auto& n, auto* x) { return x[0] * sigmoid_of(n, x[0]); }, gradient_of::silu},

    // dx from (dy, x), one node where the equation would be ten.
    Pointwise{"gelu-gradient", 2, 2 * kTranscendental + 9, real, false,
              [](auto& n, auto* x) { return x[0] * (normal_below(n, x[1]) + x[1] * normal_density(n, x[1])); }, nullptr},
    Pointwise{"gelu-tanh-gradient", 2, kTranscendental + 16, real, false,
              [](auto& n, auto* x) { return x[0] * gelu_tanh_slope(n, x[1]); }, nullptr},
    Pointwise{"silu-gradient", 2, kTranscendental + 8, real, false,
              [](auto& n, auto* x) { return x[0] * silu_slope(n, x[1]); }, nullptr},

};
// clang-format on

constexpr std::size_t kMostOperands = 3;

class PointwiseOperator final : public OperatorOf<PointwiseOperator> {
 public:
  explicit PointwiseOperator(const Pointwise& row) : row_(row) {}

  const Pointwise& row() const { return row_; }

  std::string_view name() const override { return row_.name; }
  std::size_t fewest_inputs() const override { return row_.arity; }
  std::size_t most_inputs() const override { return row_.arity; }

  Status infer(const plan::NodeView& node, plan::ResultTypes& results) const override {
    // Of three operands the first is the condition, the others are what it chooses from.
    const std::size_t first = row_.arity == 3 ? 1 : 0;
    if (first == 1) WEFT_TRY_STATUS(expect(node, 0, boolean));
    WEFT_TRY_STATUS(expect(node, first, row_.takes));
    WEFT_TRY_STATUS(same_dtype(node, first));
    WEFT_TRY(joined, join_inputs_widest_first(node));
    return results.add(row_.gives_bool ? plan::DType::boolean : node.input_type(first).dtype, joined);
  }

  plan::Signature signature(const plan::NodeView& node) const override { return parallel_loops(node); }
  plan::Work work(const plan::NodeView& node) const override { return flops_each(node, row_.flops); }

  Status gradient(Gradient& g) const override {
    return row_.gradient != nullptr ? row_.gradient(g) : Operator::gradient(g);
  }

  template <class T>
  void evaluate(Evaluation<T>& at) const {
    const plan::NodeView& node = at.node();
    const plan::Type type = node.result_type(0);
    const bool integers = is_integer(node.input_type(0).dtype) && row_.of_integers.in<T>() != nullptr;
    const Compute<T> compute = (integers ? row_.of_integers : row_.meaning).template in<T>();

    Walk walk(sizes_of(type.dims));
    for (std::size_t i = 0; i < row_.arity; ++i) walk.track(strides_along(node.input_type(i), type.dims));
    std::array<T, kMostOperands> operands;
    for (T& element : at.result(0).data) {
      for (std::size_t i = 0; i < row_.arity; ++i) operands[i] = at.input(i).data[walk.offset(i)];
      element = compute(at.numbers, operands.data());
      walk.next();
    }
  }

 private:
  const Pointwise& row_;
};

constexpr std::size_t row(std::string_view name) {
  std::size_t at = 0;
  while (kTable[at].name != name)
    ++at;  // past the end is no constant expression: a misspelling does not compile
  return at;
}

template <std::size_t kRow>
const Operator& at() {
  static const PointwiseOperator op(kTable[kRow]);
  return op;
}

}  // namespace

const Pointwise* find_pointwise(const plan::Operator& op) {
  if (typeid(op) != typeid(PointwiseOperator)) return nullptr;  // a final class: quicker than a cast
  return &static_cast<const PointwiseOperator&>(op).row();
}

const Operator& add() { return at<row("add")>(); }
const Operator& sub() { return at<row("sub")>(); }
const Operator& mul() { return at<row("mul")>(); }
const Operator& div() { return at<row("div")>(); }
const Operator& mod() { return at<row("mod")>(); }
const Operator& pow() { return at<row("pow")>(); }
const Operator& maximum() { return at<row("maximum")>(); }
const Operator& minimum() { return at<row("minimum")>(); }
const Operator& neg() { return at<row("neg")>(); }
const Operator& abs() { return at<row("abs")>(); }
const Operator& equal() { return at<row("equal")>(); }
const Operator& not_equal() { return at<row("not-equal")>(); }
const Operator& less() { return at<row("less")>(); }
const Operator& less_equal() { return at<row("less-equal")>(); }
const Operator& greater() { return at<row("greater")>(); }
const Operator& greater_equal() { return at<row("greater-equal")>(); }
const Operator& logical_and() { return at<row("and")>(); }
const Operator& logical_or() { return at<row("or")>(); }
const Operator& logical_not() { return at<row("not")>(); }
const Operator& select() { return at<row("select")>(); }
const Operator& exp() { return at<row("exp")>(); }
const Operator& log() { return at<row("log")>(); }
const Operator& sqrt() { return at<row("sqrt")>(); }
const Operator& rsqrt() { return at<row("rsqrt")>(); }
const Operator& sin() { return at<row("sin")>(); }
const Operator& cos() { return at<row("cos")>(); }
const Operator& tanh() { return at<row("tanh")>(); }
const Operator& erf() { return at<row("erf")>(); }
const Operator& sigmoid() { return at<row("sigmoid")>(); }
const Operator& relu() { return at<row("relu")>(); }
const Operator& gelu() { return at<row("gelu")>(); }
const Operator& gelu_tanh() { return at<row("gelu-tanh")>(); }
const Operator& silu() { return at<row("silu")>(); }
const Operator& gelu_gradient() { return at<row("gelu-gradient")>(); }
const Operator& gelu_tanh_gradient() { return at<row("gelu-tanh-gradient")>(); }
const Operator& silu_gradient() { return at<row("silu-gradient")>(); }

}  // namespace weft::ops
