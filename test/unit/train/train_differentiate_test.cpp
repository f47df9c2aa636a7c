// What differentiation adds to a plan, and what it leaves unchanged.
#include <gtest/gtest.h>

#include "weft/parallel/train/differentiate.h"
#include "weft/plan/graph/text.h"
#include "weft/plan/graph/verify.h"
#include "weft/plan/ops/operators.h"

namespace weft::train {
namespace {

using plan::ValueId;

plan::Graph read(std::string_view text) {
  Result<plan::Graph> graph = plan::read(text, ops::all());
  EXPECT_TRUE(graph.ok()) << graph.error().message;
  return std::move(graph).value();
}

// The plan with the gradients of `wanted` as its outputs, or the error.
std::string differentiated(std::string_view text, std::vector<ValueId> wanted) {
  plan::Graph graph = read(text);
  const ValueId loss = graph.outputs()[0].value;
  const auto gradients = differentiate(graph, loss, wanted);
  if (!gradients.ok()) return gradients.error().message;
  graph.clear_outputs();
  for (const ValueId gradient : *gradients)
    if (gradient.valid()) graph.add_output(graph.symbol("d"), gradient);
  return plan::print(graph);
}

TEST(TrainDifferentiate, AProductNeedsOneContractionPerOperand) {
  EXPECT_EQ(differentiated(R"(plan line
%0 = input {name=x, type=f32[b=4,d=3]}
%1 = parameter {name=w, type=f32[d=3,f=2]}
%2 = contract %0, %1 {to=[b,f]} @h
%3 = relu %2 @h
%4 = reduce %3 {kind=sum, to=[]}
return loss=%4
)",
                           {ValueId(1)}),
            R"(plan line
%0 = input {name=x, type=f32[b=4,d=3]}
%1 = parameter {name=w, type=f32[d=3,f=2]}
%2 = contract %0, %1 {to=[b,f]} : f32[b=4,f=2] @h
%3 = relu %2 : f32[b=4,f=2] @h
%4 = reduce %3 {kind=sum, to=[]} : f32[]
%5 = constant {value=1, dtype=f32} in backward
%6 = broadcast %5 {type=f32[b=4,f=2]} : f32[b=4,f=2] in backward
%7 = constant {value=0, dtype=f32} @h in backward
%8 = greater %3, %7 : bool[b=4,f=2] @h in backward
%9 = select %8, %6, %7 : f32[b=4,f=2] @h in backward
%10 = contract %9, %0 {to=[d,f]} : f32[d=3,f=2] @h in backward
return d=%10
)");
}

TEST(TrainDifferentiate, SumsOverUses) {
  const std::string text = differentiated(R"(plan twice
%0 = parameter {name=w, type=f32[]}
%1 = mul %0, %0
%2 = add %1, %0
return loss=%2
)",
                                          {ValueId(0)});
  // d = 1 + w + w
  EXPECT_NE(text.find("%3 = constant {value=1, dtype=f32} in backward\n%4 = mul %3, %0 : f32[] in backward\n"
                      "%5 = mul %3, %0 : f32[] in backward\n%6 = add %3, %4 : f32[] in backward\n"
                      "%7 = add %6, %5 : f32[] in backward\nreturn d=%7\n"),
            std::string::npos)
      << text;
}

constexpr std::string_view kIdle = R"(plan idle
%0 = parameter {name=w, type=f32[s=3]}
%1 = parameter {name=v, type=f32[s=3]}
%2 = input {name=x, type=f32[s=3]}
%3 = exp %2
%4 = log %0
%5 = mul %0, %3
%6 = reduce %5 {kind=sum, to=[]}
%7 = sgd %4, %1 {lr=1}
return loss=%6
)";

// exp(x) does not depend on w, log(w) does not affect the loss, and sgd, which has no gradient, is
// not differentiated. A value that the loss does not depend on gets no gradient.
TEST(TrainDifferentiate, VisitsOnlyRelevantNodes) {
  plan::Graph graph = read(kIdle);
  const std::vector<ValueId> wanted = {ValueId(0), ValueId(1)};
  const std::size_t before = graph.node_count();
  const auto gradients = differentiate(graph, graph.outputs()[0].value, wanted);
  ASSERT_TRUE(gradients.ok()) << gradients.error().message;
  EXPECT_TRUE((*gradients)[0].valid());
  EXPECT_FALSE((*gradients)[1].valid());
  EXPECT_EQ(graph.node_count() - before, 3u);  // one, broadcast, times exp(x)
  EXPECT_TRUE(plan::verify(graph).ok());
}

TEST(TrainDifferentiate, AddsNothingIfNoGradientIsRequested) {
  plan::Graph graph = read(kIdle);
  const std::size_t before = graph.node_count();
  const std::vector<ValueId> wanted = {ValueId(1)};
  const auto gradients = differentiate(graph, graph.outputs()[0].value, wanted);
  ASSERT_TRUE(gradients.ok());
  EXPECT_FALSE((*gradients)[0].valid());
  EXPECT_EQ(graph.node_count(), before);
}

TEST(TrainDifferentiate, IntegersCarryNoGradient) {
  plan::Graph graph = read(R"(plan rounded
%0 = parameter {name=w, type=f32[]}
%1 = cast %0 {to=i32}
%2 = cast %1 {to=f32}
return loss=%2
)");
  const ValueId w(0);
  const auto gradients = differentiate(graph, graph.outputs()[0].value, {&w, 1});
  ASSERT_TRUE(gradients.ok());
  EXPECT_FALSE((*gradients)[0].valid());
}

TEST(TrainDifferentiate, ReportsWhatItCannotDifferentiate) {
  EXPECT_EQ(differentiated("plan a\n%0 = parameter {name=w, type=f32[d=3]}\nreturn loss=%0\n", {ValueId(0)}),
            "the loss must be a real scalar, found f32[d=3]");
  EXPECT_EQ(differentiated("plan a\n%0 = input {name=w, type=i32[]}\n%1 = cast %0 {to=f32}\nreturn loss=%1\n",
                           {ValueId(0)}),
            "only real-valued tensors have gradients, found i32[]");
  EXPECT_EQ(differentiated(R"(plan a
%0 = parameter {name=w, type=f32[d=2]}
%1, %2 = layer-norm %0 {over=[d]} @n
return loss=%2
)",
                           {ValueId(0)}),
            "node %1 (layer-norm at n): layer-norm has no gradient through its result 1");
}

}  // namespace
}  // namespace weft::train
