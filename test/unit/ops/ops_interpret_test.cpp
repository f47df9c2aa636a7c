// Whole plans by reference semantics.
#include <gtest/gtest.h>

#include "ops_case.h"
#include "weft/plan/graph/text.h"
#include "weft/plan/ops/build.h"

namespace weft::ops {
namespace {

using plan::ValueId;

plan::Graph read(std::string_view text) { return std::move(plan::read(text, all())).value(); }

template <class T>
Sources<T> from(const Tensors<T>& tensors) {
  return [&tensors](std::string_view name) {
    const auto found = tensors.find(name);
    return found == tensors.end() ? nullptr : &found->second;
  };
}

constexpr std::string_view kPlan = R"(plan two
%0 = input {name=x, type=f32[b=2,d=2]}
%1 = parameter {name=w, type=f32[d=2,f=1]}
%2 = state {name=unused, type=f32[d=2]}
%3 = contract %0, %1 {to=[b,f]}
%4 = relu %3
%5 = exp %2
return h=%4, x=%0
)";

TEST(OpsInterpret, ReturnsOutputsInOrder) {
  const Tensors<double> inputs = {{"x", {{2, 2}, {1, 2, 3, -4}}}, {"w", {{2, 1}, {1, 1}}}};
  const auto outputs = interpret<double>(read(kPlan), from(inputs));  // `unused` is not requested
  ASSERT_TRUE(outputs.ok()) << outputs.error().message;
  ASSERT_EQ(outputs->size(), 2u);
  EXPECT_EQ((*outputs)[0].data, (std::vector<double>{3, 0}));
  EXPECT_EQ((*outputs)[0].sizes, (std::vector<std::int64_t>{2, 1}));
  EXPECT_EQ((*outputs)[1].data, inputs.at("x").data);
}

TEST(OpsInterpret, ReportsMissingAndMisshapenInputs) {
  Tensors<float> inputs = {{"x", {{2, 2}, {1, 2, 3, 4}}}};
  EXPECT_EQ(interpret<float>(read(kPlan), from(inputs)).error().message, "no value given for parameter w");
  inputs["w"] = {{1, 2}, {1, 1}};
  EXPECT_EQ(interpret<float>(read(kPlan), from(inputs)).error().message,
            "parameter w has sizes [1, 2] but the plan expects f32[d=2,f=1]");
}

TEST(OpsInterpret, RejectsHugeValues) {
  const plan::Graph graph = read(R"(plan big
%0 = constant {value=1, dtype=f32}
%1 = broadcast %0 {type=f32[b=1000000,d=1000000]}
return y=%1
)");
  const auto outputs = interpret<float>(graph, from<float>({}));
  ASSERT_FALSE(outputs.ok());
  EXPECT_EQ(outputs.error().message,
            "broadcast is too large to interpret: 1000000000000 elements, the limit is 268435456");
}

TEST(OpsInterpret, TheFieldProvesExactlyTheIdentities) {
  const plan::Graph graph = read(R"(plan same
%0 = input {name=x, type=f32[d=5]}
%1 = sigmoid %0
%2 = mul %0, %1
%3 = silu %0
%4 = exp %0
return left=%2, right=%3, other=%4
)");
  Random random(3);
  const Numbers<Field> numbers{.key = 9};
  const Tensors<Field> inputs = {
      {"x", random_tensor<Field>("", graph.type(plan::ValueId(0)), numbers, random)}};
  const auto outputs = outputs_of(graph, inputs, numbers);
  EXPECT_EQ(outputs[0].data, outputs[1].data);
  EXPECT_NE(outputs[0].data, outputs[2].data);
}

// A builder call that would change nothing adds no node.
TEST(OpsInterpret, BuildersAddNoRedundantNodes) {
  plan::Graph graph = read(kPlan);
  const plan::ValueId x(0);
  const plan::Type type = graph.type(x);
  const std::vector<Symbol> order = {type.dims[0].index, type.dims[1].index};
  const std::size_t before = graph.node_count();
  EXPECT_EQ(*add_cast(graph, x, plan::DType::f32), x);
  EXPECT_EQ(*add_transpose(graph, x, order), x);
  EXPECT_EQ(*add_reduce(graph, "mean", x, order), x);
  EXPECT_EQ(*add_broadcast(graph, x, type.dims), x);
  EXPECT_EQ(*add_slice(graph, x, order[0], 0, 2), x);
  EXPECT_EQ(*add_pad(graph, x, order[0], 0, 0), x);
  EXPECT_EQ(*add_concat(graph, {x}, order[0]), x);
  EXPECT_EQ(*add_rename(graph, x, order, order), x);
  EXPECT_EQ(*add_contract_spread(graph, {x}, type.dims), x);
  EXPECT_EQ(graph.node_count(), before);
}

// A product without a sum is a mul if its indices are in the right order, else a contraction; never
// a mul and a transpose.
TEST(OpsInterpret, ProductsNeedOneNode) {
  plan::Graph graph = graph_of({"mul", {"f32[b=2]", "f32[d=3,b=2]"}});
  const ValueId a(0), b(1);
  const std::vector<plan::Dim> straight(graph.type(b).dims.begin(), graph.type(b).dims.end());
  const std::vector<plan::Dim> turned = {straight[1], straight[0]};
  for (const auto& [to, op] : {std::pair(straight, &mul()), std::pair(turned, &contract())}) {
    const std::size_t before = graph.node_count();
    const ValueId product = *add_contract_spread(graph, {a, b}, to);
    EXPECT_EQ(graph.node_count(), before + 1);
    EXPECT_EQ(&graph.view(graph.value(product).producer).op(), op);
  }
}

}  // namespace
}  // namespace weft::ops
