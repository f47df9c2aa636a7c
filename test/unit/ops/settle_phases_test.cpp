// Nodes that move to the phase of an earlier reader.
#include "weft/plan/graph/settle_phases.h"

#include <gtest/gtest.h>

#include "weft/plan/graph/text.h"
#include "weft/plan/graph/verify.h"
#include "weft/plan/ops/build.h"
#include "weft/plan/ops/operators.h"

namespace weft::plan {
namespace {

// A product that an update computes first and that the backward pass also reads.
Graph with_late_product(Phase of_the_second) {
  Graph graph;
  graph.name = "late";
  const Dim b{graph.symbol("b"), 2};
  const ValueId x = ops::add_input(graph, "x", graph.intern_type(DType::f32, {&b, 1}).value()).value();
  graph.set_label(graph.symbol("entry"));
  graph.set_when({Phase::update});
  const ValueId product = ops::add_pointwise(graph, ops::mul(), {x, x}).value();
  const ValueId moved = ops::add_pointwise(graph, ops::neg(), {product}).value();
  graph.set_when({of_the_second});
  const ValueId read = ops::add_pointwise(graph, ops::exp(), {moved}).value();
  graph.add_output(graph.symbol("y"), read);
  graph.add_output(graph.symbol("product"), product);
  return graph;
}

TEST(SettlePhases, MovesNodesThatAnEarlierPhaseReads) {
  Graph graph = with_late_product(Phase::backward);
  ASSERT_FALSE(verify(graph).ok());
  ASSERT_TRUE(settle_phases(graph).ok());
  EXPECT_TRUE(verify(graph).ok());
  EXPECT_EQ(print(graph),
            "plan late\n"
            "%0 = input {name=x, type=f32[b=2]}\n"
            "%1 = mul %0, %0 : f32[b=2] @entry in backward\n"
            "%2 = neg %1 : f32[b=2] @entry in backward\n"
            "%3 = exp %2 : f32[b=2] @entry in backward\n"
            "return y=%3, product=%1\n");
}

TEST(SettlePhases, KeepsOtherNodes) {
  Graph graph = with_late_product(Phase::update);
  const std::string before = print(graph);
  ASSERT_TRUE(settle_phases(graph).ok());
  EXPECT_EQ(print(graph), before);
}

}  // namespace
}  // namespace weft::plan
