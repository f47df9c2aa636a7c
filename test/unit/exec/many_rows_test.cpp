// Sums over many rows, as gradients of biases and norms are: on the device that WEFT_TEST_DEVICE names against the
// processor.
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "execution_case.h"
#include "weft/ops/operators.h"

namespace weft::exec {
namespace {

TEST(OwnKernelsManyRows, SumsAreTheirDefinition) {
  Random random(17);
  for (const int rows : {1, 63, 64, 100, 128, 500, 3000})
    for (const int length : {1, 5, 32, 128, 512, 1500}) {
      const std::string text = fmt::format("reduce | f32[b={},d={}] | {{kind=sum, to=[d]}}", rows, length);
      const ops::Case c = ops::read_cases(text).front();
      const plan::Graph graph = ops::graph_of(c);
      const Tensors inputs = ops::random_inputs<double>(c, graph, {}, random);
      const auto rank = start(graph, 2);
      fill(*rank, inputs);
      ASSERT_TRUE(rank->step().ok());
      expect_near(contents(*rank), interpreted(graph, inputs), 1e-4, 1e-4, text);
    }
}

// A step of a model whose rows are many enough for kernels to share them, against the processor's.
TEST(OwnKernelsManyRows, AModelsGradientsAreTheProcessors) {
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
    // Moments are the gradients themselves, scaled: parameters hide what is wrong with them.
    expect_near(contents(*there), contents(*here), 2e-3, 2e-4, fmt::format("b = {}", b));
  }
}

}  // namespace
}  // namespace weft::exec
