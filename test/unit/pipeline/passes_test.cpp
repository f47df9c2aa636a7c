// The pipeline pass that each node belongs to.
#include <map>
#include <string>

#include <gtest/gtest.h>

#include "distribute_case.h"
#include "weft/parallel/train/passes.h"

namespace weft::train {
namespace {

// "contract at h": the number of them in each pass.
std::map<std::string, std::map<Pass, int>> by_name(const plan::Graph& graph) {
  const std::vector<Pass> passes = passes_of(graph);
  std::map<std::string, std::map<Pass, int>> found;
  for (std::size_t n = 0; n < graph.node_count(); ++n) {
    const plan::Node& node = graph.node(plan::NodeId(n));
    ++found[fmt::format("{} at {}", node.op->name(), graph.path(node.scope, node.label))][passes[n]];
  }
  return found;
}

TEST(TrainPasses, WeightGradientsOfAnMlpAreW) {
  const auto plan = distribute::training_plan("digits_mlp");
  auto found = by_name(plan.graph);
  EXPECT_EQ(found["contract at logits"][Pass::weight], 1);  // dlogits x h
  // dlogits x w2, from which the gradients of w1 and b1 are computed.
  EXPECT_EQ(found["contract at logits"][Pass::backward], 1);
  EXPECT_EQ(found["contract at h"][Pass::weight], 1);
  EXPECT_EQ(found["contract at h"][Pass::backward], 0);
  for (const auto& [name, passes] : found)
    if (name.starts_with("adam ")) EXPECT_EQ(passes.count(Pass::update), 1u) << name;
}

TEST(TrainPasses, EveryGptLayerHasAWeightGradientPerParameter) {
  const auto plan = distribute::training_plan(
      "char_gpt", {{"b", 2, {}}, {"s", 4, {}}, {"d", 8, {}}, {"h", 2, {}}, {"layers", 2, {}}, {"v", 8, {}}});
  const std::vector<Pass> passes = passes_of(plan.graph);
  std::map<Pass, int> products;
  for (std::size_t n = 0; n < plan.graph.node_count(); ++n) {
    const plan::NodeView node = plan.graph.view(plan::NodeId(n));
    EXPECT_EQ(passes[n] == Pass::update, node.phase() == plan::Phase::update) << n;
    EXPECT_EQ(passes[n] == Pass::forward, node.phase() == plan::Phase::forward) << n;
    if (passes[n] == Pass::weight && node.op().name() == "contract") ++products[Pass::weight];
    if (passes[n] == Pass::backward && node.op().name() == "contract") ++products[Pass::backward];
    // A sum over rows and steps for a parameter gradient delays no other stage.
    if (passes[n] == Pass::weight)
      for (const plan::ValueId input : node.node().inputs)
        EXPECT_LE(plan.graph.phase(plan.graph.value(input).producer), plan::Phase::backward);
  }
  EXPECT_GE(products[Pass::weight], 2 * 4 + 1);
  EXPECT_GE(products[Pass::backward], 2 * 4 + 1);
}

}  // namespace
}  // namespace weft::train
