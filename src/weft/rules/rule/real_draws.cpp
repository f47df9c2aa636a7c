#include "weft/rules/rule/real_draws.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "weft/plan/ops/interpret.h"
#include "weft/plan/ops/operators.h"
#include "weft/rules/rule/row_positions.h"

namespace weft::rule {
namespace {

constexpr std::size_t kMostNamed = 12, kMostOfANode = 6;
constexpr std::array kTiny = {0.0, 1.0, -1.0};
constexpr std::array kSmall = {0.0, 1.0, -1.0, 2.0, -2.0, 0.5, -0.5, 3.0};

template <std::size_t N>
double any_of(const std::array<double, N>& from, Random& random) {
  return from[random.below(N)];
}

double sign(Random& random) { return random.below(2) == 0 ? -1 : 1; }

void keep(std::vector<double>& into, double value) {
  if (std::isfinite(value) && std::ranges::find(into, value) == into.end()) into.push_back(value);
}

}  // namespace

RealDraws::RealDraws(std::vector<double> constants, Hints hints, std::int64_t rows)
    : hints_(std::move(hints)), rows_(rows) {
  std::vector<double> named;
  for (const double each : constants)
    if (named.size() < kMostNamed) keep(named, each);
  for (const double each : named)
    for (const double near : {each, -each, each + 1, each - 1, each / 2, 2 * each, std::sqrt(std::abs(each))})
      keep(constants_, near);
  for (const double a : named)
    for (const double b : named)
      if (a != b)
        for (const double both : {a + b, a - b, a * b, b == 0 ? 0 : a / b, (a + b) / 2})
          keep(constants_, both);
}

void RealDraws::begin(int turn, Random& random) {
  turn_ = turn % kTurns;
  const auto pick = [&] {
    const std::uint64_t roll = random.below(3);
    if (roll == 0 && !constants_.empty()) return constants_[random.below(constants_.size())];
    return roll == 1 ? 6 * random.uniform() - 3 : any_of(kSmall, random);
  };
  one_ = pick();
  other_ = pick();
}

double RealDraws::real(Random& random) const {
  switch (turn_) {
    case 0: return any_of(kTiny, random);
    case 1: return 6 * random.uniform() - 3;
    case 2:
    case 4:
      if (!constants_.empty() && random.below(4) != 0) return constants_[random.below(constants_.size())];
      return any_of(kSmall, random);
    case 3: return sign(random) * std::pow(10, 24 * random.uniform() - 12);
    case 5: return 0.1 + 4 * random.uniform();
    case 6: return random.below(2) == 0 ? one_ : other_;
    default: return sign(random) * (20 + 780 * random.uniform());
  }
}

double RealDraws::whole(Random& random, bool wide) const {
  switch (turn_) {
    case 0: return any_of(kTiny, random);
    case 1: return static_cast<double>(random.between(-9, 9));
    case 3: {
      // The smallest integer cannot be negated.
      const double least = wide ? -0x1p63 : -0x1p31, most = wide ? 0x1p52 : 0x1p31 - 1;
      if (random.below(4) == 0) return random.below(2) == 0 ? most : random.below(2) == 0 ? least : -most;
      return sign(random) * std::floor(std::pow(2, (wide ? 52 : 31) * random.uniform()));
    }
    case 5: return static_cast<double>(random.between(0, 7));
    case 7: return static_cast<double>(random.between(-1000, 1000));
    default: return std::trunc(real(random));
  }
}

double RealDraws::next(plan::DType dtype, Random& random, std::size_t input) const {
  if (dtype == plan::DType::boolean) return static_cast<double>(random.below(2));
  const bool whole_number = plan::is_integer(dtype);
  // Numbers that once distinguished the sides are tried in three of eight runs, mostly unchanged.
  const bool hinted =
      turn_ % 3 == 0 && input < hints_.size() && !hints_[input].empty() && random.below(4) != 0;
  // With an offset, nearly all integers are rows.
  const bool row = rows_ > 0 && whole_number && random.below(8) < (first_ > 0 ? 7u : 3u);
  const double value = hinted         ? hints_[input][random.below(hints_[input].size())]
                       : row          ? static_cast<double>(first_ + random.between(-1, rows_))
                       : whole_number ? whole(random, dtype == plan::DType::i64)
                                      : real(random);
  switch (dtype) {
    case plan::DType::i32: return value == -0x1p31 ? value : std::trunc(std::fmod(value, 0x1p31));
    case plan::DType::i64: return value == -0x1p63 ? value : std::trunc(std::fmod(value, 0x1p53));
    case plan::DType::f32: return static_cast<double>(static_cast<float>(value));
    case plan::DType::f64: return value;
    default: {
      // 16-bit floats overflow where the rule does not, so most of their numbers stay small.
      const double most = turn_ != 3 || dtype == plan::DType::f16 || plan::is_f8(dtype) ? 64 : 0x1p100;
      return ops::Numbers<ops::Rounded>{.rounds = true}.stored({std::fmod(value, most), 0}, dtype).value;
    }
  }
}

RealDraws draws_for(const RuleInstance& instance, RealDraws::Hints hints) {
  const RowUses uses = row_uses(instance.graph);
  return RealDraws(constants_of(instance.judged_graph()), std::move(hints), uses.any ? uses.largest : 0);
}

std::vector<double> constants_of(const plan::Graph& graph) {
  std::vector<double> found;
  std::vector<ops::Tensor<ops::Rounded>> values(graph.value_count());
  std::vector<bool> known(graph.value_count(), false);
  for (std::size_t id = 0; id < graph.node_count(); ++id) {
    const plan::NodeView node = graph.view(plan::NodeId(id));
    if (ops::is_source(node.op())) continue;
    const auto specs = node.op().attributes();
    for (std::size_t k = 0; k < specs.size(); ++k)
      if (specs[k].kind == plan::AttributeKind::real) keep(found, node.real(k));
    std::vector<const ops::Tensor<ops::Rounded>*> inputs;
    bool constant = true;
    for (std::size_t i = 0; i < node.input_count(); ++i) {
      constant &= known[node.input(i).value];
      inputs.push_back(&values[node.input(i).value]);
    }
    if (!constant) continue;
    std::vector<ops::Tensor<ops::Rounded>> results = ops::evaluate<ops::Rounded>(node, inputs);
    for (std::size_t k = 0; k < results.size(); ++k) {
      const auto& data = results[k].data;
      for (std::size_t i = 0; i < data.size(); i += std::max<std::size_t>(1, data.size() / kMostOfANode))
        keep(found, data[i].value);
      if (!data.empty()) keep(found, data.back().value);
      known[node.result(k).value] = true;
      values[node.result(k).value] = std::move(results[k]);
    }
  }
  return found;
}

}  // namespace weft::rule
