// Values that depend only on weights are computed once, with equal results.
#include "weft/runtime/run/fold_weights.h"

#include <cstring>

#include <gtest/gtest.h>

#include "weft/plan/graph/text.h"
#include "weft/plan/ops/operators.h"

namespace weft::run {
namespace {

plan::Graph read(const std::string& text) {
  auto graph = plan::read("plan p\n" + text, ops::all());
  EXPECT_TRUE(graph.ok()) << graph.error().message;
  return std::move(*graph);
}

std::string printed(const plan::Graph& graph) { return plan::print(graph); }

Weights weights_of(const plan::Graph& graph) {
  Weights weights;
  for (std::size_t n = 0; n < graph.node_count(); ++n) {
    const plan::NodeView node = graph.view(plan::NodeId(n));
    if (&node.op() != &ops::parameter() && &node.op() != &ops::state()) continue;
    const plan::Type type = node.result_type(0);
    Tensor tensor{type.dtype, {}, std::vector<std::byte>(static_cast<std::size_t>(type.bytes()))};
    for (const plan::Dim& dim : type.dims) tensor.shape.push_back(dim.size);
    write_initial(node, 7, tensor.bytes);
    weights.tensors.emplace(node.word(0), std::move(tensor));
  }
  return weights;
}

// The whole plan and its two parts on the same numbers.
void expect_same(const plan::Graph& graph) {
  const Weights weights = weights_of(graph);
  auto folded = fold_weights(graph);
  ASSERT_TRUE(folded.ok() && folded->has_value());
  const plan::Graph batch = (*folded)->batch.clone();
  auto computed = compute_once(std::move((*folded)->once), weights);
  ASSERT_TRUE(computed.ok()) << computed.error().message;
  const auto given = [&](const plan::Graph& of) {
    Tensors tensors;
    for (std::size_t n = 0; n < of.node_count(); ++n) {
      const plan::NodeView node = of.view(plan::NodeId(n));
      if (&node.op() != &ops::parameter() && &node.op() != &ops::state()) continue;
      const std::string name(node.word(0));
      tensors[name] = computed->contains(name) ? computed->at(name) : weights.tensors.at(name);
    }
    return tensors;
  };
  const auto whole = run_plan(graph, given(graph)), parts = run_plan(batch, given(batch));
  ASSERT_TRUE(whole.ok() && parts.ok());
  ASSERT_EQ(whole->outputs.size(), parts->outputs.size());
  for (const auto& [name, tensor] : whole->outputs)
    EXPECT_EQ(tensor.bytes, parts->outputs.at(name).bytes) << name;
}

const std::string kScaled =
    "%0 = input {name=x, type=f32[b=2,d=3]}\n"
    "%1 = parameter {name=w, type=f32[d=3,f=4], init=normal, a=0, b=1}\n"
    "%2 = parameter {name=g, type=f32[f=4], init=normal, a=0, b=1}\n"
    "%3 = mul %1, %2\n"
    "%4 = contract %0, %3 {to=[b,f]}\n"
    "return y=%4\n";

TEST(FoldWeights, MovesWorkOnWeightsOutOfTheBatch) {
  const plan::Graph graph = read(kScaled);
  const auto folded = fold_weights(graph);
  ASSERT_TRUE(folded.ok() && folded->has_value());
  EXPECT_EQ(printed((*folded)->batch),
            "plan p\n"
            "%0 = parameter {name=\"(kept) 0\", type=f32[d=3,f=4]}\n"
            "%1 = input {name=x, type=f32[b=2,d=3]}\n"
            "%2 = contract %1, %0 {to=[b,f]} : f32[b=2,f=4]\n"
            "return y=%2\n");
  EXPECT_EQ((*folded)->once.node_count(), 3u);
  expect_same(graph);
}

// A transpose and a slice are views; a sum of the input is not work on weights.
TEST(FoldWeights, KeepsViewsAndWorkOnTheBatch) {
  const auto nothing =
      fold_weights(read("%0 = input {name=x, type=f32[b=2,d=3]}\n"
                        "%1 = parameter {name=w, type=f32[f=4,d=3], init=normal, a=0, b=1}\n"
                        "%2 = transpose %1 {to=[d,f]}\n"
                        "%3 = slice %2 {along=f, begin=1, end=3}\n"
                        "%4 = contract %0, %3 {to=[b,f]}\n"
                        "return y=%4\n"));
  ASSERT_TRUE(nothing.ok());
  EXPECT_FALSE(nothing->has_value());
}

// A state that the step updates differs in every batch; one that stays constant counts as a weight.
TEST(FoldWeights, ConstantStatesCountAsWeights) {
  const std::string start =
      "%0 = input {name=x, type=f32[b=2,f=4]}\n"
      "%1 = state {name=s, type=f32[f=4], init=uniform, a=1, b=2}\n"
      "%2 = rsqrt %1\n"
      "%3 = mul %0, %2\n";
  expect_same(read(start + "return y=%3\n"));
  const auto renewed = fold_weights(read(start + "%4 = add %1, %2\nreturn y=%3, \"next s\"=%4\n"));
  ASSERT_TRUE(renewed.ok());
  EXPECT_FALSE(renewed->has_value());
}

// A value that needs more memory than all weights is computed each time.
TEST(FoldWeights, DoesNotKeepALargeTable) {
  const auto outer =
      fold_weights(read("%0 = input {name=x, type=f32[d=50,f=50]}\n"
                        "%1 = parameter {name=u, type=f32[d=50], init=normal, a=0, b=1}\n"
                        "%2 = parameter {name=v, type=f32[f=50], init=normal, a=0, b=1}\n"
                        "%3 = mul %1, %2\n"
                        "%4 = add %0, %3\n"
                        "return y=%4\n"));
  ASSERT_TRUE(outer.ok());
  EXPECT_FALSE(outer->has_value());
}

// Of a chain of work on weights, only the end is kept; a kept result may also be an output.
TEST(FoldWeights, KeepsOnlyTheEndOfAChain) {
  const plan::Graph graph = read(
      "%0 = input {name=x, type=f32[b=2,d=3]}\n"
      "%1 = parameter {name=w, type=f32[d=3,f=4], init=normal, a=0, b=1}\n"
      "%2 = exp %1\n"
      "%3 = transpose %2 {to=[f,d]}\n"
      "%4 = tanh %3\n"
      "%5 = contract %0, %4 {to=[b,f]}\n"
      "%6 = contract %0, %2 {to=[b,f]}\n"
      "return y=%5, z=%6, kept=%4\n");
  const auto folded = fold_weights(graph);
  ASSERT_TRUE(folded.ok() && folded->has_value());
  EXPECT_EQ((*folded)->once.outputs().size(), 2u);
  expect_same(graph);
}

}  // namespace
}  // namespace weft::run
