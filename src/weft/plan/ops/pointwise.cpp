#include "weft/plan/ops/pointwise.h"

#include <array>
#include <typeinfo>
#include <utility>
#include <vector>

#include "weft/plan/ops/arithmetic.h"
#include "weft/plan/ops/pointwise_rows.h"

namespace weft::ops {
namespace {

template <std::size_t kRow>
Status gradient_from(Gradient& g) {
  Terms n;
  const Term dy = n.operand(0), x = n.operand(1), y = n.operand(2);
  return gradient_of::formula(g, n, std::get<kRow>(kPointwiseRows).gradient(n, dy, x, y));
}

template <std::size_t kRow>
Term terms_from(Terms& n) {
  constexpr auto& row = std::get<kRow>(kPointwiseRows);
  std::array<Term, row.arity> x;
  for (std::uint32_t i = 0; i < row.arity; ++i) x[i] = n.operand(i);
  return row.means(n, x.data());
}

template <std::size_t kRow>
constexpr Pointwise pointwise_at() {
  constexpr auto& row = std::get<kRow>(kPointwiseRows);
  Pointwise made;
  made.name = row.name;
  made.arity = row.arity;
  made.flops = row.flops;
  made.takes = row.takes;
  made.gives_bool = row.gives_bool;
  made.is_slope = row.is_slope;
  made.usage = row.usage;
  made.summary = row.summary;
  made.meaning = row.means;
  made.cuda = row.cuda;
  if constexpr (!std::is_same_v<decltype(row.integers), Nothing>) made.of_integers = row.integers;
  if constexpr (std::is_convertible_v<decltype(row.gradient), Status (*)(Gradient&)>)
    made.gradient = row.gradient;
  else if constexpr (!std::is_same_v<decltype(row.gradient), Nothing>)
    made.gradient = gradient_from<kRow>;
  if constexpr (row.cuda.empty()) made.terms = terms_from<kRow>;
  return made;
}

template <std::size_t... kRow>
constexpr auto table_of(std::index_sequence<kRow...>) {
  return std::array{pointwise_at<kRow>()...};
}
constexpr auto kTable = table_of(std::make_index_sequence<kPointwiseCount>());

constexpr std::size_t kMostOperands = 3;

class PointwiseOperator final : public OperatorOf<PointwiseOperator> {
 public:
  explicit PointwiseOperator(const Pointwise& row) : row_(row) {}

  const Pointwise& row() const { return row_; }

  std::string_view name() const override { return row_.name; }
  std::size_t min_inputs() const override { return row_.arity; }
  std::size_t max_inputs() const override { return row_.arity; }

  Status infer(const plan::NodeView& node, plan::ResultTypes& results) const override {
    // With three operands the first is the condition of a select.
    const std::size_t first = row_.arity == 3 ? 1 : 0;
    if (first == 1) WEFT_TRY_STATUS(expect(node, 0, Elements::boolean));
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

consteval std::size_t place_of(std::string_view name) {
  std::size_t at = 0;
  while (kTable[at].name != name)
    ++at;  // past the end is not a constant expression: a misspelling does not compile
  return at;
}

template <std::size_t... kRow>
const Operator& operator_at(std::size_t place, std::index_sequence<kRow...>) {
  static const std::array<PointwiseOperator, kPointwiseCount> kOperators = {
      PointwiseOperator(kTable[kRow])...};
  return kOperators[place];
}

}  // namespace

std::span<const Pointwise> pointwise_rows() { return kTable; }

const Operator& pointwise_operator(std::size_t place) {
  return operator_at(place, std::make_index_sequence<kPointwiseCount>());
}

const Pointwise* find_pointwise(const plan::Operator& op) {
  if (typeid(op) != typeid(PointwiseOperator)) return nullptr;  // faster than a dynamic cast
  return &static_cast<const PointwiseOperator&>(op).row();
}

// The operators that arithmetic.h declares.
const Operator& add() { return pointwise_operator(place_of("add")); }
const Operator& sub() { return pointwise_operator(place_of("sub")); }
const Operator& mul() { return pointwise_operator(place_of("mul")); }
const Operator& div() { return pointwise_operator(place_of("div")); }
const Operator& mod() { return pointwise_operator(place_of("mod")); }
const Operator& pow() { return pointwise_operator(place_of("pow")); }
const Operator& maximum() { return pointwise_operator(place_of("maximum")); }
const Operator& minimum() { return pointwise_operator(place_of("minimum")); }
const Operator& neg() { return pointwise_operator(place_of("neg")); }
const Operator& abs() { return pointwise_operator(place_of("abs")); }
const Operator& equal() { return pointwise_operator(place_of("equal")); }
const Operator& not_equal() { return pointwise_operator(place_of("not-equal")); }
const Operator& less() { return pointwise_operator(place_of("less")); }
const Operator& less_equal() { return pointwise_operator(place_of("less-equal")); }
const Operator& greater() { return pointwise_operator(place_of("greater")); }
const Operator& greater_equal() { return pointwise_operator(place_of("greater-equal")); }
const Operator& logical_and() { return pointwise_operator(place_of("and")); }
const Operator& logical_or() { return pointwise_operator(place_of("or")); }
const Operator& logical_not() { return pointwise_operator(place_of("not")); }
const Operator& select() { return pointwise_operator(place_of("select")); }
const Operator& exp() { return pointwise_operator(place_of("exp")); }
const Operator& log() { return pointwise_operator(place_of("log")); }
const Operator& sqrt() { return pointwise_operator(place_of("sqrt")); }
const Operator& rsqrt() { return pointwise_operator(place_of("rsqrt")); }
const Operator& sin() { return pointwise_operator(place_of("sin")); }
const Operator& cos() { return pointwise_operator(place_of("cos")); }
const Operator& tanh() { return pointwise_operator(place_of("tanh")); }
const Operator& erf() { return pointwise_operator(place_of("erf")); }
const Operator& sigmoid() { return pointwise_operator(place_of("sigmoid")); }
const Operator& relu() { return pointwise_operator(place_of("relu")); }
const Operator& gelu() { return pointwise_operator(place_of("gelu")); }
const Operator& gelu_tanh() { return pointwise_operator(place_of("gelu-tanh")); }

}  // namespace weft::ops
