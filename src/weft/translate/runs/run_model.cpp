#include "weft/translate/runs/run_model.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "weft/translate/runs/published_models.h"

namespace weft::runs {
namespace {

using Json = nlohmann::json;

// What tokenizers of GPT-2's kind have, padded; for tables that do not state it.
constexpr std::int64_t kUsualVocabulary = 50304;

// What all models have.
struct Sizes {
  std::int64_t layers, hidden, heads, key_heads, head_size, inner, sequence,
      vocabulary;  // head_size 0: not stated
  bool tied;
};

Json decoder_of(const Sizes& sizes) {
  Json config = {{"hidden_size", sizes.hidden},        {"num_hidden_layers", sizes.layers},
                 {"num_attention_heads", sizes.heads}, {"num_key_value_heads", sizes.key_heads},
                 {"intermediate_size", sizes.inner},   {"max_position_embeddings", sizes.sequence},
                 {"vocab_size", sizes.vocabulary},     {"tie_word_embeddings", sizes.tied}};
  if (sizes.head_size > 0) config["head_dim"] = sizes.head_size;
  return config;
}

Json bert_of(const Sizes& sizes) {
  return {{"model_type", "bert"},
          {"architectures", {"BertForMaskedLM"}},
          {"hidden_size", sizes.hidden},
          {"num_hidden_layers", sizes.layers},
          {"num_attention_heads", sizes.heads},
          {"intermediate_size", sizes.inner},
          {"max_position_embeddings", sizes.sequence},
          {"vocab_size", sizes.vocabulary}};
}

// Fused attention drops nothing out in the runs that have it.
Json gpt2_of(const Sizes& sizes, double dropout) {
  return {{"model_type", "gpt2"},          {"architectures", {"GPT2LMHeadModel"}},
          {"n_embd", sizes.hidden},        {"n_layer", sizes.layers},
          {"n_head", sizes.heads},         {"n_inner", sizes.inner},
          {"n_positions", sizes.sequence}, {"vocab_size", sizes.vocabulary},
          {"attn_pdrop", dropout},         {"resid_pdrop", dropout},
          {"embd_pdrop", dropout}};
}

Json llama_of(const Sizes& sizes) {
  Json config = decoder_of(sizes);
  config["model_type"] = "llama";
  config["architectures"] = {"LlamaForCausalLM"};
  return config;
}

// A feed-forward without a gate beside grouped queries: Nemotron's class, with its activation or GPT's.
Json plain_decoder_of(const Sizes& sizes, bool squared) {
  Json config = decoder_of(sizes);
  config["model_type"] = "nemotron";
  config["architectures"] = {"NemotronForCausalLM"};
  config["hidden_act"] = squared ? "relu2" : "gelu";
  config["partial_rotary_factor"] = 1.0;
  return config;
}

Json mixture_of(Fields& fields, const Sizes& sizes, const PublishedModel* published) {
  Json config = decoder_of(sizes);
  const std::int64_t experts = fields.whole("experts", 0),
                     chosen = fields.whole("topk", published != nullptr ? published->chosen : 2);
  if (published == nullptr || published->window == 0) {
    config["model_type"] = "mixtral";
    config["architectures"] = {"MixtralForCausalLM"};
    config["num_local_experts"] = experts;
    config["num_experts_per_tok"] = chosen;
    return config;
  }
  config["model_type"] = "qwen3_moe";
  config["architectures"] = {"Qwen3MoeForCausalLM"};
  config.erase("intermediate_size");
  config["moe_intermediate_size"] = sizes.inner;
  config["num_experts"] = experts;
  config["num_experts_per_tok"] = chosen;
  config["norm_topk_prob"] = true;
  config["use_sliding_window"] = true;
  config["sliding_window"] = published->window;
  std::vector<std::string> types;
  for (std::int64_t layer = 0; layer < std::min(sizes.layers, kMostDegree); ++layer)
    types.push_back(layer % 2 == 0 ? "sliding_attention" : "full_attention");
  config["layer_types"] = types;
  return config;
}

// A proxy with fewer layers keeps the share of layers without experts, and at least one.
std::int64_t dense_layers_of(std::int64_t layers, const PublishedModel& published) {
  if (layers >= published.layers || published.dense_layers == 0) return published.dense_layers;
  const double share = static_cast<double>(published.dense_layers) / static_cast<double>(published.layers);
  const auto kept = static_cast<std::int64_t>(std::llround(share * static_cast<double>(layers)));
  return std::min(std::max<std::int64_t>(kept, 1), std::max<std::int64_t>(layers - 1, 0));
}

// Prediction of further tokens: a column, or an `m` after the layers in Megatron-LM's layout of stages.
std::int64_t further_predictions_of(Fields& fields) {
  const std::string layout = fields.text("layout");
  return fields.whole("mtp", std::ranges::count(layout, 'm'));
}

// DeepSeek's class: latent attention, layers without experts first, shared experts.
Json latent_mixture_of(Fields& fields, const Sizes& sizes, const PublishedModel& published) {
  Json config = decoder_of(sizes);
  config.erase("head_dim");
  config["model_type"] = "deepseek_v3";
  config["architectures"] = {"DeepseekV3ForCausalLM"};
  config["intermediate_size"] = fields.whole("ffn_dense", fields.whole("ffn", published.dense_width));
  config["moe_intermediate_size"] = sizes.inner;
  config["n_routed_experts"] = fields.whole("experts", published.experts);
  config["num_experts_per_tok"] = fields.whole("topk", published.chosen);
  config["n_shared_experts"] = fields.whole("shared_experts", published.shared_experts);
  config["first_k_dense_replace"] = fields.whole("dense_layers", dense_layers_of(sizes.layers, published));
  config["num_nextn_predict_layers"] = further_predictions_of(fields);
  config["kv_lora_rank"] = published.key_rank;
  config["q_lora_rank"] = published.query_rank > 0 ? Json(published.query_rank) : Json();
  config["qk_nope_head_dim"] = config["v_head_dim"] = published.head_size;
  config["qk_rope_head_dim"] = published.head_size / 2;
  // Choosing groups of experts first costs nothing beside the layer.
  config["n_group"] = config["topk_group"] = 1;
  return config;
}

// Of an expert if there are experts.
std::int64_t inner_of(Fields& fields, std::int64_t hidden, const PublishedModel* published) {
  const std::int64_t dense = fields.whole("ffn", 4 * hidden);
  if (fields.whole("experts", 0) <= 1) return dense;
  for (const char* column : {"moe_ffn", "ffn_moe"})
    if (fields.has(column)) return fields.whole(column, dense);
  if (published != nullptr) return published->expert_width;
  if (!fields.has("ffn"))
    fields.fail(
        fmt::format("moe_ffn is missing, and no published model is known as '{}'", fields.text("model")));
  return dense;
}

}  // namespace

std::string config_of(Fields& fields) {
  const std::string model = plain(fields.text("model")), family = fields.text("family"),
                    stack = fields.text("stack");
  const bool mixture = fields.whole("experts", 0) > 1;
  const PublishedModel* const published = mixture ? find_published_model(model) : nullptr;
  Sizes sizes;
  sizes.layers = fields.needed("layers");
  sizes.hidden = fields.needed("hidden");
  sizes.heads = fields.needed("heads");
  sizes.sequence = fields.needed("seq");
  sizes.key_heads = fields.whole("kv_heads", published != nullptr ? published->key_heads : sizes.heads);
  sizes.head_size = fields.whole("head_dim", published != nullptr ? published->head_size : 0);
  sizes.vocabulary = fields.whole("vocab", published != nullptr ? published->vocabulary : kUsualVocabulary);
  sizes.inner = inner_of(fields, sizes.hidden, published);
  sizes.tied = fields.whole("tied", 0) == 1;
  if (sizes.head_size == 0 && sizes.hidden % sizes.heads != 0)
    fields.fail(fmt::format("heads must divide hidden, found {} and {}", sizes.heads, sizes.hidden));
  if (family == "bert") return bert_of(sizes).dump();
  if (published != nullptr && published->is_latent())
    return latent_mixture_of(fields, sizes, *published).dump();
  if (mixture) {
    // Experts without a gate have two products where those with a gate have three: as many operations and parameters.
    if (fields.whole("gated", 1) == 0)
      sizes.inner = std::max<std::int64_t>(sizes.inner * 2 / 3 / 64 * 64, 64);
    return mixture_of(fields, sizes, published).dump();
  }
  if (family == "llama" || model.starts_with("llama") || fields.whole("gated", 0) == 1 ||
      (family.empty() && (stack == "nanotron" || stack == "torchtitan")))
    return llama_of(sizes).dump();
  const bool drops = stack == "megatron_2022" || stack == "megatron_deepspeed" || stack == "deepspeed";
  if (sizes.key_heads == sizes.heads && sizes.head_size == 0) return gpt2_of(sizes, drops ? 0.1 : 0.0).dump();
  return plain_decoder_of(sizes, model.starts_with("nemotron")).dump();
}

}  // namespace weft::runs
