// Sums over many rows, as in gradients of biases and norms: the device that WEFT_TEST_DEVICE names
// compared with the CPU.
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "execution_case.h"
#include "weft/plan/ops/operators.h"

namespace weft::exec {
namespace {

void expect_as_defined(const std::string& text, Random& random) {
  const ops::Case c = ops::read_cases(text).front();
  const plan::Graph graph = ops::graph_of(c);
  const Tensors inputs = ops::random_inputs<double>(c, graph, {}, random);
  const auto rank = start(graph, 2);
  fill(*rank, inputs);
  ASSERT_TRUE(rank->step().ok());
  expect_near(contents(*rank), interpreted(graph, inputs), 1e-4, 1e-4, text);
}

TEST(OwnKernelsManyRows, SumsMatchTheirDefinition) {
  Random random(17);
  for (const int rows : {1, 63, 64, 100, 128, 500, 3000})
    for (const int length : {1, 5, 32, 128, 512, 1500})
      expect_as_defined(fmt::format("reduce | f32[b={},d={}] | {{kind=sum, to=[d]}}", rows, length), random);
}

// A few adjacent rows, many times: on a GPU by one thread, fused with the rest of the loop, in f32.
TEST(OwnKernelsManyRows, SumsOfAFewRowsMatchTheirDefinition) {
  Random random(19);
  for (const std::string_view text :
       {"reduce | f32[b=520,k=2,d=256] | {kind=sum, to=[b,d]}",
        "reduce | f32[b=260,k=3,c=2,d=65] | {kind=sum, to=[b,d]}",
        "reduce | f32[b=40,k=64,d=1028] | {kind=max, to=[b,d]}",
        "reduce | f32[k=5,d=70000] | {kind=mean, to=[d]}",
        "reduce | f32[a=3,b=130,k=7,d=172] | {kind=min, to=[b,a,d]}",
        "contract | f32[b=260,s=3,k=2] | f32[b=260,s=3,k=2,d=96] | {to=[b,s,d]}",
        "contract | f32[b=50,k=9,d=1001] | f32[k=9,d=1001] | {to=[b,d]}"})
    expect_as_defined(std::string(text), random);
}

// A step of a model with enough rows that kernels share them, compared with the CPU.
TEST(OwnKernelsManyRows, GradientsOfAModelMatchTheCpu) {
  if (!on_another_device()) GTEST_SKIP() << "WEFT_TEST_DEVICE names no other device";
  for (const std::int64_t b : {1, 2, 5, 16}) {
    Random random(23);
    const plan::Graph graph = training_plan(
        "char_gpt",
        {{"b", b, {}}, {"s", 64, {}}, {"d", 128, {}}, {"h", 4, {}}, {"layers", 2, {}}, {"v", 48, {}}});
    const Tensors sources = random_sources(graph, 40, random);
    const auto there = start(graph, 1), here = start_here(graph, 2);
    for (const auto* const rank : {&there, &here}) {
      fill(**rank, sources);
      ASSERT_TRUE((*rank)->step().ok());
    }
    // Moments are scaled gradients; parameters would hide their errors.
    expect_near(contents(*there), contents(*here), 2e-3, 2e-4, fmt::format("b = {}", b));
  }
}

}  // namespace
}  // namespace weft::exec
