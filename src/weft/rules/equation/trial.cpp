#include "weft/rules/equation/trial.h"

#include <algorithm>
#include <cmath>

namespace weft::equation {
namespace {

using ops::Field;
using ops::Rounded;

// Runs on real numbers before a difference over the field is attributed to the field's order.
constexpr int kTrialRunsAlone = 16;

// `draw` returns one element. Ranks that hold a replicated input get the same tensor.
template <class T, class Draw>
std::vector<Held<T>> fill(const Equation& equation, const Instance& instance, Draw draw) {
  std::vector<Held<T>> inputs;
  for (std::size_t k = 0; k < equation.inputs.size(); ++k) {
    const auto& shapes = instance.source.shapes(Operand{-1, static_cast<std::int32_t>(k)});
    Held<T> held;
    for (const Shape& shape : shapes) {
      if (!held.empty() && equation.inputs[k].holding == Holding::replicated) {
        held.push_back(held[0]);
        continue;
      }
      ops::Tensor<T> tensor{shape.sizes, {}};
      tensor.data.resize(static_cast<std::size_t>(elements_of(shape)));
      for (T& element : tensor.data) element = draw();
      held.push_back(std::move(tensor));
    }
    inputs.push_back(std::move(held));
  }
  return inputs;
}

bool same_shapes(const Instance& instance) {
  for (std::size_t k = 0; k < instance.source.outputs().size(); ++k) {
    const auto& left = instance.source.shapes(instance.source.outputs()[k]);
    const auto& right = instance.target.shapes(instance.target.outputs()[k]);
    for (std::size_t rank = 0; rank < left.size(); ++rank)
      if (left[rank].sizes != right[rank].sizes) return false;
  }
  return true;
}

bool same_values(const std::vector<Held<Field>>& left, const std::vector<Held<Field>>& right) {
  for (std::size_t k = 0; k < left.size(); ++k)
    for (std::size_t rank = 0; rank < left[k].size(); ++rank)
      if (left[k][rank].data != right[k][rank].data) return false;
  return true;
}

}  // namespace

Trial::Trial(const Equation& equation, Algebra& algebra)
    : equation_(equation), algebra_(algebra), compares_(compares(equation)), draws_(constants_of(equation)) {}

std::vector<double> constants_of(const Equation& equation) {
  std::vector<double> found;
  for (const auto* side : {&equation.source, &equation.target})
    for (const Operation& operation : *side)
      if (operation.details.factor != 1) found.push_back(operation.details.factor);
  return found;
}

bool is_bad(Outcome outcome) {
  return outcome == Outcome::target_ill_typed || outcome == Outcome::other_shapes ||
         outcome == Outcome::other_values;
}

bool compares(const Equation& equation) {
  const auto does = [](const Operation& operation) {
    const bool extreme =
        operation.details.kind == ReduceKind::max || operation.details.kind == ReduceKind::min;
    return operation.verb == Verb::relu || operation.verb == Verb::pool_max || operation.details.then_relu ||
           extreme;
  };
  return std::ranges::any_of(equation.source, does) || std::ranges::any_of(equation.target, does);
}

Tried Trial::at(const InputSizes& sizes, std::int32_t ranks, std::int32_t draws, Random& random,
                double most_work) {
  auto source = EquationSide::prepare(algebra_, equation_, Which::source, sizes, ranks);
  if (!source.ok()) return {Outcome::source_ill_typed, source.error().message, {}};
  if (source->work() > most_work) return {Outcome::too_much_work, "the source computes too much", {}};
  auto target = EquationSide::prepare(algebra_, equation_, Which::target, sizes, ranks);
  if (!target.ok()) return {Outcome::target_ill_typed, target.error().message, {}};
  Tried tried{
      Outcome::equal, {}, Instance{sizes, ranks, std::move(source).value(), std::move(target).value()}};
  if (!same_shapes(*tried.instance)) {
    tried.outcome = Outcome::other_shapes;
    return tried;
  }
  for (std::int32_t k = 0; k < std::max(draws, 1); ++k) {
    const Outcome outcome = again(*tried.instance, random);
    if (outcome != Outcome::equal) tried.outcome = outcome;
    if (is_bad(outcome)) break;
  }
  return tried;
}

Outcome Trial::again(const Instance& instance, Random& random) {
  const ops::Numbers<Field> numbers{.key = random.next()};
  const auto inputs = fill<Field>(equation_, instance, [&] { return Field(random.next()); });
  if (same_values(instance.source.run<Field>(inputs, numbers), instance.target.run<Field>(inputs, numbers)))
    return holds_in_reals(instance, 1, random) ? Outcome::equal : Outcome::other_values;
  // Without comparisons both sides are polynomials, for which the field is conclusive.
  if (!compares_ || !holds_in_reals(instance, kTrialRunsAlone, random)) return Outcome::other_values;
  return Outcome::equal_in_reals;
}

bool Trial::holds_in_reals(const Instance& instance, int runs, Random& random) {
  for (int run = 0; run < runs; ++run) {
    draws_.begin(turn_++, random);
    ops::RoundedNotes notes;
    const ops::Numbers<Rounded> numbers{.notes = &notes, .rounds = false, .key = 0};
    const auto inputs = fill<Rounded>(equation_, instance, [&] {
      return Rounded{draws_.next(plan::DType::f64, random), 0};
    });
    const auto left = instance.source.run<Rounded>(inputs, numbers),
               right = instance.target.run<Rounded>(inputs, numbers);
    rule::RealEvidence found;
    for (std::size_t k = 0; k < left.size(); ++k)
      for (std::size_t rank = 0; rank < left[k].size(); ++rank)
        if (rule::add_compared(left[k][rank], right[k][rank], found) && !notes.doubt) return false;
    if (notes.doubt) found.conclusive = 0;
    found.conclusive = std::min<std::int64_t>(found.conclusive, 1);
    reals_.add(found);
  }
  return true;
}

std::vector<Held<double>> whole_numbers(const Equation& equation, const Instance& instance, std::int64_t most,
                                        Random& random) {
  return fill<double>(equation, instance, [&] { return static_cast<double>(random.between(-most, most)); });
}

std::vector<Held<double>> real_numbers(const Equation& equation, const Instance& instance,
                                       const rule::RealDraws& draws, Random& random) {
  return fill<double>(equation, instance, [&] { return draws.next(plan::DType::f64, random); });
}

std::optional<TrialDifference> find_difference(const std::vector<Held<double>>& left,
                                               const std::vector<Held<double>>& right) {
  for (std::size_t k = 0; k < left.size(); ++k)
    for (std::size_t rank = 0; rank < left[k].size(); ++rank)
      for (std::size_t i = 0; i < left[k][rank].data.size(); ++i) {
        const double a = left[k][rank].data[i], b = right[k][rank].data[i];
        // Integers this small are exact; quotients such as ninths are rounded.
        if (std::abs(a - b) > 1e-9 * (1 + std::abs(a) + std::abs(b)))
          return TrialDifference{k, rank, i, a, b};
      }
  return std::nullopt;
}

}  // namespace weft::equation
