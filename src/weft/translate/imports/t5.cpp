// T5: an encoder and a decoder with bucketed relative position biases. T5ForConditionalGeneration,
// T5Model and T5EncoderModel, with relu or a gated activation.
#include <cmath>

#include <fmt/format.h>

#include "weft/translate/imports/heads.h"

namespace weft::imports {
namespace {

constexpr std::int64_t kT5Words = 512;
constexpr HeadClass kT5Classes[] = {
    {"T5ForConditionalGeneration", Head::words}, {"T5Model", Head::base}, {"T5EncoderModel", Head::encoder}};

struct T5 {
  std::int64_t features, head_size, inner, readers, writers, heads, words, buckets, distance;
  std::string activation;
  bool gated, tied;
  double epsilon, factor, dropout;

  std::string init(double fan) const { return fmt::format("normal(0, {:.4g})", factor / std::sqrt(fan)); }
};

Result<T5> read_t5(Request& request, Head head) {
  Config& config = request.config;
  WEFT_TRY(features, config.size("d_model"));
  WEFT_TRY(head_size, config.size("d_kv"));
  WEFT_TRY(inner, config.size("d_ff"));
  WEFT_TRY(readers, config.size("num_layers"));
  std::int64_t writers = readers;
  if (head != Head::encoder) {
    WEFT_TRY(read, config.size_or("num_decoder_layers", readers));
    writers = read;
  }
  WEFT_TRY(heads, config.size("num_heads"));
  WEFT_TRY(words, config.size("vocab_size"));
  WEFT_TRY(buckets, config.size_or("relative_attention_num_buckets", 32));
  WEFT_TRY(distance, config.size_or("relative_attention_max_distance", 128));
  if (buckets % 4 != 0)
    return user_error(
        fmt::format("relative_attention_num_buckets: expected a multiple of 4, found {}", buckets));
  if (distance <= buckets / 2)
    return user_error(
        fmt::format("relative_attention_max_distance: expected more than half of the {} buckets, found {}",
                    buckets, distance));
  WEFT_TRY(epsilon, config.rate_or("layer_norm_epsilon", 1e-6));
  WEFT_TRY(factor, config.number_or("initializer_factor", 1));
  if (!(factor > 1e-9 && factor < 1e9))
    return user_error(
        fmt::format("initializer_factor: expected a number from 1e-9 to 1e9, found {}", factor));
  WEFT_TRY(dropout, config.rate_or("dropout_rate", 0.1));
  bool tied = true;
  if (head == Head::words) {
    WEFT_TRY(read, config.truth_or("tie_word_embeddings", true));
    tied = read;
  }
  WEFT_TRY(forward, config.word_or("feed_forward_proj", "relu"));
  const bool gated = forward.starts_with("gated-");
  std::string activation = gated ? forward.substr(6) : forward;
  if (forward == "gated-gelu" || activation == "gelu_new")
    activation = "gelu_tanh";
  else if (activation != "relu" && activation != "gelu" && activation != "silu")
    return user_error(fmt::format("feed_forward_proj: unknown activation '{}'", forward),
                      "known are relu, gelu, silu and gated-relu, gated-gelu, gated-silu");
  return T5{features, head_size,  inner, readers, writers, heads,  words,  buckets,
            distance, activation, gated, tied,    epsilon, factor, dropout};
}

std::string t5_norm(std::string_view x, const T5& model, std::string_view gain = "norm_gain") {
  return rms_norm(x, model.epsilon, gain);
}

void add_t5_sizes(LayerText& layer, const T5& model) {
  layer.size("b", 1);
  layer.size("s", kT5Words);
  layer.size("d", model.features);
}

// `across`: cross-attention, with keys and values from the encoder output m[b, t, d].
LayerText t5_attention(const std::string& name, const T5& model, bool across) {
  LayerText layer(name + (across ? "_cross_attention" : "_attention"),
                  across ? "x[b, s, d], m[b, t, d]" : "x[b, s, d], bias[h, s, t]",
                  across ? "Cross-attention to the encoder."
                         : "Self-attention; the scale sqrt(e) is folded into the initial values.");
  add_t5_sizes(layer, model);
  layer.size("t", kT5Words, across ? "" : "s");
  layer.size("h", model.heads);
  layer.size("e", model.head_size);
  const auto features = static_cast<double>(model.features), size = static_cast<double>(model.head_size);
  const std::string module = across ? "layer.1.EncDecAttention" : "layer.0.SelfAttention";
  layer.parameter("norm_gain", {"d"}, "ones",
                  same(across ? "layer.1.layer_norm.weight" : "layer.0.layer_norm.weight"));
  layer.parameter("wq", {"d", "h", "e"}, model.init(features * size), turned(module + ".q.weight"));
  layer.parameter("wk", {"d", "h", "e"}, model.init(features), turned(module + ".k.weight"));
  layer.parameter("wv", {"d", "h", "e"}, model.init(features), turned(module + ".v.weight"));
  layer.parameter("wo", {"h", "e", "d"}, model.init(static_cast<double>(model.heads) * size),
                  turned(module + ".o.weight", 2));
  layer.with("n", fmt::format("SELECT {} FROM x, norm_gain", t5_norm("x", model)));
  layer.with("q", "SELECT sum(n * wq) FROM n, wq GROUP BY b, h, s, e");
  const std::string keys = across ? "m" : "n", along = across ? "t" : "s";
  layer.with("k", fmt::format("SELECT sum({0} * wk) FROM {0}, wk GROUP BY b, h, {1}, e", keys, along));
  layer.with("v", fmt::format("SELECT sum({0} * wv) FROM {0}, wv GROUP BY b, h, {1}, e", keys, along));
  const std::string view = across ? "" : "[b, h, s AS t, e]";
  layer.with("scores", fmt::format("SELECT sum(q * k) FROM q, k{} GROUP BY b, h, s, t", view));
  layer.with("probs", fmt::format("SELECT {} FROM scores{}",
                                  dropped(across ? "softmax(scores) OVER (PARTITION BY b, h, s)"
                                                 : "softmax(scores + bias) OVER (PARTITION BY b, h, s)",
                                          model.dropout),
                                  across ? "" : ", bias"));
  layer.with("ctx", fmt::format("SELECT sum(probs * v) FROM probs, v{} GROUP BY b, h, s, e", view));
  layer.select(
      fmt::format("SELECT x + {} FROM x, ctx, wo GROUP BY b, s, d", dropped("sum(ctx * wo)", model.dropout)));
  return layer;
}

LayerText t5_mlp(const std::string& name, const T5& model, const std::string& place) {
  LayerText layer(name + "_mlp", "x[b, s, d]");
  add_t5_sizes(layer, model);
  layer.size("f", model.inner);
  const auto features = static_cast<double>(model.features);
  const std::string module = place + ".DenseReluDense.";
  layer.parameter("norm_gain", {"d"}, "ones", same(place + ".layer_norm.weight"));
  if (model.gated) layer.parameter("gate", {"d", "f"}, model.init(features), turned(module + "wi_0.weight"));
  layer.parameter("w1", {"d", "f"}, model.init(features),
                  turned(module + (model.gated ? "wi_1.weight" : "wi.weight")));
  layer.parameter("w2", {"f", "d"}, model.init(static_cast<double>(model.inner)),
                  turned(module + "wo.weight"));
  layer.with("n", fmt::format("SELECT {} FROM x, norm_gain", t5_norm("x", model)));
  const std::string up = model.gated ? fmt::format("{}(sum(n * gate)) * sum(n * w1)", model.activation)
                                     : fmt::format("{}(sum(n * w1))", model.activation);
  layer.with("up", fmt::format("SELECT {} FROM n, {}w1 GROUP BY b, s, f", dropped(up, model.dropout),
                               model.gated ? "gate, " : ""));
  layer.select(
      fmt::format("SELECT x + {} FROM x, up, w2 GROUP BY b, s, d", dropped("sum(up * w2)", model.dropout)));
  return layer;
}

// Exact distances first, then logarithmic buckets.
std::string bucket_of(std::string_view far, std::int64_t buckets, std::int64_t distance) {
  const std::int64_t exact = buckets / 2;
  return fmt::format(
      "CASE WHEN {0} < {1} THEN {0} ELSE least({2}, {1} + CAST(log(greatest({0}, {1}) / {1}) / "
      "log({3}) * {4} AS int32)) END",
      far, exact, buckets - 1, static_cast<double>(distance) / static_cast<double>(exact), buckets - exact);
}

LayerText t5_distances(const std::string& name, const T5& model, bool both_ways) {
  LayerText layer(name + (both_ways ? "_both_ways" : "_backwards"), "x[b, s, d]",
                  both_ways ? "Half of the buckets are for preceding positions, half for following ones."
                            : "All buckets are for preceding positions; following ones are masked.");
  add_t5_sizes(layer, model);
  layer.size("h", model.heads);
  layer.size("u", model.buckets);
  layer.parameter("weight", {"u", "h"}, model.init(static_cast<double>(model.features)),
                  same("relative_attention_bias.weight"));
  const std::int64_t half = model.buckets / 2;
  if (both_ways) {
    layer.with("far", "SELECT abs(t - s) FROM x, x[b, s AS t, d] AS y GROUP BY s, t");
    layer.with("near", fmt::format("SELECT {} FROM far", bucket_of("far", half, model.distance)));
    layer.with(
        "bucket",
        fmt::format("SELECT CASE WHEN t > s THEN near + {} ELSE near END FROM near GROUP BY s, t", half));
    layer.select("SELECT weight FROM bucket JOIN weight ON u = bucket GROUP BY h, s, t");
  } else {
    layer.with("far", "SELECT greatest(s - t, 0) FROM x, x[b, s AS t, d] AS y GROUP BY s, t");
    layer.with("bucket", fmt::format("SELECT {} FROM far", bucket_of("far", model.buckets, model.distance)));
    layer.select(
        "SELECT CASE WHEN t <= s THEN weight ELSE -inf END FROM bucket JOIN weight ON u = bucket GROUP BY h, "
        "s, t");
  }
  return layer;
}

// The encoder: m[b, s, d] of `source`.
void add_reader(ModelText& text, const std::string& name, const T5& model, const std::string& layers) {
  const LayerText self = t5_attention(name, model, false), mlp = t5_mlp(name, model, "layer.1");
  const LayerText both = t5_distances(name, model, true);
  LayerText& body = text.body();
  body.with("m", fmt::format("SELECT {} FROM source[b, r AS s] JOIN embed ON v = source",
                             dropped("embed", model.dropout)));
  body.with("both", fmt::format("SELECT * FROM {}_both_ways(m, h = h) AS reading", name));
  body.with("m",
            fmt::format("\n    WITH a AS (SELECT * FROM {0}_attention(m, both, e = e) AS read_self)\n"
                        "    SELECT * FROM {0}_mlp(a, f = f) AS read_mlp",
                        name),
            fmt::format("REPEAT {} TIMES ", layers));
  body.with("m", fmt::format("SELECT {} FROM m, read_gain",
                             dropped(t5_norm("m", model, "read_gain"), model.dropout)));
  text.call(both, "reading", "encoder.block.0.layer.0.SelfAttention.", 0);
  text.call(self, "read_self", "encoder.block.{}.", model.readers);
  text.call(mlp, "read_mlp", "encoder.block.{}.", model.readers);
}

// The decoder: n[b, s, d] of `tokens` and m.
void add_writer(ModelText& text, const std::string& name, const T5& model, const std::string& layers) {
  const LayerText self = t5_attention(name, model, false), cross = t5_attention(name, model, true);
  const LayerText mlp = t5_mlp(name, model, "layer.2"), back = t5_distances(name, model, false);
  LayerText& body = text.body();
  body.with("x",
            fmt::format("SELECT {} FROM tokens JOIN embed ON v = tokens", dropped("embed", model.dropout)));
  body.with("back", fmt::format("SELECT * FROM {}_backwards(x, h = h) AS writing", name));
  body.with("x",
            fmt::format("\n    WITH a AS (SELECT * FROM {0}_attention(x, back, e = e) AS write_self),\n"
                        "         c AS (SELECT * FROM {0}_cross_attention(a, m[b, s AS t, d], h = h, e = e) "
                        "AS write_cross)\n"
                        "    SELECT * FROM {0}_mlp(c, f = f) AS write_mlp",
                        name),
            fmt::format("REPEAT {} TIMES ", layers));
  text.call(back, "writing", "decoder.block.0.layer.0.SelfAttention.", 0);
  text.call(self, "write_self", "decoder.block.{}.", model.writers);
  text.call(cross, "write_cross", "decoder.block.{}.", model.writers);
  text.call(mlp, "write_mlp", "decoder.block.{}.", model.writers);
  body.with("n", fmt::format("SELECT {} FROM x, write_gain",
                             dropped(t5_norm("x", model, "write_gain"), model.dropout)));
}

}  // namespace

Result<Imported> t5_of(Request request) {
  WEFT_TRY(head, head_of(request, kT5Classes));
  WEFT_TRY(model, read_t5(request, head.head));
  const std::string& name = request.name;
  const bool writes = head.head != Head::encoder, words = head.head == Head::words;
  ModelText text(name,
                 fmt::format("source[b, r] OF int32{}{}", writes ? ", tokens[b, s] OF int32" : "",
                             words ? ", targets[b, s] OF int32" : ""),
                 fmt::format("T5, as transformers' {} computes it.", head.name));
  text.layer(t5_attention(name, model, false));
  if (writes) text.layer(t5_attention(name, model, true));
  text.layer(t5_mlp(name, model, "layer.1"));
  text.layer(t5_distances(name, model, true));
  if (writes) text.layer(t5_distances(name, model, false));
  LayerText& body = text.body();
  body.size("b", 1);
  body.size("r", kT5Words);
  if (writes) body.size("s", kT5Words);
  body.size("d", model.features);
  body.size("h", model.heads);
  body.size("e", model.head_size);
  body.size("f", model.inner);
  const bool alike = model.readers == model.writers;
  body.size(alike ? "layers" : "readers", model.readers);
  if (!alike) body.size("writers", model.writers);
  body.size("v", model.words);
  body.parameter("embed", {"v", "d"}, fmt::format("normal(0, {:.4g})", model.factor), same("shared.weight"));
  body.parameter("read_gain", {"d"}, "ones", same("encoder.final_layer_norm.weight"));
  if (writes) body.parameter("write_gain", {"d"}, "ones", same("decoder.final_layer_norm.weight"));
  if (!model.tied)
    body.parameter("head", {"d", "v"}, fmt::format("normal(0, {:.4g})", model.factor),
                   turned("lm_head.weight"));
  add_reader(text, name, model, alike ? "layers" : "readers");
  if (!writes) {
    body.select("SELECT m AS heard FROM m");
    return finish(request, text, {});
  }
  add_writer(text, name, model, alike ? "layers" : "writers");
  if (words) {
    body.with("logits", model.tied ? "SELECT sum(n * embed) / sqrt(d) FROM n, embed GROUP BY b, s, v"
                                   : "SELECT sum(n * head) FROM n, head GROUP BY b, s, v");
    body.select(
        "SELECT mean(cross_entropy(logits, targets) OVER (PARTITION BY b, s)) AS loss FROM logits, targets");
  } else {
    body.select("SELECT n AS hidden, m AS heard FROM n, m[b, s AS r, d]");
  }
  return finish(request, text, {"tokens are the target text, shifted right by one"});
}

}  // namespace weft::imports
