// GPT-2: learned positions, a norm before each half of a block (pre-norm), tied embeddings.
#include <fmt/format.h>

#include "weft/translate/imports/heads.h"

namespace weft::imports {
namespace {

constexpr HeadClass kGpt2Classes[] = {{"GPT2LMHeadModel", Head::words},
                                      {"GPT2Model", Head::base},
                                      {"GPT2ForSequenceClassification", Head::sequence},
                                      {"GPT2ForTokenClassification", Head::tokens},
                                      {"GPT2ForQuestionAnswering", Head::question}};

struct Gpt2 {
  std::int64_t features, layers, heads, positions, words, inner;
  std::string activation;
  double epsilon, range, embedding_dropout, attention_dropout, dropout;
  bool tied, scaled;
};

Result<Gpt2> read_gpt2(Request& request, Head head) {
  Config& config = request.config;
  WEFT_TRY(features, config.size("n_embd"));
  WEFT_TRY(layers, config.size("n_layer"));
  WEFT_TRY(heads, config.size("n_head"));
  WEFT_TRY(words, config.size("vocab_size"));
  WEFT_TRY(positions, config.size_or("n_positions", 1024));
  WEFT_TRY_STATUS(expect_divides("n_head", heads, "n_embd", features));
  WEFT_TRY(inner, config.size_or("n_inner", 4 * features));
  WEFT_TRY(activation, activation_of(config, "activation_function", "gelu_new"));
  WEFT_TRY(epsilon, config.rate_or("layer_norm_epsilon", 1e-5));
  WEFT_TRY(range, config.rate_or("initializer_range", 0.02));
  WEFT_TRY(embedding_dropout, config.rate_or("embd_pdrop", 0.1));
  WEFT_TRY(attention_dropout, config.rate_or("attn_pdrop", 0.1));
  WEFT_TRY(dropout, config.rate_or("resid_pdrop", 0.1));
  bool tied = true;
  if (head == Head::words) {
    WEFT_TRY(read, config.truth_or("tie_word_embeddings", true));
    tied = read;
  }
  WEFT_TRY(scaled, config.truth_or("scale_attn_weights", true));
  return Gpt2{features,
              layers,
              heads,
              positions,
              words,
              inner,
              activation,
              epsilon,
              range,
              embedding_dropout,
              attention_dropout,
              dropout,
              tied,
              scaled};
}

// c_attn holds queries, keys and values side by side: [d, 3, h e].
Stored third(std::int64_t features, std::int64_t part, bool weight) {
  Stored stored = same(weight ? "attn.c_attn.weight" : "attn.c_attn.bias");
  stored.view =
      weight ? std::vector<std::int64_t>{features, 3, features} : std::vector<std::int64_t>{3, features};
  stored.axis = weight ? 1 : 0;
  stored.begin = part;
  stored.order = weight ? std::vector<std::size_t>{0, 1, 2} : std::vector<std::size_t>{0, 1};
  return stored;
}

LayerText gpt2_attention(const std::string& name, const Gpt2& model) {
  LayerText layer(name + "_attention", "x[b, s, d]", "Causal self-attention.");
  const std::string init = normal(model.range);
  layer.size("b", 1);
  layer.size("s", model.positions);
  layer.size("d", model.features);
  layer.size("h", model.heads);
  layer.size("e", model.features / model.heads, "d / h");
  layer.parameter("ln_gain", {"d"}, "ones", same("ln_1.weight"));
  layer.parameter("ln_bias", {"d"}, "", same("ln_1.bias"));
  constexpr const char* kParts[] = {"q", "k", "v"};
  for (std::int64_t i = 0; i < 3; ++i) {
    layer.parameter(fmt::format("w{}", kParts[i]), {"d", "h", "e"}, init, third(model.features, i, true));
    layer.parameter(fmt::format("b{}", kParts[i]), {"h", "e"}, "", third(model.features, i, false));
  }
  layer.parameter("wo", {"h", "e", "d"}, init, same("attn.c_proj.weight"));
  layer.parameter("bo", {"d"}, "", same("attn.c_proj.bias"));
  layer.with("n", fmt::format("SELECT {} FROM x, ln_gain, ln_bias",
                              layer_norm("x", model.epsilon, "b, s", "ln_gain", "ln_bias")));
  for (const char* part : kParts)
    layer.with(part, fmt::format("SELECT sum(n * w{0}) + b{0} FROM n, w{0}, b{0} GROUP BY b, h, s, e", part));
  layer.with("scores", fmt::format("SELECT sum(q * k){} FROM q, k[b, h, s AS t, e] GROUP BY b, h, s, t",
                                   model.scaled ? " / sqrt(e)" : ""));
  layer.with(
      "probs",
      "SELECT softmax(CASE WHEN t <= s THEN scores ELSE -inf END) OVER (PARTITION BY b, h, s) FROM scores");
  std::string probs = "probs";
  if (model.attention_dropout > 0) {
    layer.with("kept", fmt::format("SELECT {} FROM probs", dropped("probs", model.attention_dropout)));
    probs = "kept";
  }
  layer.with("ctx",
             fmt::format("SELECT sum({0} * v) FROM {0}, v[b, h, s AS t, e] GROUP BY b, h, s, e", probs));
  layer.select(fmt::format("SELECT x + {} FROM x, ctx, wo, bo GROUP BY b, s, d",
                           dropped("sum(ctx * wo) + bo", model.dropout)));
  return layer;
}

LayerText gpt2_mlp(const std::string& name, const Gpt2& model) {
  LayerText layer(name + "_mlp", "x[b, s, d]");
  const std::string init = normal(model.range);
  layer.size("b", 1);
  layer.size("s", model.positions);
  layer.size("d", model.features);
  layer.size("f", model.inner);
  layer.parameter("ln_gain", {"d"}, "ones", same("ln_2.weight"));
  layer.parameter("ln_bias", {"d"}, "", same("ln_2.bias"));
  layer.parameter("w1", {"d", "f"}, init, same("mlp.c_fc.weight"));
  layer.parameter("b1", {"f"}, "", same("mlp.c_fc.bias"));
  layer.parameter("w2", {"f", "d"}, init, same("mlp.c_proj.weight"));
  layer.parameter("b2", {"d"}, "", same("mlp.c_proj.bias"));
  layer.with("n", fmt::format("SELECT {} FROM x, ln_gain, ln_bias",
                              layer_norm("x", model.epsilon, "b, s", "ln_gain", "ln_bias")));
  layer.with("up",
             fmt::format("SELECT {}(sum(n * w1) + b1) FROM n, w1, b1 GROUP BY b, s, f", model.activation));
  layer.select(fmt::format("SELECT x + {} FROM x, up, w2, b2 GROUP BY b, s, d",
                           dropped("sum(up * w2) + b2", model.dropout)));
  return layer;
}

}  // namespace

Result<Imported> gpt2_of(Request request) {
  std::vector<std::string> notes;
  WEFT_TRY(head, head_of(request, kGpt2Classes));
  WEFT_TRY(model, read_gpt2(request, head.head));
  WEFT_TRY(task, read_task(request, head.head, {}, notes));
  const LayerText attention = gpt2_attention(request.name, model), mlp = gpt2_mlp(request.name, model);
  ModelText text(request.name, text_inputs(head.head, task),
                 fmt::format("GPT-2, as transformers' {} computes it.", head.name));
  text.layer(attention);
  text.layer(mlp);
  LayerText& body = text.body();
  body.size("b", 1);
  body.size("s", model.positions);
  body.size("d", model.features);
  body.size("h", model.heads);
  body.size("f", model.inner);
  body.size("layers", model.layers);
  body.size("v", model.words);
  body.size("p", model.positions);
  body.parameter("wte", {"v", "d"}, normal(model.range), same("wte.weight"));
  body.parameter("wpe", {"p", "d"}, normal(model.range), same("wpe.weight"));
  body.parameter("ln_gain", {"d"}, "ones", same("ln_f.weight"));
  body.parameter("ln_bias", {"d"}, "", same("ln_f.bias"));
  if (!model.tied) body.parameter("head", {"d", "v"}, normal(model.range), turned("lm_head.weight"));
  body.with("x", fmt::format("SELECT {} FROM tokens JOIN wte ON v = tokens JOIN wpe ON p = s",
                             dropped("wte + wpe", model.embedding_dropout)));
  body.with("x",
            fmt::format("\n    WITH a AS (SELECT * FROM {0}_attention(x, h = h) AS attention)\n"
                        "    SELECT * FROM {0}_mlp(a, f = f) AS mlp",
                        request.name),
            "REPEAT layers TIMES ");
  text.call(attention, "attention", "h.{}.", model.layers);
  text.call(mlp, "mlp", "h.{}.", model.layers);
  body.with("n", fmt::format("SELECT {} FROM x, ln_gain, ln_bias",
                             layer_norm("x", model.epsilon, "b, s", "ln_gain", "ln_bias")));
  if (head.head != Head::words) {
    add_text_head(body, head.head, task, "n", normal(model.range), "classifier");
    return finish(request, text, std::move(notes));
  }
  body.with("logits",
            fmt::format("SELECT sum(n * {0}) FROM n, {0} GROUP BY b, s, v", model.tied ? "wte" : "head"));
  body.select(
      "SELECT mean(cross_entropy(logits, targets) OVER (PARTITION BY b, s)) AS loss FROM logits, targets");
  return finish(request, text, std::move(notes));
}

}  // namespace weft::imports
