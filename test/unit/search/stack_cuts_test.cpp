// Stages as launchers cut them: equal numbers of layers.
#include "weft/planner/search/pipeline/stack_cuts.h"

#include <gtest/gtest.h>

namespace weft::search {
namespace {

using Cuts = std::vector<std::size_t>;

// An embedding, layers of two parts each, and a head.
PartCosts model_of(std::size_t layers) {
  PartCosts costs(1);
  for (std::size_t l = 0; l < layers; ++l)
    for (int half = 0; half < 2; ++half) costs.emplace_back().layers = 0.5;
  costs.emplace_back();
  return costs;
}

cluster::Stack equal() {
  cluster::Stack stack;
  stack.name = "equal";
  stack.equal_layers = 1;
  return stack;
}

TEST(StackCuts, EqualLayersPutTheEmbeddingFirstAndTheHeadLast) {
  EXPECT_EQ(cuts_of_stack(equal(), model_of(4), 2), (Cuts{5, 10}));
  EXPECT_EQ(cuts_of_stack(equal(), model_of(4), 4), (Cuts{3, 5, 7, 10}));
  EXPECT_EQ(cuts_of_stack(equal(), model_of(4), 1), (Cuts{10}));
}

TEST(StackCuts, LeavesOthersToTheSearch) {
  EXPECT_EQ(cuts_of_stack({}, model_of(4), 2), std::nullopt);        // Weft cuts by time
  EXPECT_EQ(cuts_of_stack(equal(), model_of(5), 2), std::nullopt);   // layers that stages do not divide
  EXPECT_EQ(cuts_of_stack(equal(), PartCosts(3), 2), std::nullopt);  // no layers
}

}  // namespace
}  // namespace weft::search
