// BERT: a bidirectional encoder with a norm after each half of a block (post-norm).
#include <fmt/format.h>

#include "weft/translate/imports/heads.h"

namespace weft::imports {
namespace {

struct Bert {
  std::int64_t features, layers, heads, inner, words, positions, kinds;
  std::string activation;
  double epsilon, range, dropout, attention_dropout;
  bool tied;
};

constexpr HeadClass kBertClasses[] = {{"BertForMaskedLM", Head::words},
                                      {"BertModel", Head::base},
                                      {"BertForPreTraining", Head::pretraining},
                                      {"BertForNextSentencePrediction", Head::next},
                                      {"BertForSequenceClassification", Head::sequence},
                                      {"BertForTokenClassification", Head::tokens},
                                      {"BertForQuestionAnswering", Head::question}};

bool finds_words(Head head) { return head == Head::words || head == Head::pretraining; }
bool judges_order(Head head) { return head == Head::next || head == Head::pretraining; }
bool pools(Head head) { return judges_order(head) || head == Head::base || head == Head::sequence; }

Result<Bert> read_bert(Request& request, Head head) {
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
  bool tied = true;
  if (finds_words(head)) {
    WEFT_TRY(read, config.truth_or("tie_word_embeddings", true));
    tied = read;
  }
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
                  "Every token attends to the tokens whose mask is 1.");
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

// The masked language modeling head.
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
  WEFT_TRY(head_class, head_of(request, kBertClasses));
  const Head head = head_class.head;
  WEFT_TRY(model, read_bert(request, head));
  Task task;
  if (head == Head::sequence || head == Head::tokens) {
    WEFT_TRY_STATUS(read_labels(request.config, head, task));
    WEFT_TRY(dropout, request.config.rate_or("classifier_dropout", model.dropout));
    task.dropout = dropout;
  }
  const LayerText block = bert_block(request.name, model);
  std::string inputs = "tokens[b, s] OF int32, segments[b, s] OF int32, mask[b, s] OF int32";
  if (finds_words(head)) inputs += ", targets[b, s] OF int32";
  if (judges_order(head)) inputs += ", follows[b] OF int32";
  if (head == Head::sequence) inputs += label_input(task);
  if (head == Head::tokens) inputs += ", labels[b, s] OF int32";
  if (head == Head::question) inputs += ", start_positions[b] OF int32, end_positions[b] OF int32";
  ModelText text(request.name, inputs,
                 fmt::format("BERT, as transformers' {} computes it.", head_class.name));
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
  if (finds_words(head)) body.size("w", model.features, "d");
  if (pools(head)) body.size("o", model.features, "d");
  if (judges_order(head)) body.size("orders", 2);
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
  if (finds_words(head)) add_words(body, model);
  if (pools(head)) {
    body.parameter("pool", {"d", "o"}, init, turned("bert.pooler.dense.weight"));
    body.parameter("pool_bias", {"o"}, "", same("bert.pooler.dense.bias"));
    body.with("first", "SELECT x FROM x WHERE s = 0");
    body.with("pooled",
              "SELECT tanh(sum(first * pool) + pool_bias) FROM first, pool, pool_bias GROUP BY b, o");
  }
  constexpr std::string_view kWordsLoss = "mean(cross_entropy(logits, targets) OVER (PARTITION BY b, s))";
  if (judges_order(head)) {
    body.parameter("order", {"o", "orders"}, init, turned("cls.seq_relationship.weight"));
    body.parameter("order_bias", {"orders"}, "", same("cls.seq_relationship.bias"));
    body.with("next",
              "SELECT sum(pooled * order) + order_bias FROM pooled, order, order_bias GROUP BY b, orders");
  }
  constexpr std::string_view kOrderLoss = "mean(cross_entropy(next, follows) OVER (PARTITION BY b))";
  if (head == Head::pretraining)
    body.select(
        fmt::format("SELECT {} + {} AS loss\nFROM logits, targets, next, follows", kWordsLoss, kOrderLoss));
  else if (head == Head::next)
    body.select(fmt::format("SELECT {} AS loss, next FROM next, follows", kOrderLoss));
  else if (head == Head::words)
    body.select(fmt::format("SELECT {} AS loss FROM logits, targets", kWordsLoss));
  else if (head == Head::sequence) {
    body.with("seen", fmt::format("SELECT {} FROM pooled", dropped("pooled", task.dropout)));
    add_label_head(body, task, "seen", "o", init, "classifier", true);
  } else if (head == Head::base)
    body.select("SELECT x AS hidden, pooled FROM x, pooled");
  else
    add_text_head(body, head, task, "x", init, "classifier");
  std::vector<std::string> notes;
  if (finds_words(head)) notes.push_back("targets are -100 at unmasked tokens, which are ignored");
  return finish(request, text, std::move(notes));
}

}  // namespace weft::imports
