// BERT: an encoder that attends both ways, norms after each half of a block. BertModel, BertForMaskedLM,
// BertForPreTraining and BertForSequenceClassification.
#include <fmt/format.h>

#include "weft/base/nearest.h"
#include "weft/imports/architectures.h"

namespace weft::imports {
namespace {

struct Bert {
  std::int64_t features, layers, heads, inner, words, positions, kinds;
  std::string activation;
  double epsilon, range, dropout, attention_dropout;
  bool tied;
};

struct BertHead {
  bool pooler, words, order, classifier;
};

Result<BertHead> bert_head(const std::string& name) {
  if (name.empty() || name == "BertForMaskedLM") return BertHead{false, true, false, false};
  if (name == "BertModel") return BertHead{true, false, false, false};
  if (name == "BertForPreTraining") return BertHead{true, true, true, false};
  if (name == "BertForSequenceClassification") return BertHead{true, false, false, true};
  constexpr std::string_view kKnown[] = {"BertModel", "BertForMaskedLM", "BertForPreTraining",
                                         "BertForSequenceClassification"};
  const std::string hint = did_you_mean(name, kKnown);
  return user_error(fmt::format("architectures[0]: unknown class '{}'", name),
                    hint.empty() ? fmt::format("known are {}", fmt::join(kKnown, ", ")) : hint);
}

Result<Bert> read_bert(Request& request) {
  Config& config = request.config;
  WEFT_TRY(features, config.size("hidden_size"));
  WEFT_TRY(layers, config.size("num_hidden_layers"));
  WEFT_TRY(heads, config.size("num_attention_heads"));
  WEFT_TRY(inner, config.size("intermediate_size"));
  WEFT_TRY(words, config.size("vocab_size"));
  WEFT_TRY(positions, config.size_or("max_position_embeddings", 512));
  WEFT_TRY(kinds, config.size_or("type_vocab_size", 2));
  WEFT_TRY_STATUS(expect_divides("num_attention_heads", heads, "hidden_size", features));
  WEFT_TRY(activation, activation_of(config, "hidden_act", "gelu"));
  WEFT_TRY(epsilon, config.rate_or("layer_norm_eps", 1e-12));
  WEFT_TRY(range, config.rate_or("initializer_range", 0.02));
  WEFT_TRY(dropout, config.rate_or("hidden_dropout_prob", 0.1));
  WEFT_TRY(attention_dropout, config.rate_or("attention_probs_dropout_prob", 0.1));
  WEFT_TRY(tied, config.truth_or("tie_word_embeddings", true));
  WEFT_TRY_STATUS(config.expect_word("position_embedding_type", "absolute"));
  WEFT_TRY_STATUS(config.expect("is_decoder", false));
  WEFT_TRY_STATUS(config.expect("add_cross_attention", false));
  // Old savers wrote the pooler's shape, which never was another.
  config.ignore({"directionality", "pooler_fc_size", "pooler_num_attention_heads", "pooler_num_fc_layers",
                 "pooler_size_per_head", "pooler_type", "classifier_dropout"});
  return Bert{features, layers,     heads,   inner, words,   positions,
              kinds,    activation, epsilon, range, dropout, attention_dropout,
              tied};
}

std::string bert_norm(std::string_view x, const Bert& model, std::string_view name,
                      std::string_view partition = "b, s") {
  return layer_norm(x, model.epsilon, partition, fmt::format("{}_gain", name), fmt::format("{}_bias", name));
}

LayerText bert_block(const std::string& name, const Bert& model) {
  LayerText layer(name + "_block", "x[b, s, d], mask[b, s] OF int32",
                  "Every word sees those whose mask is 1.");
  const std::string init = normal(model.range);
  layer.size("b", 1);
  layer.size("s", model.positions);
  layer.size("d", model.features);
  layer.size("h", model.heads);
  layer.size("e", model.features / model.heads, "d / h");
  layer.size("f", model.inner);
  constexpr std::pair<const char*, const char*> kParts[] = {{"q", "query"}, {"k", "key"}, {"v", "value"}};
  for (const auto& [part, tensor] : kParts) {
    layer.parameter(fmt::format("w{}", part), {"d", "h", "e"}, init,
                    turned(fmt::format("attention.self.{}.weight", tensor)));
    layer.parameter(fmt::format("b{}", part), {"h", "e"}, "",
                    same(fmt::format("attention.self.{}.bias", tensor)));
  }
  layer.parameter("wo", {"h", "e", "d"}, init, turned("attention.output.dense.weight", 2));
  layer.parameter("bo", {"d"}, "", same("attention.output.dense.bias"));
  layer.parameter("ln1_gain", {"d"}, "ones", same("attention.output.LayerNorm.weight"));
  layer.parameter("ln1_bias", {"d"}, "", same("attention.output.LayerNorm.bias"));
  layer.parameter("w1", {"d", "f"}, init, turned("intermediate.dense.weight"));
  layer.parameter("b1", {"f"}, "", same("intermediate.dense.bias"));
  layer.parameter("w2", {"f", "d"}, init, turned("output.dense.weight"));
  layer.parameter("b2", {"d"}, "", same("output.dense.bias"));
  layer.parameter("ln2_gain", {"d"}, "ones", same("output.LayerNorm.weight"));
  layer.parameter("ln2_bias", {"d"}, "", same("output.LayerNorm.bias"));
  for (const auto& [part, tensor] : kParts)
    layer.with(part, fmt::format("SELECT sum(x * w{0}) + b{0} FROM x, w{0}, b{0} GROUP BY b, h, s, e", part));
  layer.with("scores", "SELECT sum(q * k) / sqrt(e) FROM q, k[b, h, s AS t, e] GROUP BY b, h, s, t");
  layer.with("probs",
             "SELECT softmax(CASE WHEN mask > 0 THEN scores ELSE -inf END) OVER (PARTITION BY b, h, s) "
             "FROM scores, mask[b, s AS t]");
  std::string probs = "probs";
  if (model.attention_dropout > 0) {
    layer.with("kept", fmt::format("SELECT {} FROM probs", dropped("probs", model.attention_dropout)));
    probs = "kept";
  }
  layer.with("ctx",
             fmt::format("SELECT sum({0} * v) FROM {0}, v[b, h, s AS t, e] GROUP BY b, h, s, e", probs));
  layer.with("a", fmt::format("SELECT x + {} FROM x, ctx, wo, bo GROUP BY b, s, d",
                              dropped("sum(ctx * wo) + bo", model.dropout)));
  layer.with("n", fmt::format("SELECT {} FROM a, ln1_gain, ln1_bias", bert_norm("a", model, "ln1")));
  layer.with("up",
             fmt::format("SELECT {}(sum(n * w1) + b1) FROM n, w1, b1 GROUP BY b, s, f", model.activation));
  layer.with("m", fmt::format("SELECT n + {} FROM n, up, w2, b2 GROUP BY b, s, d",
                              dropped("sum(up * w2) + b2", model.dropout)));
  layer.select(fmt::format("SELECT {} FROM m, ln2_gain, ln2_bias", bert_norm("m", model, "ln2")));
  return layer;
}

// Words that were hidden are to be found again.
void add_words(LayerText& body, const Bert& model) {
  const std::string init = normal(model.range);
  body.parameter("transform", {"d", "w"}, init, turned("cls.predictions.transform.dense.weight"));
  body.parameter("transform_bias", {"w"}, "", same("cls.predictions.transform.dense.bias"));
  body.parameter("words_gain", {"w"}, "ones", same("cls.predictions.transform.LayerNorm.weight"));
  body.parameter("words_bias", {"w"}, "", same("cls.predictions.transform.LayerNorm.bias"));
  if (!model.tied) body.parameter("head", {"v", "d"}, init, same("cls.predictions.decoder.weight"));
  body.parameter("head_bias", {"v"}, "", same("cls.predictions.bias"));
  body.with("turned",
            fmt::format("SELECT {}(sum(x * transform) + transform_bias) FROM x, transform, transform_bias "
                        "GROUP BY b, s, w",
                        model.activation));
  body.with("normed", fmt::format("SELECT {} FROM turned, words_gain, words_bias",
                                  bert_norm("turned", model, "words")));
  body.with("logits",
            fmt::format("SELECT sum(normed * {0}) + head_bias FROM normed[b, s, w AS d], {0}, head_bias "
                        "GROUP BY b, s, v",
                        model.tied ? "word" : "head"));
}

}  // namespace

Result<Imported> bert_of(Request request) {
  WEFT_TRY(model, read_bert(request));
  WEFT_TRY(head, bert_head(request.head));
  std::int64_t labels = 0;
  if (head.classifier) {
    WEFT_TRY(found, labels_of(request.config));
    labels = found;
    if (labels < 2) return user_error("id2label: expected two labels or more, found one: a regression");
  }
  const LayerText block = bert_block(request.name, model);
  std::string inputs = "tokens[b, s] OF int32, segments[b, s] OF int32, mask[b, s] OF int32";
  if (head.words) inputs += ", targets[b, s] OF int32";
  if (head.order) inputs += ", follows[b] OF int32";
  if (head.classifier) inputs += ", label[b] OF int32";
  ModelText text(request.name, inputs,
                 fmt::format("BERT, as transformers' {} computes it.",
                             request.head.empty() ? "BertForMaskedLM" : request.head));
  text.layer(block);
  LayerText& body = text.body();
  const std::string init = normal(model.range);
  body.size("b", 1);
  body.size("s", model.positions);
  body.size("d", model.features);
  body.size("h", model.heads);
  body.size("f", model.inner);
  body.size("layers", model.layers);
  body.size("v", model.words);
  body.size("p", model.positions);
  body.size("kinds", model.kinds);
  if (head.words) body.size("w", model.features, "d");
  if (head.pooler) body.size("o", model.features, "d");
  if (head.order) body.size("orders", 2);
  if (head.classifier) body.size("classes", labels);
  body.parameter("word", {"v", "d"}, init, same("bert.embeddings.word_embeddings.weight"));
  body.parameter("place", {"p", "d"}, init, same("bert.embeddings.position_embeddings.weight"));
  body.parameter("segment", {"kinds", "d"}, init, same("bert.embeddings.token_type_embeddings.weight"));
  body.parameter("ln_gain", {"d"}, "ones", same("bert.embeddings.LayerNorm.weight"));
  body.parameter("ln_bias", {"d"}, "", same("bert.embeddings.LayerNorm.bias"));
  body.with("summed",
            "SELECT word + place + segment FROM tokens, segments "
            "JOIN word ON v = tokens JOIN place ON p = s JOIN segment ON kinds = segments");
  body.with("x", fmt::format("SELECT {} FROM summed, ln_gain, ln_bias",
                             dropped(bert_norm("summed", model, "ln"), model.dropout)));
  body.with("x", fmt::format("SELECT * FROM {}_block(x, mask, h = h, f = f) AS block", request.name),
            "REPEAT layers TIMES ");
  text.call(block, "block", "bert.encoder.layer.{}.", model.layers);
  if (head.words) add_words(body, model);
  if (head.pooler) {
    body.parameter("pool", {"d", "o"}, init, turned("bert.pooler.dense.weight"));
    body.parameter("pool_bias", {"o"}, "", same("bert.pooler.dense.bias"));
    body.with("first", "SELECT x FROM x WHERE s = 0");
    body.with("pooled",
              "SELECT tanh(sum(first * pool) + pool_bias) FROM first, pool, pool_bias GROUP BY b, o");
  }
  constexpr std::string_view kWordsLoss = "mean(cross_entropy(logits, targets) OVER (PARTITION BY b, s))";
  if (head.order) {
    body.parameter("order", {"o", "orders"}, init, turned("cls.seq_relationship.weight"));
    body.parameter("order_bias", {"orders"}, "", same("cls.seq_relationship.bias"));
    body.with("next",
              "SELECT sum(pooled * order) + order_bias FROM pooled, order, order_bias GROUP BY b, orders");
    body.select(
        fmt::format("SELECT {} + mean(cross_entropy(next, follows) OVER (PARTITION BY b)) AS loss\n"
                    "FROM logits, targets, next, follows",
                    kWordsLoss));
  } else if (head.words) {
    body.select(fmt::format("SELECT {} AS loss FROM logits, targets", kWordsLoss));
  } else if (head.classifier) {
    body.parameter("class", {"o", "classes"}, init, turned("classifier.weight"));
    body.parameter("class_bias", {"classes"}, "", same("classifier.bias"));
    body.with("seen", fmt::format("SELECT {} FROM pooled", dropped("pooled", model.dropout)));
    body.with("logits",
              "SELECT sum(seen * class) + class_bias FROM seen, class, class_bias GROUP BY b, classes");
    body.select(
        "SELECT mean(cross_entropy(logits, label) OVER (PARTITION BY b)) AS loss, logits FROM logits, label");
  } else {
    body.select("SELECT x AS hidden, pooled FROM x, pooled");
  }
  std::vector<std::string> notes;
  if (head.words) notes.push_back("targets are -100 where no word was hidden: such words count for nothing");
  return finish(request, text, std::move(notes));
}

}  // namespace weft::imports
