// Imported texts bind, and their parameters add up to the expected counts.
#include <map>
#include <string>

#include <gtest/gtest.h>

#include "field_samples.h"
#include "thorough.h"
#include "weft/language/bind.h"
#include "weft/plan/ops/operators.h"
#include "weft/translate/imports/hugging_face.h"

namespace weft::imports {
namespace {

// Bound parameters by name and number of elements, in the mode of TRAIN.
std::map<std::string, std::int64_t> bound_parameters(const Imported& model) {
  std::map<std::string, std::int64_t> found;
  const auto source = language::parse_and_keep(model.text);
  EXPECT_TRUE(source.ok()) << source.error().message;
  if (!source.ok()) return found;
  language::Catalog catalog;
  for (const language::syntax::Statement* statement : (*source)->script.statements) {
    const Status defined = language::define(catalog, *source, *statement, {});
    EXPECT_TRUE(defined.ok()) << defined.error().message << "\n" << model.text;
    if (!defined.ok()) return found;
  }
  language::BindOptions options;
  options.mode = language::Mode::train;
  const auto bound = language::bind(catalog, language::syntax::Name{.text = model.name, .span = {}}, options);
  EXPECT_TRUE(bound.ok()) << bound.error().message;
  if (!bound.ok()) return found;
  for (std::size_t n = 0; n < bound->graph.node_count(); ++n) {
    const plan::NodeView node = bound->graph.view(plan::NodeId(n));
    if (&node.op() == &ops::parameter()) found.emplace(node.word(0), node.result_type(0).elements());
  }
  return found;
}

void expect_bound(std::string_view config) {
  const auto model = import_hugging_face(config);
  ASSERT_TRUE(model.ok()) << model.error().message;
  const auto bound = bound_parameters(*model);
  std::int64_t elements = 0;
  for (const auto& [name, count] : bound) elements += count;
  EXPECT_EQ(elements, model->parameters);
  // Every parameter has its tensor in a checkpoint, with the right size.
  std::size_t states = 0;
  for (const WeightSource& weight : model->weights) {
    if (weight.state) {
      ++states;
      continue;
    }
    const auto found = bound.find(weight.parameter);
    ASSERT_NE(found, bound.end()) << weight.parameter;
    std::int64_t size = 1;
    for (const std::int64_t dim : weight.shape) size *= dim;
    EXPECT_EQ(size, found->second) << weight.parameter;
  }
  EXPECT_EQ(model->weights.size(), bound.size() + states);
}

TEST(BoundImport, Gpt2) {
  expect_bound(
      R"({"model_type": "gpt2", "n_embd": 16, "n_layer": 2, "n_head": 2, "n_positions": 8, "vocab_size": 20})");
  expect_bound(
      R"({"model_type": "gpt2", "n_embd": 16, "n_layer": 2, "n_head": 2, "n_positions": 8, "vocab_size": 20,
    "n_inner": 24, "activation_function": "relu", "attn_pdrop": 0, "embd_pdrop": 0, "resid_pdrop": 0,
    "tie_word_embeddings": false, "scale_attn_weights": false})");
}

constexpr const char* kSizes = R"("hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": 2,
    "num_attention_heads": 4, "vocab_size": 20, "max_position_embeddings": 8)";

std::string of(std::string_view fields) {
  return "{" + std::string(kSizes) + ", " + std::string(fields) + "}";
}

TEST(BoundImport, LlamaFamily) {
  expect_bound(of(R"("model_type": "llama")"));
  expect_bound(
      of(R"("model_type": "llama", "num_key_value_heads": 2, "attention_bias": true, "mlp_bias": true,
    "head_dim": 6, "attention_dropout": 0.1, "tie_word_embeddings": true)"));
  expect_bound(of(R"("model_type": "mistral", "num_key_value_heads": 1, "sliding_window": 3)"));
  expect_bound(of(R"("model_type": "qwen2", "num_key_value_heads": 2, "tie_word_embeddings": true)"));
  expect_bound(of(R"("model_type": "mixtral", "num_key_value_heads": 2, "num_local_experts": 4)"));
  expect_bound(of(R"("model_type": "mixtral", "num_key_value_heads": 4, "num_local_experts": 3)"));
}

// Classes of every family, in the mode of TRAIN.
TEST(BoundImport, EveryClass) {
  std::vector<std::string> configs;
  for (const SampleFamily& family : sample_families())
    for (const SampleClass& one : family.classes)
      for (const std::string& variant : family.variants)
        configs.push_back(fmt::format(R"({{"model_type": "{}", "architectures": ["{}"], {}{}}})",
                                      family.model_type, one.name, family.fields, variant));
  for (const std::string& config : every(13, configs)) {
    SCOPED_TRACE(config);
    expect_bound(config);
  }
}

TEST(BoundImport, Bert) {
  for (const char* head :
       {"BertModel", "BertForMaskedLM", "BertForPreTraining", "BertForSequenceClassification"})
    expect_bound(of(R"("model_type": "bert", "architectures": [")" + std::string(head) + R"("])"));
  expect_bound(of(R"("model_type": "bert", "tie_word_embeddings": false, "hidden_dropout_prob": 0,
    "attention_probs_dropout_prob": 0)"));
}

TEST(BoundImport, T5) {
  const std::string sizes = R"({"model_type": "t5", "d_model": 16, "d_kv": 4, "d_ff": 24, "num_layers": 2,
    "num_heads": 4, "vocab_size": 20)";
  expect_bound(sizes + "}");
  expect_bound(sizes +
               R"(, "num_decoder_layers": 1, "feed_forward_proj": "gated-gelu", "tie_word_embeddings": false,
    "dropout_rate": 0, "relative_attention_num_buckets": 8, "relative_attention_max_distance": 20})");
}

TEST(BoundImport, Vit) {
  expect_bound(of(R"("model_type": "vit", "image_size": 8, "patch_size": 4)"));
  expect_bound(
      of(R"("model_type": "vit", "image_size": 8, "patch_size": 4, "qkv_bias": false, "num_channels": 1,
    "hidden_dropout_prob": 0.1, "attention_probs_dropout_prob": 0.1, "architectures": ["ViTModel"])"));
}

TEST(BoundImport, Deepseek) {
  const std::string heads = R"("moe_intermediate_size": 8, "n_routed_experts": 8, "num_experts_per_tok": 2,
    "kv_lora_rank": 6, "qk_rope_head_dim": 4, "qk_nope_head_dim": 4, "v_head_dim": 3)";
  expect_bound(of(heads + R"(, "model_type": "deepseek_v2", "first_k_dense_replace": 1)"));
  expect_bound(
      of(heads + R"(, "model_type": "deepseek_v2", "q_lora_rank": 5, "topk_method": "group_limited_greedy",
    "n_group": 4, "topk_group": 2, "routed_scaling_factor": 16.0, "attention_dropout": 0.1)"));
  expect_bound(of(heads + R"(, "model_type": "deepseek_v3", "q_lora_rank": 5, "first_k_dense_replace": 1,
    "n_group": 4, "topk_group": 2)"));
}

}  // namespace
}  // namespace weft::imports
