#include "weft/rules/equation/counterexample.h"

#include <algorithm>
#include <cmath>
#include <set>

#include <fmt/format.h>

namespace weft::equation {
namespace {

constexpr int kProposals = 120;
constexpr int kTests = 80;
constexpr int kSizeDraws = 2;  // per size tested: one draw may miss a comparison
constexpr std::size_t kValueDraws = 400;
constexpr double kMostWork = 2e7;         // operations for finding values, and again for shrinking them
constexpr std::size_t kMostShrunk = 256;  // elements whose values are shrunk one by one

// Whether the rule fails there at least as clearly: different values are clearer evidence than
// different shapes, and those are clearer than an ill-typed target.
bool fails(Trial& trial, const PlacedSizes& at, Outcome known, Random& random) {
  const Outcome outcome = trial.at(at.sizes, at.ranks, kSizeDraws, random).outcome;
  return is_bad(outcome) && outcome >= known;
}

// Proposals with one dim, or all dims of one size, made smaller.
std::vector<InputSizes> smaller(const InputSizes& sizes) {
  std::vector<InputSizes> proposals;
  std::set<std::int64_t> values;
  for (const auto& dims : sizes) values.insert(dims.begin(), dims.end());
  for (const std::int64_t value : values) {
    if (value == 1) continue;
    for (const std::int64_t less : {std::int64_t{1}, value - 1}) {
      InputSizes proposal = sizes;
      for (auto& dims : proposal) std::ranges::replace(dims, value, less);
      proposals.push_back(std::move(proposal));
    }
  }
  for (std::size_t k = 0; k < sizes.size(); ++k)
    for (std::size_t d = 0; d < sizes[k].size(); ++d) {
      if (sizes[k][d] == 1) continue;
      proposals.push_back(sizes);
      proposals.back()[k][d] -= 1;
    }
  return proposals;
}

void describe_shapes(const Trial& trial, const Instance& instance, rule::Counterexample& example) {
  for (std::size_t k = 0; k < trial.equation().outputs.size(); ++k) {
    const auto& left = instance.source.shapes(instance.source.outputs()[k]);
    const auto& right = instance.target.shapes(instance.target.outputs()[k]);
    for (std::size_t rank = 0; rank < left.size(); ++rank) {
      if (left[rank].sizes == right[rank].sizes && rank + 1 < left.size()) continue;
      example.output = static_cast<std::int32_t>(k);
      example.left_sizes = left[rank].sizes;
      example.right_sizes = right[rank].sizes;
      if (left[rank].sizes != right[rank].sizes) return;
    }
  }
}

// How often both sides may be run within the work limit.
std::size_t affordable(const Instance& instance) {
  return static_cast<std::size_t>(kMostWork / (1 + instance.source.work() + instance.target.work())) + 4;
}

// Sets elements to 0, else 1, else -1, one by one, as long as the sides still differ.
void shrink(const Instance& instance, std::vector<Held<double>>& inputs, const Equation& equation) {
  std::size_t budget = std::min(kMostShrunk, affordable(instance));
  for (std::size_t k = 0; k < inputs.size(); ++k)
    for (std::size_t rank = 0; rank < inputs[k].size(); ++rank) {
      const bool copied = equation.inputs[k].holding == Holding::replicated;
      if (copied && rank > 0) continue;
      for (std::size_t i = 0; i < inputs[k][rank].data.size() && budget > 0; ++i, --budget) {
        const double before = inputs[k][rank].data[i];
        const auto put = [&](double value) {
          for (std::size_t other = rank; other < (copied ? inputs[k].size() : rank + 1); ++other)
            inputs[k][other].data[i] = value;
        };
        for (const double value : {0.0, 1.0, before}) {
          put(value);
          if (value == before || find_difference(instance.source.run<double>(inputs, {}),
                                                 instance.target.run<double>(inputs, {})))
            break;
        }
      }
    }
}

std::vector<std::int64_t> place_of(std::size_t element, std::span<const std::int64_t> sizes) {
  std::vector<std::int64_t> place(sizes.size(), 0);
  for (std::size_t d = sizes.size(); d-- > 0;) {
    place[d] = static_cast<std::int64_t>(element) % sizes[d];
    element /= static_cast<std::size_t>(sizes[d]);
  }
  return place;
}

void describe_values(const Trial& trial, const Instance& instance, rule::Counterexample& example,
                     Random& random) {
  const auto draws = static_cast<int>(std::min<std::size_t>(kValueDraws, affordable(instance)));
  rule::RealDraws reals(constants_of(trial.equation()));
  for (int draw = 0; draw < draws; ++draw) {
    // Begin with small integers; later also use other numbers that distinguish the sides, and
    // alternate with larger ones.
    const std::int64_t most = draw < 50 ? 1 : draw < 150 || draw % 2 == 0 ? 2 : 9;
    std::vector<Held<double>> inputs;
    if (draw < 150 || draw % 4 == 1) {
      inputs = whole_numbers(trial.equation(), instance, most, random);
    } else {
      reals.begin(draw, random);
      inputs = real_numbers(trial.equation(), instance, reals, random);
    }
    const auto differs = [&] {
      return find_difference(instance.source.run<double>(inputs, {}),
                             instance.target.run<double>(inputs, {}));
    };
    if (!differs()) continue;
    shrink(instance, inputs, trial.equation());
    const auto found = differs();
    if (!found) continue;
    example.output = static_cast<std::int32_t>(found->output);
    const auto& shapes = instance.source.shapes(instance.source.outputs()[found->output]);
    example.left_sizes = example.right_sizes = shapes[found->rank].sizes;
    example.at = place_of(found->element, shapes[found->rank].sizes);
    if (instance.ranks > 1) example.at.insert(example.at.begin(), static_cast<std::int64_t>(found->rank));
    example.left = fmt::format("{}", found->left);
    example.right = fmt::format("{}", found->right);
    for (std::size_t k = 0; k < inputs.size(); ++k) {
      const bool copied = trial.equation().inputs[k].holding == Holding::replicated;
      for (std::size_t rank = 0; rank < (copied ? 1 : inputs[k].size()); ++rank)
        example.inputs[k].values.insert(example.inputs[k].values.end(), inputs[k][rank].data.begin(),
                                        inputs[k][rank].data.end());
    }
    return;
  }
  example.left = example.right = "differ modulo 2^61 - 1";
}

}  // namespace

std::int64_t elements_in(const InputSizes& sizes) {
  std::int64_t total = 0;
  for (const auto& dims : sizes) {
    std::int64_t elements = 1;
    for (const std::int64_t size : dims) elements *= size;
    total += elements;
  }
  return total;
}

PlacedSizes smallest_failure(Trial& trial, const LegalSizes& legal, const PlacedSizes& failing,
                             Random& random) {
  PlacedSizes best = failing;
  Outcome known = trial.at(failing.sizes, failing.ranks, kSizeDraws, random).outcome;
  if (!is_bad(known)) known = Outcome::other_values;  // a comparison that this draw missed
  std::set<std::pair<std::int64_t, InputSizes>> proposals;
  for (int k = 0; k < kProposals; ++k)
    if (const auto sizes = legal.draw(random, k, 1 + k % 3)) proposals.emplace(elements_in(*sizes), *sizes);
  int tests = kTests;
  for (const auto& [elements, sizes] : proposals) {
    if (tests-- == 0 || elements >= elements_in(best.sizes)) break;
    if (const PlacedSizes at{sizes, failing.ranks}; fails(trial, at, known, random)) {
      best = at;
      break;
    }
  }
  tests = kTests;
  for (bool better = true; better && tests > 0;) {
    better = false;
    for (InputSizes& sizes : smaller(best.sizes)) {
      if (tests-- == 0) break;
      if (const PlacedSizes at{std::move(sizes), best.ranks}; fails(trial, at, known, random)) {
        best = at;
        better = true;
        break;
      }
    }
  }
  return best;
}

rule::Counterexample counterexample_at(Trial& trial, const PlacedSizes& failing, Random& random) {
  const Equation& equation = trial.equation();
  rule::Counterexample example;
  example.ranks = equation.distributed() ? failing.ranks : 0;
  for (std::size_t k = 0; k < equation.inputs.size(); ++k)
    example.inputs.push_back({equation.inputs[k].name, failing.sizes[k], {}});
  Tried tried = trial.at(failing.sizes, failing.ranks, 1, random);
  for (int again = 0; again < kSizeDraws && !is_bad(tried.outcome); ++again)
    tried = trial.at(failing.sizes, failing.ranks, 4, random);
  if (!tried.instance) {
    example.right = tried.why;
    return example;
  }
  describe_shapes(trial, *tried.instance, example);
  if (tried.outcome != Outcome::other_shapes) describe_values(trial, *tried.instance, example, random);
  return example;
}

}  // namespace weft::equation
