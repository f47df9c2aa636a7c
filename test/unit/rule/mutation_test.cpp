// Small errors in shipped rules do not get past the prover.
#include <cmath>
#include <map>

#include <gtest/gtest.h>

#include "thorough.h"
#include "weft/base/random.h"
#include "weft/plan/ops/interpret.h"
#include "weft/plan/ops/operators.h"
#include "weft/plan/spmd/mesh.h"
#include "weft/rules/rule/instance.h"
#include "weft/rules/rule/library.h"
#include "weft/rules/rule/mutate_rule.h"
#include "weft/rules/rule/prove_rule.h"

namespace weft::rule {
namespace {

const std::size_t kMutations = thorough_or<std::size_t>(48, 12);  // of all, chosen by a fixed seed
constexpr int kFloatInstances = 16;

ops::Tensor<double> drawn(const plan::Type& type, Random& random) {
  ops::Tensor<double> tensor;
  for (const plan::Dim& dim : type.dims) tensor.sizes.push_back(dim.size);
  const bool real = plan::is_real(type.dtype), boolean = type.dtype == plan::DType::boolean;
  for (std::int64_t k = 0; k < type.elements(); ++k)
    tensor.data.push_back(static_cast<double>(boolean ? random.between(0, 1) : random.between(-4, 4)) /
                          (real ? 2 : 1));
  return tensor;
}

bool same(const std::vector<ops::Tensor<double>>& all) {
  for (std::size_t k = 0; k < all.size() / 2; ++k)
    for (std::size_t i = 0; i < all[k].data.size(); ++i) {
      const double a = all[k].data[i], b = all[k + all.size() / 2].data[i];
      if (std::isfinite(a) != std::isfinite(b)) return false;
      if (std::isfinite(a) && std::abs(a - b) > 1e-9 * (1 + std::abs(a) + std::abs(b))) return false;
    }
  return true;
}

// Evaluates both sides in plain doubles: shares nothing with the prover.
bool holds_in_floats(const RuleInstance& instance, Random& random) {
  std::map<std::string_view, ops::Tensor<double>> inputs;
  std::map<std::string_view, spmd::MeshTensor<double>> held;
  for (std::size_t id = 0; id < instance.graph.node_count(); ++id) {
    const plan::NodeView node = instance.graph.view(plan::NodeId(id));
    if (&node.op() != &ops::input()) continue;
    inputs[node.word(0)] = drawn(node.result_type(0), random);
    if (instance.distributed())
      held[node.word(0)] =
          spmd::split_for_mesh<double>(inputs[node.word(0)], node.result_type(0),
                                       instance.layouts[node.result(0).value], instance.mesh, {}, random)
              .value();
  }
  std::vector<ops::Tensor<double>> all;
  if (!instance.distributed()) {
    all = ops::interpret<double>(instance.graph, [&](std::string_view name) {
            return &inputs.at(name);
          }).value();
    return same(all);
  }
  const auto outputs = spmd::interpret_on_mesh<double>(instance.graph, instance.mesh,
                                                       [&](std::string_view name) { return &held.at(name); });
  if (!outputs.ok()) return false;
  for (const spmd::MeshTensor<double>& output : *outputs) {
    ops::Tensor<double>& ranks = all.emplace_back();
    for (const ops::Tensor<double>& rank : output.ranks)
      ranks.data.insert(ranks.data.end(), rank.data.begin(), rank.data.end());
  }
  for (std::size_t k = 0; k < outputs->size() / 2; ++k) {
    // Partial values may be distributed differently over the ranks if their sums are equal.
    const spmd::MeshTensor<double>&left = (*outputs)[k], &right = (*outputs)[k + outputs->size() / 2];
    if (left.layout != right.layout) return false;
    const auto partial = [](const plan::AxisLayout& axis) { return axis.is_partial(); };
    if (!std::ranges::any_of(left.layout.axes, partial)) continue;
    for (const std::size_t which : {k, k + outputs->size() / 2})
      if (auto whole = spmd::join_from_mesh<double>(
              (*outputs)[which], instance.graph.type(instance.graph.outputs()[which].value), instance.mesh);
          whole.ok())
        all[which] = std::move(whole).value();
  }
  return same(all);
}

TEST(Mutations, AreRejectedOrHarmless) {
  std::vector<MutatedRule> all;
  for (const Rule& rule : shipped_rules())
    for (MutatedRule& each : mutations_of(rule)) all.push_back(std::move(each));
  ASSERT_GT(all.size(), 10 * kMutations);
  ProveOptions quick;
  quick.shapes = 32;
  Random random(20261116);
  std::size_t refused = 0, harmless = 0;
  for (std::size_t k = 0; k < kMutations; ++k) {
    const MutatedRule& each = all[random.below(all.size())];
    // Parsed from text: an invalid mutation is rejected there.
    const auto read = parse_rules(print(each.rule), "mutated.rules", ops::all());
    if (!read.ok()) {
      ++refused;
      continue;
    }
    Rule rule = read->front();
    const RuleProof proof = prove(rule, quick);
    if (!holds(proof.verdict)) {
      ++refused;
      continue;
    }
    rule.when.insert(rule.when.end(), proof.guard.begin(), proof.guard.end());
    for (int draw = 0; draw < kFloatInstances; ++draw) {
      const auto instance = draw_instance(rule, random, {.largest = 6, .wide = draw % 4 == 3});
      if (!instance.ok()) continue;
      ASSERT_FALSE(instance->refusal) << each.what << "\n" << print(rule);
      EXPECT_TRUE(holds_in_floats(*instance, random)) << each.what << "\n"
                                                      << print(rule) << proof.verdict.guard;
    }
    ++harmless;
  }
  EXPECT_GT(refused, 0u);
  if (is_thorough()) EXPECT_GT(refused, harmless);  // most mutations are errors; a dozen are too few to tell
}

}  // namespace
}  // namespace weft::rule
