// The activations that a training step keeps for its backward pass, compared with formulas.
#include <map>

#include <gtest/gtest.h>

#include "execution_case.h"
#include "weft/parallel/train/training_plan.h"

namespace weft::train {
namespace {

// Bytes kept, by outermost scope and iteration: "gpt_block.3"; "" for the model itself.
std::map<std::string, std::int64_t> kept_by_layer(std::string_view model,
                                                  std::vector<language::SizeOverride> sizes) {
  auto made = make_training_plan(exec::bound_model(model, std::move(sizes)), {});
  if (!made.ok()) throw std::runtime_error(made.error().message);
  const plan::Graph& graph = made->graph;
  std::map<std::string, std::int64_t> bytes;
  double all = 0;
  for (const plan::ValueId value : made->kept) {
    plan::ScopeId scope = graph.node(graph.value(value).producer).scope;
    while (scope.valid() && graph.scope(scope).parent.valid()) scope = graph.scope(scope).parent;
    std::string layer;
    if (scope.valid())
      layer = std::string(graph.text(graph.scope(scope).name)) + "." +
              std::to_string(graph.scope(scope).iteration);
    bytes[layer] += graph.type(value).bytes();
    all += static_cast<double>(graph.type(value).bytes());
  }
  EXPECT_EQ(all, made->activation_bytes);
  return bytes;
}

// A block keeps, for b sequences of s tokens:
//   8 b s d    both norms before and after their scale, q, k, v, and the result of attention
//   2 b s f    the hidden layer before and after its gelu
//   b h s s    the attention weights, and s s bytes for the mask that all heads share
//   2 b s      1 / deviation of both norms
TEST(TrainKept, GptBlocksMatchTheFormula) {
  struct Sizes {
    std::int64_t b, s, d, h, layers, v;
  };
  for (const Sizes& z :
       {Sizes{8, 256, 384, 6, 6, 256}, Sizes{2, 64, 32, 4, 3, 100}, Sizes{1, 16, 8, 2, 1, 11}}) {
    const std::int64_t f = 4 * z.d;
    const auto kept = kept_by_layer("char_gpt", {{"b", z.b, {}},
                                                 {"s", z.s, {}},
                                                 {"d", z.d, {}},
                                                 {"h", z.h, {}},
                                                 {"layers", z.layers, {}},
                                                 {"v", z.v, {}}});
    const std::int64_t block =
        4 * (8 * z.b * z.s * z.d + 2 * z.b * z.s * f + z.b * z.h * z.s * z.s + 2 * z.b * z.s) + z.s * z.s;
    for (std::int64_t i = 0; i < z.layers; ++i)
      EXPECT_EQ(kept.at("gpt_block." + std::to_string(i)), block) << i;
    // The last norm before and after its scale, its 1 / deviation, the logits, and the row count.
    EXPECT_EQ(kept.at(""), 4 * (2 * z.b * z.s * z.d + z.b * z.s + z.b * z.s * z.v + 1));
    EXPECT_EQ(kept.size(), static_cast<std::size_t>(z.layers) + 1);
  }
}

// The hidden layer after its relu, which also tells where it was positive, and the logits.
TEST(TrainKept, TheMlpKeepsItsHiddenLayer) {
  for (const std::int64_t b : {1, 64}) {
    const auto kept = kept_by_layer("digits_mlp", {{"b", b, {}}});
    EXPECT_EQ(kept.at(""), 4 * (b * 128 + b * 10 + 1));
  }
}

// The results of each relu and each pool, the scaled image and the logits.
TEST(TrainKept, TheConvnetKeepsTheInputsOfItsWindows) {
  const std::int64_t b = 3;
  const auto kept = kept_by_layer("digits_conv", {{"b", b, {}}});
  EXPECT_EQ(kept.at(""), 4 * b * (64 + 16 * 64 + 16 * 16 + 32 * 16 + 32 * 4 + 10) + 4);
}

}  // namespace
}  // namespace weft::train
