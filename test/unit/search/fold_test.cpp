// Plans with fewer of their repeated layers: the result equals the plan of a shorter model.
#include "weft/planner/search/distribution/fold.h"

#include <gtest/gtest.h>

#include "distribute_case.h"

namespace weft::search {
namespace {

using distribute::training_plan;

std::vector<language::SizeOverride> tiny(std::int64_t layers) {
  return {{"b", 2, {}}, {"s", 4, {}}, {"d", 8, {}},          {"h", 2, {}},
          {"v", 8, {}}, {"p", 4, {}}, {"layers", layers, {}}};
}

std::vector<std::string_view> operators(const plan::Graph& graph) {
  std::vector<std::string_view> names;
  for (std::size_t n = 0; n < graph.node_count(); ++n)
    names.push_back(graph.node(plan::NodeId(n)).op->name());
  return names;
}

std::vector<plan::Phase> phases(const plan::Graph& graph) {
  std::vector<plan::Phase> list;
  for (std::size_t n = 0; n < graph.node_count(); ++n) list.push_back(graph.phase(plan::NodeId(n)));
  return list;
}

TEST(Fold, EqualsAShorterModel) {
  const train::TrainingPlan tall = training_plan("gpt2", tiny(9)), low = training_plan("gpt2", tiny(5));
  EXPECT_EQ(repeated_layers(tall.graph), 9);
  const auto folded = fold(tall.graph, 5);
  ASSERT_TRUE(folded);
  EXPECT_EQ(operators(*folded), operators(low.graph));
  EXPECT_EQ(phases(*folded), phases(low.graph));
  EXPECT_EQ(folded->outputs().size(), low.graph.outputs().size());
  EXPECT_TRUE(plan::verify(*folded).ok());
}

TEST(Fold, TwoLayerCallsInOneRepeatAreOneLayer) {
  const train::TrainingPlan plan = training_plan("mixtral_8x7b", {{"b", 1, {}},
                                                                  {"s", 8, {}},
                                                                  {"d", 16, {}},
                                                                  {"h", 2, {}},
                                                                  {"g", 2, {}},
                                                                  {"f", 4, {}},
                                                                  {"experts", 4, {}},
                                                                  {"v", 8, {}},
                                                                  {"layers", 7, {}}});
  EXPECT_EQ(repeated_layers(plan.graph), 7);
  EXPECT_TRUE(fold(plan.graph, 4));
}

TEST(Fold, TowersOfEqualHeightShrinkTogether) {
  const auto pair = [](std::int64_t layers) {
    return training_plan("clip_b32", {{"b", 2, {}},
                                      {"height", 8, {}},
                                      {"width", 8, {}},
                                      {"r", 4, {}},
                                      {"image_d", 8, {}},
                                      {"image_h", 2, {}},
                                      {"s", 4, {}},
                                      {"v", 16, {}},
                                      {"text_d", 4, {}},
                                      {"text_h", 2, {}},
                                      {"o", 4, {}},
                                      {"layers", layers, {}}});
  };
  const train::TrainingPlan tall = pair(9), low = pair(5);
  EXPECT_EQ(repeated_layers(tall.graph, Folded::all), 9);
  const auto folded = fold(tall.graph, 5, Folded::all);
  ASSERT_TRUE(folded);
  EXPECT_EQ(operators(*folded), operators(low.graph));
  EXPECT_EQ(phases(*folded), phases(low.graph));
  // Folding one of them leaves the other unchanged.
  const auto one = fold(tall.graph, 5);
  ASSERT_TRUE(one);
  EXPECT_GT(one->node_count(), folded->node_count());
}

TEST(Fold, RejectsWhatItCannotShorten) {
  const train::TrainingPlan plan = training_plan("gpt2", tiny(6));
  EXPECT_FALSE(fold(plan.graph, 3));
  EXPECT_FALSE(fold(plan.graph, 6));
  const train::TrainingPlan flat = training_plan("digits_mlp");
  EXPECT_EQ(repeated_layers(flat.graph), 0);
  EXPECT_FALSE(fold(flat.graph, 4));
}

// An output that reads a middle layer needs that layer.
TEST(Fold, DoesNotDropLayersThatAreReadElsewhere) {
  const train::TrainingPlan plan = training_plan("gpt2", tiny(8));
  plan::Graph far = plan.graph.clone();
  plan::ValueId middle;
  for (std::size_t n = 0; n < far.node_count() && !middle.valid(); ++n) {
    const plan::Node& node = far.node(plan::NodeId(n));
    if (node.scope.valid() && far.scope(node.scope).iteration == 4 && !node.inputs.empty())
      middle = far.result(plan::NodeId(n));
  }
  ASSERT_TRUE(middle.valid());
  far.set_scope({});
  const auto outside = far.add_value(ops::add(), std::vector<plan::ValueId>{middle, middle});
  ASSERT_TRUE(outside.ok());
  far.add_output(far.symbol("far"), *outside);
  EXPECT_FALSE(fold(far, 4));
}

}  // namespace
}  // namespace weft::search
