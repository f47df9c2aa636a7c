// The shipped models: what they compute, checked independently.
#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "weft/app/explain/description.h"
#include "weft/base/random.h"
#include "weft/language/bind.h"
#include "weft/language/shipped.h"
#include "weft/parallel/train/differentiate.h"
#include "weft/parallel/train/training_plan.h"
#include "weft/plan/graph/verify.h"
#include "weft/plan/ops/interpret.h"
#include "weft/plan/ops/operators.h"

namespace weft {
namespace {

using plan::NodeId;

const language::Catalog& catalog() {
  static const language::Catalog shipped = [] {
    language::Catalog made;
    language::load_shipped(made);
    return made;
  }();
  return shipped;
}

plan::Graph bind(std::string_view model, std::vector<language::SizeOverride> sizes, language::Mode mode) {
  language::BindOptions options;
  options.sizes = std::move(sizes);
  options.mode = mode;
  auto bound = language::bind(catalog(), language::syntax::Name{model, {}}, options);
  if (!bound.ok()) throw std::runtime_error(bound.error().message);
  return std::move(bound->graph);
}

TEST(Models, AllBindVerifyAndTrain) {
  for (const auto& [name, definition] : catalog().models) {
    EXPECT_TRUE(plan::verify(bind(name, {}, language::Mode::infer)).ok()) << name;
    plan::Graph graph = bind(name, {}, language::Mode::train);
    if (name == "bert_large") continue;  // an encoder without a loss
    const auto trained = train::make_training_plan(std::move(graph), {});
    ASSERT_TRUE(trained.ok()) << name << ": " << trained.error().message;
    EXPECT_TRUE(plan::verify(trained->graph).ok())
        << name << ": " << plan::verify(trained->graph).error().message;
  }
}

TEST(Models, LayersBindAtTheirDefaults) {
  for (const auto& [name, definition] : catalog().layers) {
    const Status status = language::try_layer(catalog(), definition, {});
    EXPECT_TRUE(status.ok()) << name << ": " << status.error().message;
  }
}

// Multiply-adds of a forward pass over one sequence: each block has four projections of d x d and
// two of d x 4d, 12 d^2 per token in all, and two products of s x s with d; then the logits.
TEST(Models, Gpt2MultiplyAddsMatchTheFormula) {
  const std::int64_t layers = 12, s = 1024, d = 768, v = 50257;
  const std::int64_t textbook = layers * (12 * s * d * d + 2 * s * s * d) + s * d * v;
  EXPECT_EQ(textbook, 145'824'153'600);
  const explain::Description description = explain::describe(bind("gpt2", {}, language::Mode::infer));
  EXPECT_EQ(description.multiply_adds, static_cast<double>(textbook));
}

// Published figures: ResNet-50 4.09 G multiply-adds per image, VGG-16 15.5 G, AlexNet 0.71 G
// (torchvision's model pages).
TEST(Models, ConvnetMultiplyAddsMatchPublishedFigures) {
  const auto giga = [](std::string_view model) {
    return explain::describe(bind(model, {}, language::Mode::infer)).multiply_adds / 1e9;
  };
  EXPECT_NEAR(giga("resnet50"), 4.09, 0.005);
  EXPECT_NEAR(giga("vgg16"), 15.47, 0.005);
  EXPECT_NEAR(giga("alexnet"), 0.714, 0.001);
}

// Interprets a small instance and compares every gradient with central differences.
void check_gradients(std::string_view model, std::vector<language::SizeOverride> sizes, int labels) {
  plan::Graph graph = bind(model, std::move(sizes), language::Mode::train);
  Random random(7);
  std::map<std::string, ops::Tensor<double>, std::less<>> tensors;
  std::vector<plan::ValueId> parameters;
  std::vector<std::string> names;
  for (std::size_t n = 0; n < graph.node_count(); ++n) {
    const plan::NodeView node = graph.view(NodeId(n));
    if (node.input_count() != 0 ||
        (&node.op() != &ops::input() && &node.op() != &ops::parameter() && &node.op() != &ops::state()))
      continue;
    ops::Tensor<double> tensor;
    const plan::Type type = node.result_type(0);
    for (const plan::Dim& dim : type.dims) tensor.sizes.push_back(dim.size);
    for (std::int64_t i = 0; i < type.elements(); ++i)
      tensor.data.push_back(plan::is_real(type.dtype)
                                ? 0.2 + random.uniform()
                                : static_cast<double>(random.below(static_cast<std::uint64_t>(labels))));
    const std::string name(node.word(0));
    if (&node.op() == &ops::parameter()) {
      for (double& element : tensor.data) element = random.uniform() - 0.5;
      parameters.push_back(node.result(0));
      names.push_back(name);
    }
    tensors[name] = std::move(tensor);
  }
  const auto sources = [&](std::string_view name) {
    const auto found = tensors.find(name);
    return found == tensors.end() ? nullptr : &found->second;
  };
  const plan::Output loss = graph.outputs().front();
  graph.clear_outputs();
  graph.add_output(loss, loss.value);
  const plan::Graph forward = graph.clone();
  auto gradients = train::differentiate(graph, loss.value, parameters);
  ASSERT_TRUE(gradients.ok()) << gradients.error().message;
  graph.clear_outputs();
  for (std::size_t p = 0; p < parameters.size(); ++p) {
    ASSERT_TRUE((*gradients)[p].valid()) << names[p];
    graph.add_output(graph.symbol(names[p]), (*gradients)[p]);
  }
  auto computed = ops::interpret<double>(graph, sources);
  ASSERT_TRUE(computed.ok()) << computed.error().message;

  const auto loss_at = [&] { return ops::interpret<double>(forward, sources)->front().data.front(); };
  constexpr double kStep = 1e-5;
  for (std::size_t p = 0; p < parameters.size(); ++p) {
    ops::Tensor<double>& tensor = tensors.find(names[p])->second;
    // A few elements of each parameter; tests of the operators cover the others.
    for (std::size_t i = 0; i < tensor.data.size(); i += 1 + tensor.data.size() / 4) {
      const double value = tensor.data[i];
      tensor.data[i] = value + kStep;
      const double above = loss_at();
      tensor.data[i] = value - kStep;
      const double below = loss_at();
      tensor.data[i] = value;
      const double expected = (above - below) / (2 * kStep);
      EXPECT_NEAR((*computed)[p].data[i], expected, 1e-6 + 1e-4 * std::fabs(expected))
          << names[p] << " element " << i;
    }
  }
}

TEST(Models, SmallTransformerGradient) {
  check_gradients("char_gpt",
                  {{"b", 2, {}}, {"s", 3, {}}, {"d", 4, {}}, {"h", 2, {}}, {"layers", 2, {}}, {"v", 5, {}}},
                  5);
}

TEST(Models, SmallLlamaGradient) {
  check_gradients(
      "llama2_7b",
      {{"b", 1, {}}, {"s", 3, {}}, {"d", 4, {}}, {"h", 2, {}}, {"f", 6, {}}, {"layers", 1, {}}, {"v", 5, {}}},
      5);
}

TEST(Models, SmallMixtureGradient) {
  check_gradients("mixtral_8x7b",
                  {{"b", 1, {}},
                   {"s", 4, {}},
                   {"d", 4, {}},
                   {"h", 1, {}},
                   {"g", 2, {}},
                   {"f", 6, {}},
                   {"experts", 4, {}},
                   {"layers", 1, {}},
                   {"v", 5, {}}},
                  5);
}

TEST(Models, SmallMambaGradient) {
  check_gradients("mamba2",
                  {{"b", 1, {}},
                   {"s", 6, {}},
                   {"d", 4, {}},
                   {"e", 4, {}},
                   {"n", 3, {}},
                   {"l", 2, {}},
                   {"layers", 1, {}},
                   {"v", 5, {}}},
                  5);
}

TEST(Models, SmallLstmGradient) {
  check_gradients("lstm", {{"b", 2, {}}, {"s", 4, {}}, {"d", 3, {}}, {"layers", 2, {}}, {"v", 5, {}}}, 5);
}

TEST(Models, SmallGraphGradient) {
  check_gradients("gcn", {{"n", 5, {}}, {"f", 3, {}}, {"m", 6, {}}, {"o", 4, {}}, {"c", 5, {}}}, 5);
}

TEST(Models, SmallLatentAttentionGradient) {
  check_gradients("deepseek_v2_lite",
                  {{"b", 1, {}},
                   {"s", 4, {}},
                   {"d", 4, {}},
                   {"h", 2, {}},
                   {"l", 3, {}},
                   {"n", 2, {}},
                   {"r", 2, {}},
                   {"e", 2, {}},
                   {"f", 5, {}},
                   {"experts", 4, {}},
                   {"k", 2, {}},
                   {"expert", 3, {}},
                   {"shared", 4, {}},
                   {"layers", 2, {}},
                   {"v", 5, {}}},
                  5);
}

TEST(Models, SmallEncoderAndDecoderGradient) {
  check_gradients("t5_small",
                  {{"b", 1, {}},
                   {"r", 3, {}},
                   {"s", 4, {}},
                   {"d", 4, {}},
                   {"h", 2, {}},
                   {"e", 2, {}},
                   {"f", 5, {}},
                   {"layers", 1, {}},
                   {"v", 5, {}}},
                  5);
}

TEST(Models, SmallConvnetGradient) { check_gradients("digits_conv", {{"b", 2, {}}}, 10); }

}  // namespace
}  // namespace weft
