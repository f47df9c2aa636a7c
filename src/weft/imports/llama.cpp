// Llama and its kin: RMS norms, rotary positions, key heads that groups of query heads share, a feed-forward with a
// gate; Mistral sees a window of words, Qwen2 has biases, Mixtral has experts. LlamaForCausalLM and the like.
#include <algorithm>

#include <fmt/format.h>

#include "weft/imports/architectures.h"

namespace weft::imports {
namespace {

constexpr std::int64_t kUsualWords = 4096;  // of a text, where the model takes more

struct Llama {
  std::int64_t features, layers, heads, groups, head_size, inner, words, positions;
  std::int64_t window = 0;  // words back that are seen; 0: all
  std::int64_t experts = 0, chosen = 0;
  std::string activation;
  double epsilon, range, base, dropout;
  bool tied, query_bias, output_bias, mlp_bias;

  std::int64_t text_words() const { return std::min(positions, kUsualWords); }
};

// Words back that every layer sees, or 0 for all; layers that differ are refused.
Result<std::int64_t> window_of(Request& request, std::int64_t layers, std::int64_t positions) {
  Config& config = request.config;
  WEFT_TRY(window, config.count_or("sliding_window", 0));
  if (request.architecture == "llama") window = 0;
  WEFT_TRY(kinds, config.words("layer_types"));
  if (request.architecture == "qwen2") {
    WEFT_TRY(used, config.truth_or("use_sliding_window", false));
    WEFT_TRY(first, config.count_or("max_window_layers", layers));
    if (!used) window = 0;
    if (used && window > 0 && first < layers && kinds.empty())
      return user_error(
          fmt::format("max_window_layers: expected at least num_hidden_layers, {}, found {}", layers, first),
          "layers with a window beside layers without one have no text in Weft yet");
    if (used && first >= layers) window = 0;
  }
  bool some_slide = false, some_see_all = kinds.empty() && window == 0;
  for (const std::string& kind : kinds) {
    if (kind != "full_attention" && kind != "sliding_attention")
      return user_error(
          fmt::format("layer_types: expected full_attention or sliding_attention, found '{}'", kind));
    (kind == "full_attention" ? some_see_all : some_slide) = true;
  }
  if (some_slide && some_see_all)
    return user_error("layer_types: expected layers of one kind, found full_attention and sliding_attention");
  if (!kinds.empty() && !some_slide) window = 0;
  return window >= positions ? 0 : window;
}

Result<Llama> read_llama(Request& request, std::vector<std::string>& notes) {
  Config& config = request.config;
  const bool qwen = request.architecture == "qwen2";
  WEFT_TRY(features, config.size("hidden_size"));
  WEFT_TRY(layers, config.size("num_hidden_layers"));
  WEFT_TRY(heads, config.size("num_attention_heads"));
  WEFT_TRY(key_heads, config.size_or("num_key_value_heads", heads));
  WEFT_TRY(inner, config.size("intermediate_size"));
  WEFT_TRY(words, config.size("vocab_size"));
  WEFT_TRY(positions, config.size_or("max_position_embeddings", 2048));
  WEFT_TRY_STATUS(expect_divides("num_key_value_heads", key_heads, "num_attention_heads", heads));
  if (!config.has("head_dim"))
    WEFT_TRY_STATUS(expect_divides("num_attention_heads", heads, "hidden_size", features));
  WEFT_TRY(head_size, config.size_or("head_dim", std::max<std::int64_t>(features / heads, 1)));
  if (head_size % 2 != 0)
    return user_error(fmt::format("head_dim: expected an even number, to turn pairs, found {}", head_size));
  WEFT_TRY(activation, activation_of(config, "hidden_act", "silu"));
  WEFT_TRY(epsilon, config.rate_or("rms_norm_eps", 1e-6));
  WEFT_TRY(range, config.rate_or("initializer_range", 0.02));
  WEFT_TRY(dropout, config.rate_or("attention_dropout", 0));
  WEFT_TRY(tied, config.truth_or("tie_word_embeddings", false));
  WEFT_TRY(base, rotary_base(request, request.architecture == "mixtral" ? 1e6 : 10000, notes));
  bool biases = qwen, output_bias = false, mlp_bias = false;
  if (request.architecture == "llama") {
    WEFT_TRY(attention, config.truth_or("attention_bias", false));
    WEFT_TRY(mlp, config.truth_or("mlp_bias", false));
    biases = output_bias = attention;
    mlp_bias = mlp;
  } else {
    WEFT_TRY_STATUS(config.expect("attention_bias", qwen));
    WEFT_TRY_STATUS(config.expect("mlp_bias", false));
  }
  WEFT_TRY(window, window_of(request, layers, positions));
  Llama model{features, layers, key_heads,   heads / key_heads, head_size, inner, words, positions,
              window,   0,      0,           activation,        epsilon,   range, base,  dropout,
              tied,     biases, output_bias, mlp_bias};
  if (request.architecture == "mixtral") {
    WEFT_TRY(experts, config.size("num_local_experts"));
    WEFT_TRY(chosen, config.size_or("num_experts_per_tok", 2));
    if (chosen > experts)
      return user_error(fmt::format("num_experts_per_tok: expected at most num_local_experts, {}, found {}",
                                    experts, chosen));
    WEFT_TRY(jitter, config.number_or("router_jitter_noise", 0));
    if (jitter != 0) WEFT_TRY_STATUS(config.refuse("router_jitter_noise", "expected 0"));
    WEFT_TRY(with_loss, config.truth_or("output_router_logits", false));
    WEFT_TRY(weight, config.number_or("router_aux_loss_coef", 0.001));
    if (with_loss && weight != 0)
      notes.push_back("the loss that balances experts (router_aux_loss_coef) is left out");
    model.experts = experts;
    model.chosen = chosen;
  }
  // Slicing by pretraining_tp adds up to the same products.
  config.ignore({"pretraining_tp", "sliding_window", "use_sliding_window", "max_window_layers"});
  return model;
}

LayerText rotary_attention(const std::string& name, const Llama& model) {
  LayerText layer(name + "_attention", "x[b, s, d]",
                  model.groups == 1
                      ? "Causal attention with rotary positions."
                      : "Causal attention with rotary positions, g query heads to each of h key heads.");
  const std::string init = normal(model.range);
  layer.size("b", 1);
  layer.size("s", model.text_words());
  layer.size("d", model.features);
  layer.size("h", model.heads);
  layer.size("g", model.groups);
  layer.size("e", model.head_size);
  layer.parameter("norm_gain", {"d"}, "ones", same("input_layernorm.weight"));
  layer.parameter("wq", {"d", "h", "g", "e"}, init, turned("self_attn.q_proj.weight"));
  if (model.query_bias) layer.parameter("bq", {"h", "g", "e"}, "", same("self_attn.q_proj.bias"));
  layer.parameter("wk", {"d", "h", "e"}, init, turned("self_attn.k_proj.weight"));
  if (model.query_bias) layer.parameter("bk", {"h", "e"}, "", same("self_attn.k_proj.bias"));
  layer.parameter("wv", {"d", "h", "e"}, init, turned("self_attn.v_proj.weight"));
  if (model.query_bias) layer.parameter("bv", {"h", "e"}, "", same("self_attn.v_proj.bias"));
  layer.parameter("wo", {"h", "g", "e", "d"}, init, turned("self_attn.o_proj.weight", 3));
  if (model.output_bias) layer.parameter("bo", {"d"}, "", same("self_attn.o_proj.bias"));

  const auto project = [&](const char* part) {
    return model.query_bias ? fmt::format("sum(n * w{0}) + b{0}", part) : fmt::format("sum(n * w{})", part);
  };
  const auto from = [&](const char* part) {
    return model.query_bias ? fmt::format("n, w{0}, b{0}", part) : fmt::format("n, w{}", part);
  };
  const std::string turn = fmt::format(", along => s, pairs => e, base => {}", model.base);
  layer.with("n", fmt::format("SELECT {} FROM x, norm_gain", rms_norm("x", model.epsilon, "norm_gain")));
  layer.with(
      "q", fmt::format("SELECT rotary({}{}) FROM {} GROUP BY b, h, g, s, e", project("q"), turn, from("q")));
  layer.with("k",
             fmt::format("SELECT rotary({}{}) FROM {} GROUP BY b, h, s, e", project("k"), turn, from("k")));
  layer.with("v", fmt::format("SELECT {} FROM {} GROUP BY b, h, s, e", project("v"), from("v")));
  layer.with("scores", "SELECT sum(q * k) / sqrt(e) FROM q, k[b, h, s AS t, e] GROUP BY b, h, g, s, t");
  layer.with(
      "probs",
      fmt::format(
          "SELECT softmax(CASE WHEN t <= s{} THEN scores ELSE -inf END) OVER (PARTITION BY b, h, g, s) "
          "FROM scores",
          model.window > 0 ? fmt::format(" AND s - t < {}", model.window) : ""));
  std::string probs = "probs";
  if (model.dropout > 0) {
    layer.with("kept", fmt::format("SELECT {} FROM probs", dropped("probs", model.dropout)));
    probs = "kept";
  }
  layer.with("ctx",
             fmt::format("SELECT sum({0} * v) FROM {0}, v[b, h, s AS t, e] GROUP BY b, h, g, s, e", probs));
  layer.select(model.output_bias ? "SELECT x + sum(ctx * wo) + bo FROM x, ctx, wo, bo GROUP BY b, s, d"
                                 : "SELECT x + sum(ctx * wo) FROM x, ctx, wo GROUP BY b, s, d");
  return layer;
}

LayerText llama_mlp(const std::string& name, const Llama& model) {
  LayerText layer(name + "_mlp", "x[b, s, d]",
                  fmt::format("Feed-forward with a gate: down({}(gate(x)) * up(x)).", model.activation));
  const std::string init = normal(model.range);
  layer.size("b", 1);
  layer.size("s", model.text_words());
  layer.size("d", model.features);
  layer.size("f", model.inner);
  layer.parameter("norm_gain", {"d"}, "ones", same("post_attention_layernorm.weight"));
  layer.parameter("gate", {"d", "f"}, init, turned("mlp.gate_proj.weight"));
  layer.parameter("up", {"d", "f"}, init, turned("mlp.up_proj.weight"));
  layer.parameter("down", {"f", "d"}, init, turned("mlp.down_proj.weight"));
  if (model.mlp_bias) {
    layer.parameter("gate_bias", {"f"}, "", same("mlp.gate_proj.bias"));
    layer.parameter("up_bias", {"f"}, "", same("mlp.up_proj.bias"));
    layer.parameter("down_bias", {"d"}, "", same("mlp.down_proj.bias"));
  }
  layer.with("n", fmt::format("SELECT {} FROM x, norm_gain", rms_norm("x", model.epsilon, "norm_gain")));
  layer.with("u",
             model.mlp_bias
                 ? fmt::format("SELECT {}(sum(n * gate) + gate_bias) * (sum(n * up) + up_bias) "
                               "FROM n, gate, gate_bias, up, up_bias GROUP BY b, s, f",
                               model.activation)
                 : fmt::format("SELECT {}(sum(n * gate)) * sum(n * up) FROM n, gate, up GROUP BY b, s, f",
                               model.activation));
  layer.select(model.mlp_bias
                   ? "SELECT x + sum(u * down) + down_bias FROM x, u, down, down_bias GROUP BY b, s, d"
                   : "SELECT x + sum(u * down) FROM x, u, down GROUP BY b, s, d");
  return layer;
}

LayerText mixtral_experts(const std::string& name, const Llama& model) {
  LayerText layer(
      name + "_experts", "y[b, s, d]",
      "Each token goes to the k experts x with the largest scores, and queues there for one of c slots.");
  const std::string init = normal(model.range);
  layer.size("b", 1);
  layer.size("s", model.text_words());
  layer.size("d", model.features);
  layer.size("f", model.inner);
  layer.size("x", model.experts);
  layer.size("k", model.chosen);
  layer.size("c", model.text_words());
  layer.size("n", model.experts * model.text_words(), "x * c");
  layer.parameter("norm_gain", {"d"}, "ones", same("post_attention_layernorm.weight"));
  layer.parameter("router", {"d", "x"}, init, turned("block_sparse_moe.gate.weight"));
  layer.parameter("gate", {"x", "d", "f"}, init, turned_experts("block_sparse_moe.experts.{}.w1.weight"));
  layer.parameter("up", {"x", "d", "f"}, init, turned_experts("block_sparse_moe.experts.{}.w3.weight"));
  layer.parameter("down", {"x", "f", "d"}, init, turned_experts("block_sparse_moe.experts.{}.w2.weight"));
  layer.with("z", fmt::format("SELECT {} FROM y, norm_gain", rms_norm("y", model.epsilon, "norm_gain")));
  layer.with("scores", "SELECT sum(z * router) FROM z, router GROUP BY b, s, x");
  layer.with(
      "weight",
      "SELECT softmax(top_k(scores, k) OVER (PARTITION BY b, s)) OVER (PARTITION BY b, s) FROM scores");
  layer.with("place",
             "SELECT slot(top_k_positions(scores, k) OVER (PARTITION BY b, s), x, c) OVER (PARTITION BY b) "
             "FROM scores");
  layer.with("sent", "SELECT sum(z) FROM z, place GROUP BY b, place AS n, d");
  layer.with("hidden", fmt::format("SELECT {}(sum(sent * gate)) * sum(sent * up) "
                                   "FROM sent[b, n AS (x, c), d], gate, up GROUP BY b, x, c, f",
                                   model.activation));
  layer.with("done", "SELECT sum(hidden * down) FROM hidden, down GROUP BY b, x, c, d");
  layer.with("mixed",
             "SELECT sum(weight * done) FROM weight, place JOIN done[b, (x, c) AS n, d] ON n = place "
             "GROUP BY b, s, d");
  layer.select("SELECT y + mixed FROM y, mixed");
  return layer;
}

}  // namespace

Result<Imported> llama_of(Request request) {
  std::vector<std::string> notes;
  WEFT_TRY(model, read_llama(request, notes));
  const bool expert = model.experts > 0;
  const LayerText attention = rotary_attention(request.name, model);
  const LayerText mlp = expert ? mixtral_experts(request.name, model) : llama_mlp(request.name, model);
  constexpr std::pair<std::string_view, std::string_view> kTitles[] = {
      {"llama", "Llama, as transformers' LlamaForCausalLM computes it."},
      {"mistral", "Mistral, as transformers' MistralForCausalLM computes it."},
      {"mixtral", "Mixtral, as transformers' MixtralForCausalLM computes it."},
      {"qwen2", "Qwen2, as transformers' Qwen2ForCausalLM computes it."}};
  const auto title =
      std::ranges::find(kTitles, request.architecture, &std::pair<std::string_view, std::string_view>::first);
  ModelText text(request.name, "tokens[b, s] OF int32, targets[b, s] OF int32", std::string(title->second));
  text.layer(attention);
  text.layer(mlp);
  LayerText& body = text.body();
  body.size("b", 1);
  body.size("s", model.text_words());
  body.size("d", model.features);
  body.size("h", model.heads);
  body.size("g", model.groups);
  body.size("e", model.head_size);
  body.size("f", model.inner);
  if (expert) {
    body.size("experts", model.experts);
    body.size("k", model.chosen);
    // As many slots as a balanced router fills; where that is no whole number, all.
    const std::int64_t sent = model.text_words() * model.chosen;
    const bool balanced = sent % model.experts == 0;
    body.size("slots", balanced ? sent / model.experts : model.text_words(),
              balanced ? "s * k / experts" : "s");
    notes.push_back(
        "an expert has slots for its share of the tokens and passes over more: WITH (slots = s) drops none");
  }
  body.size("layers", model.layers);
  body.size("v", model.words);
  body.parameter("embed", {"v", "d"}, normal(model.range), same("model.embed_tokens.weight"));
  body.parameter("norm_gain", {"d"}, "ones", same("model.norm.weight"));
  if (!model.tied) body.parameter("head", {"d", "v"}, normal(model.range), turned("lm_head.weight"));
  body.with("x", "SELECT embed FROM tokens JOIN embed ON v = tokens");
  const std::string calls =
      expert ? fmt::format("{}_experts(a, f = f, x = experts, k = k, c = slots) AS experts", request.name)
             : fmt::format("{}_mlp(a, f = f) AS mlp", request.name);
  body.with("x",
            fmt::format("\n    WITH a AS (SELECT * FROM {}_attention(x, h = h, g = g, e = e) AS attention)\n"
                        "    SELECT * FROM {}",
                        request.name, calls),
            "REPEAT layers TIMES ");
  text.call(attention, "attention", "model.layers.{}.", model.layers);
  text.call(mlp, expert ? "experts" : "mlp", "model.layers.{}.", model.layers);
  body.with("n", fmt::format("SELECT {} FROM x, norm_gain", rms_norm("x", model.epsilon, "norm_gain")));
  body.with("logits",
            fmt::format("SELECT sum(n * {0}) FROM n, {0} GROUP BY b, s, v", model.tied ? "embed" : "head"));
  body.select(
      "SELECT mean(cross_entropy(logits, targets) OVER (PARTITION BY b, s)) AS loss FROM logits, targets");
  if (model.positions > kUsualWords)
    notes.push_back(fmt::format("texts of {} words; it takes up to {}: WITH (s = {})", kUsualWords,
                                model.positions, model.positions));
  return finish(request, text, std::move(notes));
}

}  // namespace weft::imports
