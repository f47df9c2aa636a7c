// Imported models compared with reimplementations of the classes they stand for: the same weights,
// converted, give the same hidden states and losses.
#include "imported_case.h"

namespace weft::imports {
namespace {

// -- Llama and related models: what the classes have in common, and where they differ

struct Kin {
  std::size_t layers = 2, heads = 4, key_heads = 2, size = 4, inner = 24;
  double eps = 1e-6, around = 0;
  bool before = true, after = false, norm_heads = false, norm_queries = false, biases = false,
       output_bias = false;
  bool fused = false, norms_without_weights = false;
  double clip = 0, cap = 0, scale = 0.5, embedding = 1;
  std::function<double(double)> activation = silu;
  std::function<std::size_t(std::size_t)> window = [](std::size_t) { return 0; };
  std::function<Turning(std::size_t)> turning = [](std::size_t) {
    return Turning{plain_frequencies(4, 10000)};
  };
};

Rows normed_heads(DrawnCheckpoint& drawn, const Rows& x, const std::string& name, const Kin& kin) {
  if (kin.norm_queries) return drawn.rms_norm(x, name, kin.eps, kin.around);
  Rows y = x;
  for (std::size_t begin = 0; begin < x.front().size(); begin += kin.size) {
    const Rows head = drawn.rms_norm(columns(x, begin, kin.size), name, kin.eps, kin.around);
    for (std::size_t s = 0; s < x.size(); ++s)
      std::copy(head[s].begin(), head[s].end(), y[s].begin() + static_cast<std::ptrdiff_t>(begin));
  }
  return y;
}

Rows kin_norm(DrawnCheckpoint& drawn, const Rows& x, const std::string& name, const Kin& kin) {
  return kin.norms_without_weights ? drawn.layer_norm(x, "", 1e-5)
                                   : drawn.rms_norm(x, name + ".weight", kin.eps, kin.around);
}

Rows kin_attention(DrawnCheckpoint& drawn, const Rows& n, const std::string& own, std::size_t layer,
                   const Kin& kin) {
  const std::size_t queries = kin.heads * kin.size, keys = kin.key_heads * kin.size;
  Rows q, k, v;
  if (kin.fused) {
    const Rows all = drawn.linear(n, own + "self_attn.qkv_proj", queries + 2 * keys, false);
    q = columns(all, 0, queries), k = columns(all, queries, keys), v = columns(all, queries + keys, keys);
  } else {
    q = drawn.linear(n, own + "self_attn.q_proj", queries, kin.biases);
    k = drawn.linear(n, own + "self_attn.k_proj", keys, kin.biases);
    v = drawn.linear(n, own + "self_attn.v_proj", keys, kin.biases);
  }
  if (kin.clip > 0)
    for (Rows* rows : {&q, &k, &v})
      *rows = each(*rows, [&](double x) { return std::clamp(x, -kin.clip, kin.clip); });
  if (kin.norm_heads || kin.norm_queries) {
    q = normed_heads(drawn, q, own + "self_attn.q_norm.weight", kin);
    k = normed_heads(drawn, k, own + "self_attn.k_norm.weight", kin);
  }
  const Rows seen = attend(q, k, v,
                           {.heads = kin.heads,
                            .key_heads = kin.key_heads,
                            .size = kin.size,
                            .window = kin.window(layer),
                            .scale = kin.scale,
                            .cap = kin.cap,
                            .turning = kin.turning(layer)});
  return drawn.linear(seen, own + "self_attn.o_proj", kWidth, kin.output_bias);
}

Rows kin_mlp(DrawnCheckpoint& drawn, const Rows& n, const std::string& own, const Kin& kin) {
  Rows gate, up;
  if (kin.fused) {
    const Rows both = drawn.linear(n, own + "mlp.gate_up_proj", 2 * kin.inner, false);
    gate = columns(both, 0, kin.inner), up = columns(both, kin.inner, kin.inner);
  } else {
    gate = drawn.linear(n, own + "mlp.gate_proj", kin.inner, false);
    up = drawn.linear(n, own + "mlp.up_proj", kin.inner, false);
  }
  return drawn.linear(product(each(gate, kin.activation), up), own + "mlp.down_proj", kWidth, false);
}

// The last hidden states, after the norm.
Rows kin_hidden(DrawnCheckpoint& drawn, const Kin& kin) {
  Rows x = each(drawn.embedding(kTokens, "model.embed_tokens.weight", kVocabulary, kWidth),
                [&](double one) { return one * kin.embedding; });
  for (std::size_t layer = 0; layer < kin.layers; ++layer) {
    const std::string own = fmt::format("model.layers.{}.", layer);
    Rows made = kin_attention(drawn, kin.before ? kin_norm(drawn, x, own + "input_layernorm", kin) : x, own,
                              layer, kin);
    if (kin.after) made = kin_norm(drawn, made, own + "post_attention_layernorm", kin);
    x = added(x, made);
    const std::string second = kin.after ? "pre_feedforward_layernorm" : "post_attention_layernorm";
    made = kin_mlp(drawn, kin.before ? kin_norm(drawn, x, own + second, kin) : x, own, kin);
    if (kin.after) made = kin_norm(drawn, made, own + "post_feedforward_layernorm", kin);
    x = added(x, made);
  }
  return kin_norm(drawn, x, "model.norm", kin);
}

std::string kin_config(const std::string& fields, std::size_t layers = 2) {
  return fmt::format(
      R"({{"hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": {}, "num_attention_heads": 4,
          "num_key_value_heads": 2, "vocab_size": 11, "max_position_embeddings": 12, {}}})",
      layers, fields);
}

void expect_kin(const std::string& fields, const Kin& kin) {
  DrawnCheckpoint drawn;
  const Rows expected = kin_hidden(drawn, kin);
  expect_rows(imported_outputs(kin_config(fields, kin.layers), drawn, drawn_inputs()), expected);
}

TEST(ImportedNumbers, Llama) {
  expect_kin(R"("model_type": "llama", "architectures": ["LlamaModel"])", {});
  expect_kin(
      R"("model_type": "llama", "architectures": ["LlamaModel"], "attention_bias": true, "rms_norm_eps": 0.01)",
      {.eps = 0.01, .biases = true, .output_bias = true});
  expect_kin(R"("model_type": "mistral", "architectures": ["MistralModel"], "sliding_window": 3)",
             {.window = [](std::size_t) { return 3; }});
}

TEST(ImportedNumbers, ScaledRotaryAngles) {
  const std::string model =
      R"("model_type": "llama", "architectures": ["LlamaModel"], "rope_theta": 100.0, "head_dim": 16)";
  const auto with = [](Turning turning) {
    Kin kin{.size = 16, .scale = 0.25};
    kin.turning = [turning](std::size_t) { return turning; };
    return kin;
  };
  const Row plain = plain_frequencies(16, 100);
  Row slower = plain;
  for (double& one : slower) one /= 4;
  expect_kin(model + R"(, "rope_scaling": {"type": "linear", "factor": 4.0})", with({slower}));
  expect_kin(model + R"(, "rope_scaling": {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0,
      "high_freq_factor": 4.0, "original_max_position_embeddings": 64})",
             with({llama3_frequencies(plain, 8, 1, 4, 64)}));
  expect_kin(
      model +
          R"(, "rope_scaling": {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 100})",
      with({yarn_frequencies(16, 100, 4, 32, 1, 100), 0.1 * std::log(4.0) + 1}));
  expect_kin(
      model + R"(, "rope_parameters": {"rope_type": "yarn", "rope_theta": 50.0, "factor": 2.0, "beta_fast": 8,
      "beta_slow": 2, "mscale": 2.0, "mscale_all_dim": 1.0, "original_max_position_embeddings": 200})",
      with({yarn_frequencies(16, 50, 2, 8, 2, 200), (0.2 * std::log(2.0) + 1) / (0.1 * std::log(2.0) + 1)}));
  expect_kin(model + R"(, "rope_scaling": {"rope_type": "dynamic", "factor": 4.0})", with({plain}));
}

TEST(ImportedNumbers, Phi3RotatesAPartByListedDivisors) {
  const Row divisors[] = {{1, 1.5, 2}, {3, 4, 5}};
  const std::string fields = R"("model_type": "phi3", "architectures": ["Phi3Model"], "rms_norm_eps": 1e-5,
      "partial_rotary_factor": 0.75, "head_dim": 8,
      "original_max_position_embeddings": {}, "rope_scaling": {{"type": "{}", "short_factor": [1, 1.5, 2], "long_factor": [3, 4, 5]}})";
  for (const double original : {8.0, 12.0}) {
    Kin kin{.size = 8, .eps = 1e-5, .fused = true, .scale = 1 / std::sqrt(8.0)};
    const Row& chosen = divisors[original < 12 ? 1 : 0];  // sequences have 12 tokens
    const double factor = 12 / original;
    kin.turning = [&](std::size_t) {
      Row frequencies = plain_frequencies(6, 10000);
      for (std::size_t i = 0; i < 3; ++i) frequencies[i] /= chosen[i];
      return Turning{frequencies, std::sqrt(1 + std::log(factor) / std::log(original))};
    };
    expect_kin(
        fmt::format(fmt::runtime(fields), static_cast<int>(original), original < 12 ? "su" : "longrope"),
        kin);
  }
  expect_kin(
      R"("model_type": "phi3", "architectures": ["Phi3Model"], "rms_norm_eps": 1e-5, "sliding_window": 4)",
      {.eps = 1e-5, .fused = true, .window = [](std::size_t) { return 4; }});
}

TEST(ImportedNumbers, QwenNormalizesHeadsAndUsesWindowsFromALayerOn) {
  expect_kin(R"("model_type": "qwen2", "architectures": ["Qwen2Model"])", {.biases = true});
  expect_kin(
      R"("model_type": "qwen3", "architectures": ["Qwen3Model"], "head_dim": 4, "use_sliding_window": true,
      "sliding_window": 2, "max_window_layers": 3)",
      {.layers = 5, .norm_heads = true, .window = [](std::size_t layer) { return layer < 3 ? 0 : 2; }});
}

TEST(ImportedNumbers, GemmaCapsScoresAndAlternatesWindows) {
  Kin kin{.layers = 3,
          .around = 1,
          .after = true,
          .cap = 2,
          .scale = 1 / std::sqrt(9.0),
          .embedding = 4,
          .activation = gelu_tanh};
  kin.window = [](std::size_t layer) { return layer % 2 == 0 ? 3 : 0; };
  expect_kin(R"("model_type": "gemma2", "architectures": ["Gemma2Model"], "head_dim": 4, "sliding_window": 3,
      "query_pre_attn_scalar": 9, "attn_logit_softcapping": 2.0)",
             kin);
  kin.after = false;
  kin.cap = 0;
  kin.scale = 0.5;
  kin.window = [](std::size_t) { return 0; };
  expect_kin(R"("model_type": "gemma", "architectures": ["GemmaModel"], "head_dim": 4)", kin);
}

TEST(ImportedNumbers, Gemma3HasTwoRotaryBases) {
  Kin kin{.layers = 8,
          .around = 1,
          .after = true,
          .norm_heads = true,
          .scale = 1.0 / 16,
          .embedding = 4,
          .activation = gelu_tanh};
  kin.window = [](std::size_t layer) { return (layer + 1) % 3 != 0 ? 2 : 0; };
  const auto turning = [&](double factor) {
    return [=](std::size_t layer) {
      Row frequencies = plain_frequencies(4, (layer + 1) % 3 != 0 ? 500 : 2000);
      if ((layer + 1) % 3 == 0)
        for (double& one : frequencies) one /= factor;
      return Turning{frequencies};
    };
  };
  const std::string fields =
      R"("model_type": "gemma3_text", "architectures": ["Gemma3TextModel"], "head_dim": 4, "sliding_window": 2,
      "sliding_window_pattern": 3, )";
  kin.turning = turning(1);
  expect_kin(fields + R"("rope_theta": 2000.0, "rope_local_base_freq": 500.0)", kin);
  kin.turning = turning(8);
  expect_kin(
      fields +
          R"("rope_theta": 2000.0, "rope_local_base_freq": 500.0, "rope_scaling": {"rope_type": "linear", "factor": 8.0})",
      kin);
  expect_kin(
      fields +
          R"("rope_parameters": {"full_attention": {"rope_type": "linear", "factor": 8.0, "rope_theta": 2000.0},
      "sliding_attention": {"rope_type": "default", "rope_theta": 500.0}})",
      kin);
}

TEST(ImportedNumbers, OlmoClipsAndOlmo2NormalizesAfterwards) {
  expect_kin(R"("model_type": "olmo", "architectures": ["OlmoModel"], "clip_qkv": 0.3)",
             {.norms_without_weights = true, .clip = 0.3});
  expect_kin(R"("model_type": "olmo2", "architectures": ["Olmo2Model"])",
             {.eps = 1e-5, .before = false, .after = true, .norm_queries = true});
}

// -- GPT-NeoX and Falcon

struct Parallel {
  std::string prefix, attention, first, second, embedding, last;
  std::size_t heads = 4, key_heads = 4, turned = 4;
  bool parallel = true, biases = true;
  bool alibi = false;
};

Rows parallel_hidden(DrawnCheckpoint& drawn, const Parallel& model) {
  const std::size_t size = kWidth / model.heads, groups = model.heads / model.key_heads;
  Rows x = drawn.embedding(kTokens, model.embedding + ".weight", kVocabulary, kWidth);
  for (std::size_t layer = 0; layer < 2; ++layer) {
    const std::string own = fmt::format("{}{}.", model.prefix, layer);
    const Rows n = drawn.layer_norm(x, own + model.first, 1e-5);
    // Per key head: its queries, its key, its value.
    const Rows all = drawn.linear(n, own + model.attention + "query_key_value",
                                  model.key_heads * (groups + 2) * size, model.biases);
    Rows q(kText), k(kText), v(kText);
    for (std::size_t s = 0; s < kText; ++s)
      for (std::size_t h = 0; h < model.key_heads; ++h) {
        const auto from = all[s].begin() + static_cast<std::ptrdiff_t>(h * (groups + 2) * size);
        const auto at = [&](std::size_t part) { return from + static_cast<std::ptrdiff_t>(part * size); };
        q[s].insert(q[s].end(), at(0), at(groups));
        k[s].insert(k[s].end(), at(groups), at(groups + 1));
        v[s].insert(v[s].end(), at(groups + 1), at(groups + 2));
      }
    AttentionGeometry of{.heads = model.heads,
                         .key_heads = model.key_heads,
                         .size = size,
                         .scale = 1 / std::sqrt(static_cast<double>(size))};
    if (model.alibi)
      of.slope = [](std::size_t head) {
        return head < 4 ? std::pow(2.0, -2.0 * static_cast<double>(head + 1)) : 0;
      };
    else
      of.turning = {plain_frequencies(model.turned, 10000)};
    const Rows seen =
        drawn.linear(attend(q, k, v, of), own + model.attention + "dense", kWidth, model.biases);
    const Rows read = model.parallel
                          ? (model.second.empty() ? n : drawn.layer_norm(x, own + model.second, 1e-5))
                          : drawn.layer_norm(added(x, seen), own + model.second, 1e-5);
    const Rows up = each(drawn.linear(read, own + "mlp.dense_h_to_4h", 64, model.biases), gelu);
    x = added(added(x, seen), drawn.linear(up, own + "mlp.dense_4h_to_h", kWidth, model.biases));
  }
  return drawn.layer_norm(x, model.last, 1e-5);
}

void expect_parallel(const std::string& fields, const Parallel& model) {
  DrawnCheckpoint drawn;
  const Rows expected = parallel_hidden(drawn, model);
  const std::string config = fmt::format(
      R"({{"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": {}, "vocab_size": 11, "max_position_embeddings": 12, {}}})",
      model.heads, fields);
  expect_rows(imported_outputs(config, drawn, drawn_inputs()), expected);
}

TEST(ImportedNumbers, GptNeox) {
  Parallel model{.prefix = "gpt_neox.layers.",
                 .attention = "attention.",
                 .first = "input_layernorm",
                 .second = "post_attention_layernorm",
                 .embedding = "gpt_neox.embed_in",
                 .last = "gpt_neox.final_layer_norm",
                 .turned = 2};
  const std::string fields =
      R"("model_type": "gpt_neox", "architectures": ["GPTNeoXModel"], "intermediate_size": 64, "rotary_pct": 0.5)";
  expect_parallel(fields, model);
  model.parallel = false;
  expect_parallel(fields + R"(, "use_parallel_residual": false)", model);
}

TEST(ImportedNumbers, Falcon) {
  const std::string type = R"("model_type": "falcon", "architectures": ["FalconModel"])";
  Parallel model{.prefix = "transformer.h.",
                 .attention = "self_attention.",
                 .first = "input_layernorm",
                 .second = "",
                 .embedding = "transformer.word_embeddings",
                 .last = "transformer.ln_f",
                 .key_heads = 1,
                 .biases = false};
  expect_parallel(type, model);
  model.first = "ln_attn", model.second = "ln_mlp", model.key_heads = 2;
  expect_parallel(type + R"(, "new_decoder_architecture": true, "num_kv_heads": 2)", model);
  model.first = "input_layernorm", model.second = "post_attention_layernorm", model.key_heads = 4;
  model.parallel = false, model.biases = true, model.alibi = true;
  expect_parallel(type + R"(, "multi_query": false, "parallel_attn": false, "bias": true, "alibi": true)",
                  model);
}

// -- heads

TEST(ImportedNumbers, SequenceClassifiersReadTheLastTokenThatIsNotPadding) {
  const std::string fields =
      R"("model_type": "llama", "architectures": ["LlamaForSequenceClassification"], "num_labels": 3)";
  for (const int pad : {8, 5, -1}) {  // the last token is 8, the one before it is 5
    DrawnCheckpoint drawn;
    const Rows hidden = kin_hidden(drawn, {});
    const std::size_t last = pad == 8 ? 10 : 11;
    const Row logits = drawn.linear({hidden[last]}, "score", 3, false).front();
    Inputs inputs = drawn_inputs();
    inputs["label"] = {{1}, {2}};
    const std::string padding = pad < 0 ? "" : fmt::format(R"(, "pad_token_id": {})", pad);
    expect_loss(imported_outputs(kin_config(fields + padding), drawn, inputs),
                expected_cross_entropy(logits, 2));
    inputs["label"] = {{1, 3}, {1, 0, 1}};
    double several = 0, squares = 0;
    for (std::size_t i = 0; i < 3; ++i) {
      const double label = i == 1 ? 0 : 1, chance = 1 / (1 + std::exp(-logits[i]));
      several -= (label * std::log(chance) + (1 - label) * std::log(1 - chance)) / 3;
      squares += (logits[i] - label) * (logits[i] - label) / 3;
    }
    expect_loss(
        imported_outputs(kin_config(fields + padding + R"(, "problem_type": "multi_label_classification")"),
                         drawn, inputs),
        several);
    expect_loss(
        imported_outputs(kin_config(fields + padding + R"(, "problem_type": "regression")"), drawn, inputs),
        squares);
  }
}

TEST(ImportedNumbers, SupportsTokenClassificationAndQuestionAnswering) {
  DrawnCheckpoint drawn;
  const Rows hidden = kin_hidden(drawn, {.biases = true});
  const Rows logits = drawn.linear(hidden, "score", 2, true);
  Inputs inputs = drawn_inputs();
  inputs["labels"] = {{1, kText}, Row(kText, -100)};
  inputs["labels"].data[4] = 1;
  inputs["labels"].data[7] = 0;
  expect_loss(imported_outputs(
                  kin_config(R"("model_type": "qwen2", "architectures": ["Qwen2ForTokenClassification"])"),
                  drawn, inputs),
              (expected_cross_entropy(logits[4], 1) + expected_cross_entropy(logits[7], 0)) / 2);
  DrawnCheckpoint other;
  const Rows spans = other.linear(kin_hidden(other, {.biases = true}), "qa_outputs", 2, true);
  Row begins, ends;
  for (const Row& row : spans) begins.push_back(row[0]), ends.push_back(row[1]);
  inputs["start_positions"] = {{1}, {3}};
  inputs["end_positions"] = {{1}, {6}};
  expect_loss(
      imported_outputs(kin_config(R"("model_type": "qwen2", "architectures": ["Qwen2ForQuestionAnswering"])"),
                       other, inputs),
      (expected_cross_entropy(begins, 3) + expected_cross_entropy(ends, 6)) / 2);
}

TEST(ImportedNumbers, CapsLogits) {
  DrawnCheckpoint drawn;
  Kin kin{.around = 1, .after = true, .cap = 50, .scale = 1.0 / 16, .embedding = 4, .activation = gelu_tanh};
  const Rows hidden = kin_hidden(drawn, kin);
  const auto& embedding = drawn.tensor("model.embed_tokens.weight", {});
  double expected = 0;
  Inputs inputs = drawn_inputs();
  inputs["targets"] = inputs["tokens"];
  for (std::size_t s = 0; s < kText; ++s) {
    Row logits(kVocabulary, 0);
    for (std::size_t v = 0; v < kVocabulary; ++v) {
      for (std::size_t i = 0; i < kWidth; ++i) logits[v] += hidden[s][i] * embedding[v * kWidth + i];
      logits[v] = 1.5 * std::tanh(logits[v] / 1.5);
    }
    expected += expected_cross_entropy(logits, static_cast<std::size_t>(kTokens[s])) / kText;
  }
  expect_loss(imported_outputs(
                  kin_config(R"("model_type": "gemma2", "architectures": ["Gemma2ForCausalLM"], "head_dim": 4,
      "final_logit_softcapping": 1.5)"),
                  drawn, inputs),
              expected);
}

}  // namespace
}  // namespace weft::imports
