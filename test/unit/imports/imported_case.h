// Runs an imported model on the weights of a random checkpoint, and checks the result.
#pragma once
#include <cstring>

#include <gtest/gtest.h>

#include "torch_reference.h"
#include "weft/language/bind.h"
#include "weft/plan/ops/interpret.h"
#include "weft/translate/imports/hugging_face.h"
#include "weft/translate/imports/weights.h"

namespace weft::imports {

inline constexpr std::size_t kText = 12, kVocabulary = 11, kWidth = 16;
inline const std::vector<int> kTokens = {3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8};
using Inputs = std::map<std::string, ops::Tensor<double>, std::less<>>;

inline Inputs drawn_inputs() {
  Inputs inputs;
  inputs["tokens"] = {{1, kText}, {kTokens.begin(), kTokens.end()}};
  return inputs;
}

// The outputs of the imported model with the checkpoint's weights. The model must read every tensor
// of it.
inline std::vector<ops::Tensor<double>> imported_outputs(const std::string& config,
                                                         const DrawnCheckpoint& drawn, Inputs sources) {
  const auto model = import_hugging_face(config);
  EXPECT_TRUE(model.ok()) << model.error().message;
  if (!model.ok()) return {};
  const formats::Checkpoint file = drawn.checkpoint();
  const auto weights = convert_weights(*model, {&file, 1});
  EXPECT_TRUE(weights.ok()) << weights.error().message << "\n" << model->text;
  if (!weights.ok()) return {};
  EXPECT_TRUE(weights->unread.empty()) << weights->unread.front();
  for (const formats::TensorEntry& tensor : weights->checkpoint.tensors) {
    std::vector<float> values(tensor.data.size() / sizeof(float));
    std::memcpy(values.data(), tensor.data.data(), tensor.data.size());
    sources[tensor.name] = {tensor.shape, {values.begin(), values.end()}};
  }
  const auto source = language::parse_and_keep(model->text);
  EXPECT_TRUE(source.ok()) << source.error().message << "\n" << model->text;
  if (!source.ok()) return {};
  language::Catalog catalog;
  for (const language::syntax::Statement* statement : (*source)->script.statements) {
    const Status defined = language::define(catalog, *source, *statement, {});
    EXPECT_TRUE(defined.ok()) << defined.error().message << "\n" << model->text;
    if (!defined.ok()) return {};
  }
  const auto bound = language::bind(catalog, language::syntax::Name{.text = model->name, .span = {}}, {});
  EXPECT_TRUE(bound.ok()) << bound.error().message << "\n" << model->text;
  if (!bound.ok()) return {};
  const auto outputs = ops::interpret<double>(bound->graph, [&](std::string_view name) {
    const auto found = sources.find(name);
    return found == sources.end() ? nullptr : &found->second;
  });
  EXPECT_TRUE(outputs.ok()) << outputs.error().message;
  return outputs.ok() ? *outputs : std::vector<ops::Tensor<double>>();
}

inline void expect_rows(const std::vector<ops::Tensor<double>>& outputs, const Rows& expected) {
  ASSERT_FALSE(outputs.empty());
  Row flat;
  for (const Row& row : expected) flat.insert(flat.end(), row.begin(), row.end());
  ASSERT_EQ(outputs[0].data.size(), flat.size());
  for (std::size_t i = 0; i < flat.size(); ++i)
    ASSERT_NEAR(outputs[0].data[i], flat[i], 1e-5 * (1 + std::fabs(flat[i])));
}

inline void expect_loss(const std::vector<ops::Tensor<double>>& outputs, double expected) {
  ASSERT_FALSE(outputs.empty());
  ASSERT_EQ(outputs[0].data.size(), 1u);
  EXPECT_NEAR(outputs[0].data[0], expected, 1e-6 * (1 + std::fabs(expected)));
}

inline double expected_cross_entropy(const Row& logits, std::size_t label) {
  double total = 0;
  for (const double one : logits) total += std::exp(one);
  return std::log(total) - logits[label];
}

}  // namespace weft::imports
