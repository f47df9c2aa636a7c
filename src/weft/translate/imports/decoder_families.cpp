// How each decoder family differs from Llama, and its configuration class's defaults for absent
// fields.
#include <algorithm>

#include <fmt/format.h>

#include "weft/translate/imports/decoder.h"

namespace weft::imports {
namespace {

constexpr std::int64_t kUsualWords = 4096;  // tokens per text, if the model supports more
constexpr std::int64_t kOwnHeads = 0;       // as many key heads as query heads

struct Assumed {
  std::string_view model_type;
  std::int64_t key_heads, head_size, positions;  // head_size 0: features / heads
  double epsilon;
  std::string_view activation;
  std::int64_t window;  // 0: none
  double base;
};
constexpr Assumed kAssumed[] = {
    {"gemma", 16, 256, 8192, 1e-6, "gelu_pytorch_tanh", 0, 1e4},
    {"gemma2", 4, 256, 8192, 1e-6, "gelu_pytorch_tanh", 4096, 1e4},
    {"gemma3_text", 4, 256, 131072, 1e-6, "gelu_pytorch_tanh", 4096, 1e6},
    {"llama", kOwnHeads, 0, 2048, 1e-6, "silu", 0, 1e4},
    {"mistral", 8, 0, 131072, 1e-6, "silu", 4096, 1e4},
    {"mixtral", 8, 0, 131072, 1e-5, "silu", 0, 1e6},
    {"nemotron", kOwnHeads, 0, 4096, 1e-5, "relu2", 0, 1e4},
    {"olmo", kOwnHeads, 0, 2048, 1e-5, "silu", 0, 1e4},
    {"olmo2", kOwnHeads, 0, 2048, 1e-5, "silu", 0, 1e4},
    {"phi3", kOwnHeads, 0, 4096, 1e-5, "silu", 0, 1e4},
    {"qwen2", 32, 0, 32768, 1e-6, "silu", 4096, 1e4},
    {"qwen3", 32, 128, 32768, 1e-6, "silu", 4096, 1e4},
    {"qwen3_moe", 4, 0, 32768, 1e-6, "silu", 4096, 1e4},
};

bool is_gemma(const Request& request) { return request.architecture.starts_with("gemma"); }
bool alternates(const Request& request) {
  return request.architecture == "gemma2" || request.architecture == "gemma3_text";
}
bool may_choose_window(const Request& request) { return request.architecture.starts_with("qwen"); }

// The number of key heads. Absent means the class's default; null means as many as query heads.
Result<std::int64_t> key_heads_of(Config& config, std::int64_t assumed, std::int64_t heads) {
  const bool own = assumed == kOwnHeads || config.is_null("num_key_value_heads");
  WEFT_TRY(key_heads, config.size_or("num_key_value_heads", own ? heads : assumed));
  WEFT_TRY_STATUS(expect_divides("num_key_value_heads", key_heads, "num_attention_heads", heads));
  return key_heads;
}

// Which layers use a sliding window if the file has no layer_types.
Result<std::vector<bool>> sliding_layers(Request& request, std::int64_t layers, std::int64_t window) {
  Config& config = request.config;
  std::vector<bool> slides(static_cast<std::size_t>(std::min<std::int64_t>(layers, 100'001)), window > 0);
  if (may_choose_window(request)) {
    WEFT_TRY(first, config.count_or("max_window_layers", 28));
    for (std::size_t i = 0; i < slides.size(); ++i)
      slides[i] = window > 0 && static_cast<std::int64_t>(i) >= first;
  } else if (alternates(request)) {
    std::int64_t every = 2;
    if (request.architecture == "gemma3_text") {
      WEFT_TRY(pattern, config.size_or("sliding_window_pattern", 6));
      every = pattern;
    }
    for (std::size_t i = 0; i < slides.size(); ++i)
      slides[i] = (static_cast<std::int64_t>(i) + 1) % every != 0;
  }
  return slides;
}

Result<std::int64_t> window_of(Request& request, std::int64_t assumed) {
  Config& config = request.config;
  if (request.architecture == "llama" || request.architecture == "gemma" ||
      request.architecture == "nemotron" || request.architecture.starts_with("olmo"))
    return 0;
  if (may_choose_window(request)) {
    WEFT_TRY(used, config.truth_or("use_sliding_window", false));
    if (!used) return 0;
  }
  if (!config.has("sliding_window")) return config.is_null("sliding_window") ? 0 : assumed;
  return config.size("sliding_window");
}

Result<std::vector<LayerKind>> kinds_of(Request& request, const Decoder& model, std::int64_t assumed_window) {
  Config& config = request.config;
  WEFT_TRY(window, window_of(request, assumed_window));
  WEFT_TRY(slides, sliding_layers(request, model.layers, window));
  WEFT_TRY(types, config.words("layer_types"));
  const bool chooses = may_choose_window(request) || alternates(request);
  if (config.has("layer_types") && static_cast<std::int64_t>(types.size()) != model.layers)
    return user_error(
        fmt::format("layer_types: expected one for each of {} layers, found {}", model.layers, types.size()));
  for (std::size_t i = 0; i < types.size(); ++i) {
    if (types[i] != "full_attention" && types[i] != "sliding_attention")
      return user_error(fmt::format(
          "layer_types[{}]: expected full_attention or sliding_attention, found '{}'", i, types[i]));
    const bool slide = types[i] == "sliding_attention";
    if (!chooses && slide != slides[i])
      return user_error(fmt::format("layer_types[{}]: expected {}, as all layers of {}, found {}", i,
                                    slides[i] ? "sliding_attention" : "full_attention", request.architecture,
                                    types[i]));
    slides[i] = slide;
  }
  if (chooses && window == 0 && std::ranges::find(slides, true) != slides.end())
    return user_error("sliding_window: expected a number for layers of sliding_attention, found none");
  std::vector<LayerKind> kinds;
  for (const bool slide : slides)
    // A window as long as the longest text masks nothing.
    kinds.push_back({.window = slide && window < model.positions ? window : 0,
                     .local = slide && request.architecture == "gemma3_text"});
  return kinds;
}

Status read_biases(Request& request, Decoder& model) {
  Config& config = request.config;
  if (request.architecture == "qwen2") {
    model.query_bias = true;
  } else if (request.architecture == "llama" || request.architecture.starts_with("qwen3") ||
             request.architecture == "nemotron" || is_gemma(request) ||
             request.architecture.starts_with("olmo")) {
    WEFT_TRY(attention, config.truth_or("attention_bias", false));
    model.query_bias = model.output_bias = attention;
  }
  if (request.architecture == "llama") {
    WEFT_TRY(mlp, config.truth_or("mlp_bias", false));
    model.mlp_bias = mlp;
  }
  return {};
}

Result<double> cap_or(Config& config, const char* key, double otherwise) {
  if (config.is_null(key)) return 0.0;
  WEFT_TRY(cap, config.number_or(key, otherwise));
  if (cap == 0 && !config.has(key)) return cap;
  if (cap >= 1e-6 && cap <= 1e9) return cap;
  return user_error(fmt::format("{}: expected a number from 1e-6 to 1e9, found {}", key, cap));
}

Status read_gemma(Request& request, Decoder& model, std::vector<std::string>& notes) {
  Config& config = request.config;
  model.norm = NormKind::rms_around;
  model.scaled_embedding = true;
  const bool first = request.architecture == "gemma";
  WEFT_TRY(activation, activation_of(config, "hidden_activation", "gelu_pytorch_tanh"));
  if (first) {
    // Its first config files say gelu, although the class used gelu_pytorch_tanh.
    WEFT_TRY(older, activation_of(config, "hidden_act", "gelu_pytorch_tanh"));
    if (!config.has("hidden_activation")) activation = older;
    if (activation != older)
      notes.push_back("hidden_act and hidden_activation differ: using hidden_activation");
  }
  model.activation = activation;
  if (first) return {};
  model.norm_after = true;
  WEFT_TRY(score, config.number_or("query_pre_attn_scalar", 256));
  if (!(score >= 1e-6 && score <= 1e9))
    return user_error(
        fmt::format("query_pre_attn_scalar: expected a number from 1e-6 to 1e9, found {}", score));
  model.score_size = score;
  if (request.architecture == "gemma3_text") {
    model.norm_heads = true;
    return {};
  }
  WEFT_TRY(score_cap, cap_or(config, "attn_logit_softcapping", 50));
  model.score_cap = score_cap;
  return {};
}

Status refuse_router_loss(Config& config) {
  WEFT_TRY(with_loss, config.truth_or("output_router_logits", false));
  WEFT_TRY(weight, config.number_or("router_aux_loss_coef", 0.001));
  if (with_loss && weight != 0)
    return config.refuse("output_router_logits",
                         fmt::format("expected false, or router_aux_loss_coef of 0, not {}", weight),
                         "Weft does not support the auxiliary load-balancing loss");
  return {};
}

Status read_experts(Request& request, Decoder& model) {
  Config& config = request.config;
  WEFT_TRY(experts, config.size_or("num_local_experts", 8));
  WEFT_TRY(chosen, config.size_or("num_experts_per_tok", 2));
  if (chosen > experts)
    return user_error(fmt::format("num_experts_per_tok: expected at most num_local_experts, {}, found {}",
                                  experts, chosen));
  WEFT_TRY_STATUS(refuse_router_loss(config));
  model.experts = experts;
  model.chosen = chosen;
  return {};
}

// Qwen3 MoE: experts in every layer.
Status read_qwen_experts(Request& request, Decoder& model) {
  Config& config = request.config;
  WEFT_TRY(experts, config.size_or("num_experts", 128));
  WEFT_TRY(chosen, config.size_or("num_experts_per_tok", 8));
  WEFT_TRY(normed, config.truth_or("norm_topk_prob", false));
  if (chosen > experts)
    return user_error(
        fmt::format("num_experts_per_tok: expected at most num_experts, {}, found {}", experts, chosen));
  WEFT_TRY_STATUS(refuse_router_loss(config));
  model.norm_heads = model.experts_in_mlp = true;
  model.experts = experts;
  model.chosen = chosen;
  model.weights_sum_to_one = normed;
  return {};
}

// Nemotron: a feed-forward of squared ReLU without a gate, and layer norms around a gain of 1.
Status read_nemotron(Request& request, Decoder& model) {
  Config& config = request.config;
  model.norm = NormKind::mean_around;
  model.gated = false;
  WEFT_TRY(word, config.word_or("hidden_act", "relu2"));
  model.squared = word == "relu2";
  if (model.squared) {
    model.activation = "relu";
    return {};
  }
  WEFT_TRY(activation, activation_of(config, "hidden_act", "relu"));
  model.activation = activation;
  return {};
}

Status read_own(Request& request, Decoder& model, std::vector<std::string>& notes) {
  Config& config = request.config;
  if (is_gemma(request)) return read_gemma(request, model, notes);
  if (request.architecture == "nemotron") return read_nemotron(request, model);
  WEFT_TRY(activation, activation_of(config, "hidden_act", "silu"));
  model.activation = activation;
  if (request.architecture == "mixtral") return read_experts(request, model);
  if (request.architecture == "qwen3_moe") return read_qwen_experts(request, model);
  if (request.architecture == "qwen3") model.norm_heads = true;
  if (request.architecture == "olmo2") {
    model.norm_before = false;
    model.norm_after = model.norm_queries = true;
  }
  if (request.architecture == "olmo") {
    model.norm = NormKind::mean;
    WEFT_TRY(clip, cap_or(config, "clip_qkv", 0));
    model.clip = clip;
  }
  if (request.architecture == "phi3") {
    model.fused = true;
    WEFT_TRY(dropout, config.rate_or("resid_pdrop", 0));
    model.residual_dropout = dropout;
  }
  return {};
}

Status read_rotaries(Request& request, double base, Decoder& model, std::vector<std::string>& notes) {
  const RotarySizes sizes{.head = model.head_size, .positions = model.positions};
  if (request.architecture == "gemma3_text") {
    WEFT_TRY(both, read_two_rotaries(request, sizes, notes));
    model.rotary = std::move(both.full);
    model.local_rotary = std::move(both.sliding);
    return {};
  }
  RotaryFields fields{.base_otherwise = base};
  if (request.architecture == "phi3") {
    fields.some_may_rest = fields.only_longrope = true;
    fields.original = 4096;
  }
  if (request.architecture == "nemotron") {
    fields.some_may_rest = true;
    fields.part_otherwise = 0.5;
  }
  WEFT_TRY(rotary, read_rotary(request, fields, sizes, notes));
  model.rotary = std::move(rotary);
  return {};
}

}  // namespace

std::int64_t Decoder::text_words() const { return std::min(positions, kUsualWords); }

Result<Decoder> read_decoder(Request& request, Head head, std::vector<std::string>& notes) {
  Config& config = request.config;
  const Assumed& assumed = *std::ranges::find(kAssumed, request.architecture, &Assumed::model_type);
  Decoder model;
  WEFT_TRY(features, config.size("hidden_size"));
  WEFT_TRY(layers, config.size("num_hidden_layers"));
  WEFT_TRY(heads, config.size("num_attention_heads"));
  const bool only_experts = request.architecture == "qwen3_moe";
  WEFT_TRY(inner,
           only_experts ? config.size_or("moe_intermediate_size", 768) : config.size("intermediate_size"));
  WEFT_TRY(words, config.size("vocab_size"));
  WEFT_TRY(positions, config.size_or("max_position_embeddings", assumed.positions));
  WEFT_TRY(key_heads, key_heads_of(config, assumed.key_heads, heads));
  const bool own_size = assumed.head_size > 0 && !config.is_null("head_dim");
  if (!config.has("head_dim") && !own_size)
    WEFT_TRY_STATUS(expect_divides("num_attention_heads", heads, "hidden_size", features));
  WEFT_TRY(head_size, config.size_or("head_dim", own_size ? assumed.head_size
                                                          : std::max<std::int64_t>(features / heads, 1)));
  if (head_size % 2 != 0)
    return user_error(
        fmt::format("head_dim: expected an even number for rotary embeddings, found {}", head_size));
  model.features = features;
  model.layers = layers;
  model.heads = key_heads;
  model.groups = heads / key_heads;
  model.head_size = head_size;
  model.inner = inner;
  model.words = words;
  model.positions = positions;
  WEFT_TRY(range, config.rate_or("initializer_range", 0.02));
  WEFT_TRY(dropout, config.rate_or("attention_dropout", 0));
  model.range = range;
  model.dropout = dropout;
  if (request.architecture != "olmo") {
    const char* const key = request.architecture == "nemotron" ? "norm_eps" : "rms_norm_eps";
    WEFT_TRY(epsilon, config.rate_or(key, assumed.epsilon));
    model.epsilon = epsilon;
  }
  WEFT_TRY_STATUS(read_biases(request, model));
  WEFT_TRY_STATUS(read_own(request, model, notes));
  if (head == Head::words && alternates(request)) {
    WEFT_TRY(cap, cap_or(config, "final_logit_softcapping", request.architecture == "gemma2" ? 30 : 0));
    model.logit_cap = cap;
  }
  WEFT_TRY_STATUS(read_rotaries(request, assumed.base, model, notes));
  WEFT_TRY(kinds, kinds_of(request, model, assumed.window));
  model.kinds = std::move(kinds);
  return model;
}

}  // namespace weft::imports
