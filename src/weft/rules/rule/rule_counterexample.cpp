#include "weft/rules/rule/rule_counterexample.h"

#include <algorithm>
#include <array>
#include <optional>

#include "weft/rules/rule/run_instance.h"

namespace weft::rule {
namespace {

constexpr int kSmallDraws = 96, kRuleValueDraws = 64, kFailingDraws = 12, kFieldDraws = 3;
// Kinds of numbers (real_draws.h), easiest to read first.
constexpr std::array kPlainFirst = {0, 4, 0, 2, 6, 5, 1, 7, 3};

bool fails_at(const RuleInstance& instance, Random& random) {
  if (instance.refusal) return true;
  RealDraws draws = draws_for(instance);
  for (int draw = 0; draw < kFailingDraws; ++draw) {
    draws.begin(draw, random);
    const auto run = run_real(instance, draws, random);
    if (!run.ok() || run->difference) return true;
  }
  return false;
}

std::vector<std::int64_t> sizes_of(const plan::Type& type) {
  std::vector<std::int64_t> sizes;
  for (const plan::Dim& dim : type.dims) sizes.push_back(dim.size);
  return sizes;
}

std::vector<std::int64_t> coordinates(std::int64_t at, const std::vector<std::int64_t>& sizes) {
  std::vector<std::int64_t> result(sizes.size());
  for (std::size_t k = sizes.size(); k-- > 0; at /= sizes[k]) result[k] = at % sizes[k];
  return result;
}

template <class T>
void describe(const RuleInstance& instance, const InstanceRun<T>& run, Counterexample& found) {
  const Difference& difference = *run.difference;
  found.output = difference.output;
  found.left = difference.left;
  found.right = difference.right;
  const auto outputs = instance.graph.outputs();
  const auto k = static_cast<std::size_t>(difference.output);
  found.left_sizes = sizes_of(instance.graph.type(outputs[k].value));
  found.right_sizes = sizes_of(instance.graph.type(outputs[k + outputs.size() / 2].value));
  if (difference.at >= 0) found.at = coordinates(difference.at, run.left[k].sizes);
}

// The counterexample's sizes, without values.
Counterexample begun_at(const Rule& rule, const RuleInstance& instance) {
  Counterexample found;
  found.ranks = instance.distributed() ? instance.mesh.ranks() : 0;
  for (std::size_t i = 0; i < rule.inputs.size(); ++i)
    found.inputs.push_back({rule.inputs[i].name, sizes_of(instance.graph.type(instance.left[i])), {}});
  return found;
}

void add_values(const RealRun& run, Counterexample& found) {
  for (std::size_t i = 0; i < found.inputs.size(); ++i)
    for (const ops::Rounded& element : run.inputs[i].data) found.inputs[i].values.push_back(element.value);
}

Counterexample at(const Rule& rule, const RuleInstance& instance, Random& random) {
  Counterexample found = begun_at(rule, instance);
  if (instance.refusal) {
    found.left = "is well typed";
    found.right = instance.refusal->message;
    return found;
  }
  RealDraws draws = draws_for(instance);
  for (int draw = 0; draw < kRuleValueDraws; ++draw) {
    // Try each kind equally often before the next.
    constexpr int kTries = kRuleValueDraws / static_cast<int>(kPlainFirst.size());
    draws.begin(kPlainFirst[static_cast<std::size_t>(std::min<int>(draw / kTries, kPlainFirst.size() - 1))],
                random);
    const auto run = run_real(instance, draws, random);
    if (!run.ok()) {
      found.right = run.error().message;
      return found;
    }
    if (!run->difference) continue;
    describe(instance, *run, found);
    add_values(*run, found);
    return found;
  }
  for (int draw = 0; draw < kFieldDraws; ++draw) {
    const auto run = run_field(instance, random);
    if (!run.ok() || !run->difference) continue;
    describe(instance, *run, found);
    return found;
  }
  return found;
}

}  // namespace

Counterexample counterexample_of(const Rule& rule, const RuleInstance& instance, const RealRun& run) {
  Counterexample found = begun_at(rule, instance);
  describe(instance, run, found);
  add_values(run, found);
  return found;
}

Counterexample find_counterexample(const Rule& rule, std::span<const JudgedInstance> judged, Random& random) {
  const RuleInstance* smallest = nullptr;
  // A difference in values is clearer than an ill-typed right side.
  const auto better = [](const RuleInstance& a, const RuleInstance& b) {
    if (a.refusal.has_value() != b.refusal.has_value()) return !a.refusal.has_value();
    return a.elements < b.elements;
  };
  for (const JudgedInstance& each : judged)
    if (!each.good && (smallest == nullptr || better(each.instance, *smallest))) smallest = &each.instance;
  std::optional<RuleInstance> kept;
  for (int draw = 0; draw < kSmallDraws; ++draw) {
    InstanceOptions options;
    options.largest = draw < kSmallDraws / 2 ? 2 : 3;
    auto instance = draw_instance(rule, random, options);
    if (!instance.ok()) break;
    if (!better(*instance, *smallest) || !fails_at(*instance, random)) continue;
    kept = std::move(instance).value();
    smallest = &*kept;
  }
  return at(rule, *smallest, random);
}

}  // namespace weft::rule
