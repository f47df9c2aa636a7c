// Cost of 8-bit products: scaling passes are counted as they run.
#include "weft/predict/cost/scaled_passes.h"

#include <memory>

#include <gtest/gtest.h>

#include "weft/parallel/train/f8_products.h"
#include "weft/plan/graph/text.h"
#include "weft/plan/ops/operators.h"
#include "weft/predict/cost/plan_cost.h"
#include "weft/program/tasks/program.h"

namespace weft::cost {
namespace {

plan::Graph product_of(std::string_view x, std::string_view reads) {
  auto graph = plan::read("plan p\n%0 = input {name=x, type=" + std::string(x) +
                              "}\n%1 = parameter {name=w, type=bf16[d=64,f=32]}\n"
                              "%2 = contract %0, %1 {to=[b,f]}\n" +
                              std::string(reads),
                          ops::all());
  EXPECT_TRUE(graph.ok()) << graph.error().message;
  auto made = train::with_f8_products(*graph);
  EXPECT_TRUE(made.ok()) << made.error().message;
  return std::move(*made);
}

double passes(const plan::Graph& graph) {
  cluster::Device device{.name = "counting"};
  device.flops_per_second.fill(1e30);
  device.memory_bytes_per_second = 1e30;
  device.launch_seconds = 1;
  return plan_seconds(graph, device, true);
}

TEST(ScaledPasses, RowsAreReadOnceAndColumnsTwice) {
  // One pass from x to q, two over w's columns (maximum, then r), and the product.
  EXPECT_EQ(passes(product_of("bf16[b=16,d=64]", "return y=%2\n")), 4);
  EXPECT_EQ(passes(product_of("bf16[d=64,b=16]", "return y=%2\n")), 5);
  EXPECT_EQ(passes(product_of("bf16[b=16,d=64]", "%3 = relu %2\nreturn y=%3\n")), 5);
}

TEST(ScaledPasses, OtherProductsAndDivisionsAreNotScaledPasses) {
  auto graph = plan::read(
      "plan p\n%0 = input {name=x, type=bf16[b=4,d=8]}\n%1 = input {name=y, type=bf16[b=4]}\n"
      "%2 = div %0, %1\n%3 = mul %2, %1\n%4 = reduce %3 {kind=max, to=[b]}\n%5 = cast %3 {to=f32}\n"
      "return z=%4, a=%5\n",
      ops::all());
  ASSERT_TRUE(graph.ok()) << graph.error().message;
  for (std::size_t n = 0; n < graph->node_count(); ++n)
    EXPECT_FALSE(is_within_scaled_pass(graph->view(plan::NodeId(n)))) << n;
}

// Number of operands of each product of a program.
std::vector<std::size_t> operands_of_products(const plan::Graph& graph, bool any_float) {
  const auto program =
      program::compile(std::make_shared<plan::Graph>(graph.clone()), {.any_float = any_float});
  EXPECT_TRUE(program.ok());
  std::vector<std::size_t> found;
  for (const program::Unit& unit : program->units)
    if (std::holds_alternative<program::MatrixProduct>(unit.kernel)) found.push_back(unit.reads.size());
  return found;
}

TEST(ScaledPasses, ProductsOnAcceleratorsReadTheirScales) {
  const std::vector<std::size_t> with = {4}, without = {2};
  const plan::Graph plain = product_of("bf16[b=16,d=64]", "return y=%2\n");
  EXPECT_EQ(operands_of_products(plain, true), with);
  EXPECT_EQ(operands_of_products(plain, false), without);
  EXPECT_EQ(operands_of_products(product_of("bf16[b=16,d=64]", "%3 = relu %2\nreturn y=%3\n"), true), with);
}

}  // namespace
}  // namespace weft::cost
