// Weights with Hugging Face names and shapes as parameters of the imported text.
#include <cstring>
#include <deque>
#include <numeric>

#include <gtest/gtest.h>

#include "weft/translate/imports/hugging_face.h"
#include "weft/translate/imports/weights.h"

namespace weft::imports {
namespace {

WeightSource source(std::vector<std::int64_t> shape, std::vector<std::int64_t> view,
                    std::vector<std::size_t> order) {
  WeightSource made;
  made.parameter = "p";
  made.tensor = "t";
  made.shape = std::move(shape);
  made.view = std::move(view);
  made.count = made.view.front();
  made.order = std::move(order);
  return made;
}

// Tensors of 0, 1, 2, ... by name and shape, as a file would contain them.
class Numbers {
 public:
  void add(const std::string& name, std::vector<std::int64_t> shape, float first = 0) {
    std::int64_t elements = 1;
    for (const std::int64_t size : shape) elements *= size;
    auto& values = values_.emplace_back(static_cast<std::size_t>(elements));
    std::iota(values.begin(), values.end(), first);
    checkpoint_.tensors.push_back(
        {name, plan::DType::f32, std::move(shape), std::as_bytes(std::span(values))});
  }
  std::span<const formats::Checkpoint> files() const { return {&checkpoint_, 1}; }

 private:
  std::deque<std::vector<float>> values_;
  formats::Checkpoint checkpoint_;
};

std::vector<float> floats(const formats::TensorEntry& tensor) {
  std::vector<float> values(tensor.data.size() / sizeof(float));
  std::memcpy(values.data(), tensor.data.data(), tensor.data.size());
  return values;
}

std::vector<float> converted(const WeightSource& from, const Numbers& numbers) {
  Imported model;
  model.weights = {from};
  const auto weights = convert_weights(model, numbers.files());
  EXPECT_TRUE(weights.ok()) << weights.error().message;
  return weights.ok() ? floats(weights->checkpoint.tensors.front()) : std::vector<float>();
}

TEST(ImportWeights, TransposesALinearMap) {
  Numbers numbers;
  numbers.add("t", {2, 3});  // two outputs, three inputs
  EXPECT_EQ(converted(source({3, 2}, {2, 3}, {1, 0}), numbers), (std::vector<float>{0, 3, 1, 4, 2, 5}));
}

TEST(ImportWeights, SplitsFusedQueriesKeysAndValues) {
  Numbers numbers;
  numbers.add("t", {2, 6});  // [d, 3 x 2]
  WeightSource keys = source({2, 1, 2}, {2, 3, 2}, {0, 1, 2});
  keys.axis = 1;
  keys.begin = 1;
  keys.count = 1;
  EXPECT_EQ(converted(keys, numbers), (std::vector<float>{2, 3, 8, 9}));
}

TEST(ImportWeights, ReordersRotaryPairs) {
  Numbers numbers;
  numbers.add("t", {4, 1});
  WeightSource reordered = source({1, 4}, {4, 1}, {1, 0});
  reordered.pairs = true;
  EXPECT_EQ(converted(reordered, numbers), (std::vector<float>{0, 2, 1, 3}));
}

TEST(ImportWeights, StacksExperts) {
  Numbers numbers;
  numbers.add("e.0.w", {2, 1});
  numbers.add("e.1.w", {2, 1}, 10);
  WeightSource stacked = source({2, 1, 2}, {2, 1}, {1, 0});
  stacked.tensor = "e.{}.w";
  stacked.stacked = 2;
  EXPECT_EQ(converted(stacked, numbers), (std::vector<float>{0, 1, 10, 11}));
}

constexpr std::string_view kSmallGpt =
    R"({"model_type": "gpt2", "n_embd": 4, "n_layer": 1, "n_head": 2, "n_positions": 3, "vocab_size": 5, "n_inner": 6})";

void add_gpt(Numbers& numbers, const std::string& prefix) {
  numbers.add(prefix + "wte.weight", {5, 4});
  numbers.add(prefix + "wpe.weight", {3, 4});
  for (const char* norm : {"ln_f", "h.0.ln_1", "h.0.ln_2"})
    for (const char* part : {".weight", ".bias"}) numbers.add(prefix + norm + part, {4});
  numbers.add(prefix + "h.0.attn.c_attn.weight", {4, 12});
  numbers.add(prefix + "h.0.attn.c_attn.bias", {12});
  numbers.add(prefix + "h.0.attn.c_proj.weight", {4, 4});
  numbers.add(prefix + "h.0.attn.c_proj.bias", {4});
  numbers.add(prefix + "h.0.mlp.c_fc.weight", {4, 6});
  numbers.add(prefix + "h.0.mlp.c_fc.bias", {6});
  numbers.add(prefix + "h.0.mlp.c_proj.weight", {6, 4});
  numbers.add(prefix + "h.0.mlp.c_proj.bias", {4});
}

TEST(ImportWeights, FillsEveryParameterOfAModel) {
  const auto model = import_hugging_face(kSmallGpt);
  ASSERT_TRUE(model.ok());
  for (const std::string prefix : {"", "transformer."}) {
    Numbers numbers;
    add_gpt(numbers, prefix);
    numbers.add(prefix + "h.0.attn.bias", {1, 1, 3, 3});  // the mask, which old files include
    const auto weights = convert_weights(*model, numbers.files());
    ASSERT_TRUE(weights.ok()) << weights.error().message;
    std::int64_t elements = 0;
    for (const formats::TensorEntry& tensor : weights->checkpoint.tensors)
      elements += static_cast<std::int64_t>(tensor.data.size() / sizeof(float));
    EXPECT_EQ(elements, model->parameters);
    EXPECT_EQ(weights->unread, std::vector<std::string>{prefix + "h.0.attn.bias"});
    EXPECT_EQ(floats(*weights->checkpoint.find("attention.0.bv")), (std::vector<float>{8, 9, 10, 11}));
  }
}

TEST(ImportWeights, NamesMissingTensors) {
  const auto model = import_hugging_face(kSmallGpt);
  Numbers numbers;
  numbers.add("wte.weight", {5, 4});
  const auto none = convert_weights(*model, numbers.files());
  ASSERT_FALSE(none.ok());
  EXPECT_EQ(none.error().message, "no tensor h.0.ln_1.weight for parameter attention.0.ln_gain");
  Numbers wrong;
  add_gpt(wrong, "");
  const auto other = import_hugging_face(
      R"({"model_type": "gpt2", "n_embd": 4, "n_layer": 1, "n_head": 2, "n_positions": 3, "vocab_size": 7, "n_inner": 6})");
  const auto misfit = convert_weights(*other, wrong.files());
  ASSERT_FALSE(misfit.ok());
  EXPECT_EQ(misfit.error().message, "tensor wte.weight: expected [28] for parameter wte, found [5, 4]");
}

}  // namespace
}  // namespace weft::imports
