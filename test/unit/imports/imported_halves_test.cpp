// DeepSeek's latent attention and experts, and Whisper's encoder and decoder, compared with
// reimplementations of their classes.
#include "imported_case.h"

namespace weft::imports {
namespace {

// -- DeepSeek, choosing all experts: each gets every token, and none is full

struct Latent {
  bool version3 = false, pairs = true;
  std::size_t query_latent = 0;
  double scale = 1;  // of the experts
  double score = 1 / std::sqrt(8.0);
  Turning turning = {plain_frequencies(4, 10000)};
};
constexpr std::size_t kHeads = 4, kPlain = 4, kRotary = 4, kValue = 3, kLatent = 6, kExperts = 3;

// From interleaved pairs to halves: the class reads interleaved pairs.
Row halved(const Row& x) {
  Row y;
  for (std::size_t i = 0; i < x.size(); i += 2) y.push_back(x[i]);
  for (std::size_t i = 1; i < x.size(); i += 2) y.push_back(x[i]);
  return y;
}

void append_turned(Row& to, Row part, std::size_t position, const Latent& model) {
  if (model.pairs) part = halved(part);
  turn(part, position, model.turning);
  to.insert(to.end(), part.begin(), part.end());
}

Rows latent_attention(DrawnCheckpoint& drawn, const Rows& x, const std::string& own, const Latent& model) {
  const Rows n = drawn.rms_norm(x, own + "input_layernorm.weight", 1e-6);
  Rows q;
  if (model.query_latent > 0) {
    const Rows low = drawn.linear(n, own + "self_attn.q_a_proj", model.query_latent, false);
    q = drawn.linear(drawn.rms_norm(low, own + "self_attn.q_a_layernorm.weight", 1e-6),
                     own + "self_attn.q_b_proj", kHeads * (kPlain + kRotary), false);
  } else {
    q = drawn.linear(n, own + "self_attn.q_proj", kHeads * (kPlain + kRotary), false);
  }
  const Rows both = drawn.linear(n, own + "self_attn.kv_a_proj_with_mqa", kLatent + kRotary, false);
  const Rows kv =
      drawn.linear(drawn.rms_norm(columns(both, 0, kLatent), own + "self_attn.kv_a_layernorm.weight", 1e-6),
                   own + "self_attn.kv_b_proj", kHeads * (kPlain + kValue), false);
  const Rows rotary = columns(both, kLatent, kRotary);
  // Values are padded to the width of keys and truncated again.
  constexpr std::size_t kWide = kPlain + kRotary;
  Rows queries(kText), keys(kText), values(kText);
  for (std::size_t s = 0; s < kText; ++s)
    for (std::size_t h = 0; h < kHeads; ++h) {
      const Row query = columns({q[s]}, h * kWide, kWide).front();
      queries[s].insert(queries[s].end(), query.begin(), query.begin() + kPlain);
      append_turned(queries[s], {query.begin() + kPlain, query.end()}, s, model);
      const Row part = columns({kv[s]}, h * (kPlain + kValue), kPlain + kValue).front();
      keys[s].insert(keys[s].end(), part.begin(), part.begin() + kPlain);
      append_turned(keys[s], rotary[s], s, model);
      values[s].insert(values[s].end(), part.begin() + kPlain, part.end());
      values[s].resize(values[s].size() + kWide - kValue);
    }
  const Rows wide = attend(queries, keys, values,
                           {.heads = kHeads, .key_heads = kHeads, .size = kWide, .scale = model.score});
  Rows seen(kText);
  for (std::size_t s = 0; s < kText; ++s)
    for (std::size_t h = 0; h < kHeads; ++h)
      seen[s].insert(seen[s].end(), wide[s].begin() + static_cast<std::ptrdiff_t>(h * kWide),
                     wide[s].begin() + static_cast<std::ptrdiff_t>(h * kWide + kValue));
  return added(x, drawn.linear(seen, own + "self_attn.o_proj", kWidth, false));
}

Rows gated(DrawnCheckpoint& drawn, const Rows& n, const std::string& name, std::size_t inner) {
  const Rows gate = each(drawn.linear(n, name + "gate_proj", inner, false), silu);
  return drawn.linear(product(gate, drawn.linear(n, name + "up_proj", inner, false)), name + "down_proj",
                      kWidth, false);
}

Rows latent_experts(DrawnCheckpoint& drawn, const Rows& x, const std::string& own, const Latent& model) {
  const Rows n = drawn.rms_norm(x, own + "post_attention_layernorm.weight", 1e-6);
  if (model.version3) drawn.tensor(own + "mlp.gate.e_score_correction_bias", {kExperts});
  Rows weights = drawn.linear(n, own + "mlp.gate", kExperts, false);
  for (Row& row : weights) {
    double total = 0;
    for (double& one : row) total += one = model.version3 ? 1 / (1 + std::exp(-one)) : std::exp(one);
    for (double& one : row) one *= model.scale / total;
  }
  Rows y = added(x, gated(drawn, n, own + "mlp.shared_experts.", 10));
  for (std::size_t e = 0; e < kExperts; ++e) {
    const Rows made = gated(drawn, n, fmt::format("{}mlp.experts.{}.", own, e), 5);
    for (std::size_t s = 0; s < kText; ++s)
      for (std::size_t i = 0; i < kWidth; ++i) y[s][i] += weights[s][e] * made[s][i];
  }
  return y;
}

void expect_latent(const std::string& fields, const Latent& model) {
  DrawnCheckpoint drawn;
  Rows x = drawn.embedding(kTokens, "model.embed_tokens.weight", kVocabulary, kWidth);
  for (const char* own : {"model.layers.0.", "model.layers.1."}) {
    x = latent_attention(drawn, x, own, model);
    if (own[13] == '0') {
      const Rows n = drawn.rms_norm(x, std::string(own) + "post_attention_layernorm.weight", 1e-6);
      x = added(x, gated(drawn, n, std::string(own) + "mlp.", 24));
    } else {
      x = latent_experts(drawn, x, own, model);
    }
  }
  const std::string config = fmt::format(
      R"({{"hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": 2, "num_attention_heads": 4, "vocab_size": 11,
          "max_position_embeddings": 12, "first_k_dense_replace": 1, "kv_lora_rank": 6, "moe_intermediate_size": 5,
          "n_routed_experts": 3, "num_experts_per_tok": 3, "n_shared_experts": 2, "qk_nope_head_dim": 4,
          "qk_rope_head_dim": 4, "v_head_dim": 3, "n_group": 1, "topk_group": 1, {}}})",
      fields);
  x = drawn.rms_norm(x, "model.norm.weight", 1e-6);
  expect_rows(imported_outputs(config, drawn, drawn_inputs()), x);
}

TEST(ImportedNumbers, Deepseek2RotatesInterleavedPairsByYarn) {
  const std::string fields =
      R"("model_type": "deepseek_v2", "architectures": ["DeepseekV2Model"], "q_lora_rank": null,
      "routed_scaling_factor": 1.5)";
  expect_latent(fields, {.scale = 1.5});
  const double magnitude = 0.1 * 0.7 * std::log(40.0) + 1, all = 0.1 * 0.9 * std::log(40.0) + 1;
  expect_latent(
      fields + R"(, "rope_scaling": {"type": "yarn", "factor": 40, "original_max_position_embeddings": 4096,
      "beta_fast": 32, "beta_slow": 1, "mscale": 0.7, "mscale_all_dim": 0.9})",
      {.scale = 1.5,
       .score = all * all / std::sqrt(8.0),
       .turning = {yarn_frequencies(4, 10000, 40, 32, 1, 4096), magnitude / all}});
}

TEST(ImportedNumbers, Deepseek3RotatesInterleavedPairsOrHalves) {
  const std::string fields =
      R"("model_type": "deepseek_v3", "architectures": ["DeepseekV3Model"], "q_lora_rank": 5)";
  expect_latent(fields, {.version3 = true, .query_latent = 5, .scale = 2.5});
  expect_latent(fields + R"(, "rope_interleave": false)",
                {.version3 = true, .pairs = false, .query_latent = 5, .scale = 2.5});
}

// -- Whisper

constexpr std::size_t kMoments = 6, kBins = 5;

// y[t, out] = b + sum of w[out, in, k] x[t * stride + k - 1, in], zeros out of range.
Rows convolved(DrawnCheckpoint& drawn, const Rows& x, const std::string& name, std::size_t outputs,
               std::size_t stride) {
  const std::size_t inputs = x.front().size();
  const auto& weight = drawn.tensor(
      name + ".weight", {static_cast<std::int64_t>(outputs), static_cast<std::int64_t>(inputs), 3});
  const auto& bias = drawn.tensor(name + ".bias", {static_cast<std::int64_t>(outputs)});
  Rows y(x.size() / stride, Row(outputs));
  for (std::size_t t = 0; t < y.size(); ++t)
    for (std::size_t o = 0; o < outputs; ++o) {
      y[t][o] = bias[o];
      for (std::size_t k = 0; k < 3; ++k) {
        const std::size_t at = t * stride + k;  // shifted by one, for the padding
        if (at == 0 || at > x.size()) continue;
        for (std::size_t i = 0; i < inputs; ++i) y[t][o] += weight[(o * inputs + i) * 3 + k] * x[at - 1][i];
      }
    }
  return each(y, gelu);
}

Rows sound_attention(DrawnCheckpoint& drawn, const Rows& x, const Rows* read, const std::string& name,
                     bool causal) {
  const Rows n = drawn.layer_norm(x, name + "_layer_norm", 1e-5);
  const Rows& from = read == nullptr ? n : *read;
  const Rows seen = attend(drawn.linear(n, name + ".q_proj", kWidth, true),
                           drawn.linear(from, name + ".k_proj", kWidth, false),
                           drawn.linear(from, name + ".v_proj", kWidth, true),
                           {.heads = 4, .key_heads = 4, .size = 4, .scale = 0.5, .causal = causal});
  return added(x, drawn.linear(seen, name + ".out_proj", kWidth, true));
}

Rows sound_mlp(DrawnCheckpoint& drawn, const Rows& x, const std::string& own) {
  const Rows n = drawn.layer_norm(x, own + "final_layer_norm", 1e-5);
  return added(x,
               drawn.linear(each(drawn.linear(n, own + "fc1", 24, true), gelu), own + "fc2", kWidth, true));
}

Rows spectrum() {
  Rows x(2 * kMoments, Row(kBins));
  for (std::size_t t = 0; t < x.size(); ++t)
    for (std::size_t i = 0; i < kBins; ++i) x[t][i] = std::sin(static_cast<double>(3 * t + i));
  return x;
}

Inputs sound_inputs() {
  Inputs inputs = drawn_inputs();
  const Rows x = spectrum();
  ops::Tensor<double>& sound = inputs["sound"];
  sound.sizes = {1, kBins, 2 * kMoments};
  for (std::size_t i = 0; i < kBins; ++i)
    for (const Row& row : x) sound.data.push_back(row[i]);
  return inputs;
}

Rows heard(DrawnCheckpoint& drawn, const std::string& prefix) {
  Rows x = convolved(drawn, convolved(drawn, spectrum(), prefix + "conv1", kWidth, 1), prefix + "conv2",
                     kWidth, 2);
  std::vector<int> moments;
  for (std::size_t t = 0; t < kMoments; ++t) moments.push_back(static_cast<int>(t));
  x = added(x, drawn.embedding(moments, prefix + "embed_positions.weight", kMoments, kWidth));
  for (const char* layer : {"layers.0.", "layers.1."}) {
    x = sound_attention(drawn, x, nullptr, prefix + layer + "self_attn", false);
    x = sound_mlp(drawn, x, prefix + layer);
  }
  return drawn.layer_norm(x, prefix + "layer_norm", 1e-5);
}

std::string whisper_config(const std::string& fields) {
  return fmt::format(
      R"({{"model_type": "whisper", "d_model": 16, "encoder_layers": 2, "encoder_attention_heads": 4, "encoder_ffn_dim": 24,
          "decoder_layers": 1, "decoder_attention_heads": 4, "decoder_ffn_dim": 24, "num_mel_bins": 5, "vocab_size": 11,
          "max_source_positions": 6, "max_target_positions": 12, "classifier_proj_size": 7, {}}})",
      fields);
}

TEST(ImportedNumbers, WhisperEncoder) {
  DrawnCheckpoint drawn;
  const Rows expected = heard(drawn, "encoder.");
  expect_rows(
      imported_outputs(whisper_config(R"("architectures": ["WhisperEncoder"])"), drawn, sound_inputs()),
      expected);
  const Rows projected = drawn.linear(expected, "projector", 7, true);
  Row mean(7, 0);
  for (const Row& row : projected)
    for (std::size_t i = 0; i < 7; ++i) mean[i] += row[i] / kMoments;
  const Row logits = drawn.linear({mean}, "classifier", 3, true).front();
  Inputs inputs = sound_inputs();
  inputs["label"] = {{1}, {2}};
  expect_loss(imported_outputs(
                  whisper_config(R"("architectures": ["WhisperForAudioClassification"], "num_labels": 3)"),
                  drawn, inputs),
              expected_cross_entropy(logits, 2));
}

TEST(ImportedNumbers, WhisperDecoder) {
  DrawnCheckpoint drawn;
  const Rows sound = heard(drawn, "model.encoder.");
  const std::string own = "model.decoder.";
  std::vector<int> places;
  for (std::size_t s = 0; s < kText; ++s) places.push_back(static_cast<int>(s));
  Rows x = added(drawn.embedding(kTokens, own + "embed_tokens.weight", kVocabulary, kWidth),
                 drawn.embedding(places, own + "embed_positions.weight", kText, kWidth));
  x = sound_attention(drawn, x, nullptr, own + "layers.0.self_attn", true);
  x = sound_attention(drawn, x, &sound, own + "layers.0.encoder_attn", false);
  x = drawn.layer_norm(sound_mlp(drawn, x, own + "layers.0."), own + "layer_norm", 1e-5);
  expect_rows(imported_outputs(whisper_config(R"("architectures": ["WhisperModel"])"), drawn, sound_inputs()),
              x);
}

}  // namespace
}  // namespace weft::imports
