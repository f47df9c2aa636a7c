// Products with 8-bit weights: which products, and that nothing changes without rounding.
#include "weft/parallel/train/f8_products.h"

#include <map>
#include <set>
#include <string>
#include <string_view>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "weft/base/random.h"
#include "weft/plan/graph/text.h"
#include "weft/plan/graph/verify.h"
#include "weft/plan/ops/interpret.h"
#include "weft/plan/ops/operators.h"

namespace weft::train {
namespace {

using plan::NodeId;

// A product with a weight, the gradients of its operand and of the weight, a product without
// weights, one with a vector, and one in f32.
constexpr std::string_view kPlan =
    "plan layer\n"
    "%0 = input {name=x, type=bf16[b=3,d=4]}\n"
    "%1 = parameter {name=w, type=bf16[d=4,f=5]}\n"
    "%2 = contract %0, %1 {to=[b,f]}\n"
    "%3 = input {name=z, type=bf16[f=5,c=2]}\n"
    "%4 = contract %2, %3 {to=[b,c]}\n"
    "%5 = parameter {name=a, type=bf16[f=5]}\n"
    "%6 = contract %2, %5 {to=[b]}\n"
    "%7 = cast %0 {to=f32}\n"
    "%8 = cast %1 {to=f32}\n"
    "%9 = contract %7, %8 {to=[b,f]}\n"
    "%10 = mul %2, %2 in backward\n"
    "%11 = contract %10, %1 {to=[b,d]} in backward\n"
    "%12 = contract %0, %10 {to=[d,f]} in backward\n"
    "return y=%4, v=%6, wide=%9, dx=%11, dw=%12\n";

plan::Graph graph_of(std::string_view text) {
  auto graph = plan::read(text, ops::all());
  EXPECT_TRUE(graph.ok()) << graph.error().message;
  return std::move(*graph);
}

std::map<std::string, int> counts(const plan::Graph& graph) {
  std::map<std::string, int> found;
  for (std::size_t n = 0; n < graph.node_count(); ++n)
    ++found[std::string(graph.view(NodeId(n)).op().name())];
  return found;
}

TEST(F8Products, AreProductsWithWeights) {
  auto made = with_f8_products(graph_of(kPlan));
  ASSERT_TRUE(made.ok()) << made.error().message;
  ASSERT_TRUE(plan::verify(*made).ok());
  EXPECT_EQ(counts(*made)["contract"], 6);
  std::map<plan::DType, int> values;
  for (std::size_t v = 0; v < made->value_count(); ++v) ++values[made->type(plan::ValueId(v)).dtype];
  EXPECT_EQ(values[plan::DType::f8e4m3], 3);  // x, w by its columns, and w by its rows
  EXPECT_EQ(values[plan::DType::f8e5m2], 1);  // the gradient
  int in_f8 = 0;
  for (std::size_t n = 0; n < made->node_count(); ++n)
    if (const plan::NodeView node = made->view(NodeId(n)); &node.op() == &ops::contract())
      in_f8 += plan::is_f8(node.input_type(0).dtype) && plan::is_f8(node.input_type(1).dtype) ? 1 : 0;
  EXPECT_EQ(in_f8, 2);
  for (std::size_t k = 0; k < made->outputs().size(); ++k)
    EXPECT_EQ(made->type(made->outputs()[k].value).dtype, k == 2 ? plan::DType::f32 : plan::DType::bf16);
}

// Values that the backward pass reads only for weight gradients are kept in one byte per element.
TEST(F8Products, KeepOneByteForWeightGradients) {
  const auto kept_bytes = [](std::string_view other) {
    auto made =
        with_f8_products(graph_of(fmt::format("plan layer\n"
                                              "%0 = input {{name=x, type=bf16[b=3,d=4]}}\n"
                                              "%1 = parameter {{name=w, type=bf16[d=4,f=5]}}\n"
                                              "%2 = tanh %0\n"
                                              "%3 = contract %2, %1 {{to=[b,f]}}\n"
                                              "%4 = mul %3, %3 in backward\n"
                                              "%5 = contract %2, %4 {{to=[d,f]}} in backward\n"
                                              "%6 = {} in backward\n"
                                              "return dw=%5, other=%6\n",
                                              other)));
    EXPECT_TRUE(made.ok() && plan::verify(*made).ok());
    // Of shape [b, d], computed in the forward pass and read in the backward pass.
    std::int64_t bytes = 0;
    std::set<std::uint32_t> seen;
    for (std::size_t n = 0; n < made->node_count(); ++n) {
      const plan::NodeView node = made->view(NodeId(n));
      if (node.phase() != plan::Phase::backward) continue;
      for (const plan::ValueId input : node.node().inputs)
        if (made->phase(made->value(input).producer) == plan::Phase::forward &&
            made->type(input).elements() == 12 &&
            !ops::is_source(made->view(made->value(input).producer).op()) && seen.insert(input.value).second)
          bytes += made->type(input).bytes();
    }
    return bytes;
  };
  EXPECT_EQ(kept_bytes("neg %4"), 12);
  EXPECT_EQ(kept_bytes("neg %2"),
            24);  // another reader needs the original, so only that is kept
}

// Scales cancel: over the field, both are the same plan.
TEST(F8Products, EqualThePlanWithoutRounding) {
  const plan::Graph plain = graph_of(kPlan);
  auto made = with_f8_products(plain);
  ASSERT_TRUE(made.ok()) << made.error().message;
  Random random(17);
  std::map<std::string, ops::Tensor<ops::Field>, std::less<>> sources;
  for (std::size_t n = 0; n < plain.node_count(); ++n) {
    const plan::NodeView node = plain.view(NodeId(n));
    if (!ops::is_source(node.op())) continue;
    ops::Tensor<ops::Field> tensor;
    for (const plan::Dim& dim : node.result_type(0).dims) tensor.sizes.push_back(dim.size);
    for (std::int64_t i = 0; i < node.result_type(0).elements(); ++i)
      tensor.data.push_back(ops::Field(random.next()));
    sources.emplace(std::string(node.word(0)), std::move(tensor));
  }
  const ops::Sources<ops::Field> find = [&](std::string_view name) { return &sources.find(name)->second; };
  const auto expected = ops::interpret<ops::Field>(plain, find),
             found = ops::interpret<ops::Field>(*made, find);
  ASSERT_TRUE(expected.ok() && found.ok());
  for (std::size_t k = 0; k < expected->size(); ++k) EXPECT_EQ((*found)[k].data, (*expected)[k].data) << k;
}

}  // namespace
}  // namespace weft::train
