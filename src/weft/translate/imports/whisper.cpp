// Whisper: an audio encoder and a text decoder. WhisperForConditionalGeneration, WhisperModel,
// WhisperForAudioClassification and WhisperEncoder. The last two have only the encoder.
#include <fmt/format.h>

#include "weft/translate/imports/heads.h"

namespace weft::imports {
namespace {

constexpr HeadClass kWhisperClasses[] = {{"WhisperForConditionalGeneration", Head::words},
                                         {"WhisperModel", Head::base},
                                         {"WhisperForAudioClassification", Head::sequence},
                                         {"WhisperEncoder", Head::encoder}};
constexpr double kWhisperEpsilon = 1e-5;  // fixed in the class, for its norms

struct Half {
  std::int64_t layers = 0, heads = 0, inner = 0, positions = 0;
};

struct Whisper {
  std::int64_t features = 0, bins = 0, words = 0, projected = 0;
  Half encoder = {}, decoder = {};
  std::string activation = {};
  double range = 0.02, dropout = 0, attention_dropout = 0, activation_dropout = 0;
  bool writes = false;  // has a decoder
};

Result<Half> read_half(Config& config, bool writes, std::int64_t features) {
  const char* heads_key = writes ? "decoder_attention_heads" : "encoder_attention_heads";
  WEFT_TRY(layers, config.size(writes ? "decoder_layers" : "encoder_layers"));
  WEFT_TRY(heads, config.size(heads_key));
  WEFT_TRY(inner, config.size(writes ? "decoder_ffn_dim" : "encoder_ffn_dim"));
  WEFT_TRY(positions,
           config.size_or(writes ? "max_target_positions" : "max_source_positions", writes ? 448 : 1500));
  WEFT_TRY_STATUS(expect_divides(heads_key, heads, "d_model", features));
  return Half{layers, heads, inner, positions};
}

Result<Whisper> read_whisper(Request& request, Head head) {
  Config& config = request.config;
  Whisper model;
  model.writes = head == Head::words || head == Head::base;
  WEFT_TRY(features, config.size("d_model"));
  WEFT_TRY(bins, config.size_or("num_mel_bins", 80));
  WEFT_TRY(encoder, read_half(config, false, features));
  if (model.writes) {
    WEFT_TRY(decoder, read_half(config, true, features));
    WEFT_TRY(words, config.size("vocab_size"));
    model.decoder = decoder;
    model.words = words;
  }
  if (head == Head::sequence) {
    WEFT_TRY(projected, config.size_or("classifier_proj_size", 256));
    model.projected = projected;
  }
  WEFT_TRY(activation, activation_of(config, "activation_function", "gelu"));
  WEFT_TRY(range, config.rate_or("init_std", 0.02));
  WEFT_TRY(dropout, config.rate_or("dropout", 0));
  WEFT_TRY(attention_dropout, config.rate_or("attention_dropout", 0));
  WEFT_TRY(activation_dropout, config.rate_or("activation_dropout", 0));
  model.features = features;
  model.bins = bins;
  model.encoder = encoder;
  model.activation = activation;
  model.range = range;
  model.dropout = dropout;
  model.attention_dropout = attention_dropout;
  model.activation_dropout = activation_dropout;
  return model;
}

std::string whisper_norm(std::string_view x, std::string_view name) {
  return fmt::format(
      "SELECT {} FROM {}, {}_gain, {}_bias",
      layer_norm(x, kWhisperEpsilon, "b, s", fmt::format("{}_gain", name), fmt::format("{}_bias", name)), x,
      name, name);
}

void add_whisper_norm(LayerText& layer, const std::string& name, const std::string& tensor) {
  layer.parameter(name + "_gain", {"d"}, "ones", same(tensor + ".weight"));
  layer.parameter(name + "_bias", {"d"}, "", same(tensor + ".bias"));
}

enum class Sight : std::uint8_t { all, before, across };

LayerText whisper_attention(const std::string& name, const Whisper& model, const Half& half, Sight sight) {
  const bool across = sight == Sight::across;
  LayerText layer(name, across ? "x[b, s, d], m[b, t, d]" : "x[b, s, d]",
                  across                   ? "Cross-attention to the encoder."
                  : sight == Sight::before ? "Causal self-attention."
                                           : "Self-attention of the encoder.");
  const std::string init = normal(model.range);
  const std::string module = across ? "encoder_attn" : "self_attn";
  layer.size("b", 1);
  layer.size("s", half.positions);
  if (across) layer.size("t", model.encoder.positions);
  layer.size("d", model.features);
  layer.size("h", half.heads);
  layer.size("e", model.features / half.heads, "d / h");
  add_whisper_norm(layer, "ln", module + "_layer_norm");
  for (const char* part : {"q", "k", "v"}) {
    layer.parameter(fmt::format("w{}", part), {"d", "h", "e"}, init,
                    turned(fmt::format("{}.{}_proj.weight", module, part)));
    if (part[0] != 'k')
      layer.parameter(fmt::format("b{}", part), {"h", "e"}, "",
                      same(fmt::format("{}.{}_proj.bias", module, part)));
  }
  layer.parameter("wo", {"h", "e", "d"}, init, turned(module + ".out_proj.weight", 2));
  layer.parameter("bo", {"d"}, "", same(module + ".out_proj.bias"));
  layer.with("n", whisper_norm("x", "ln"));
  const std::string keys = across ? "m" : "n", along = across ? "t" : "s",
                    view = across ? "" : "[b, h, s AS t, e]";
  layer.with("q", "SELECT sum(n * wq) + bq FROM n, wq, bq GROUP BY b, h, s, e");
  layer.with("k", fmt::format("SELECT sum({0} * wk) FROM {0}, wk GROUP BY b, h, {1}, e", keys, along));
  layer.with("v",
             fmt::format("SELECT sum({0} * wv) + bv FROM {0}, wv, bv GROUP BY b, h, {1}, e", keys, along));
  layer.with("scores", fmt::format("SELECT sum(q * k) / sqrt(e) FROM q, k{} GROUP BY b, h, s, t", view));
  layer.with("probs", fmt::format("SELECT {} FROM scores",
                                  dropped(fmt::format("softmax({}) OVER (PARTITION BY b, h, s)",
                                                      sight == Sight::before
                                                          ? "CASE WHEN t <= s THEN scores ELSE -inf END"
                                                          : "scores"),
                                          model.attention_dropout)));
  layer.with("ctx", fmt::format("SELECT sum(probs * v) FROM probs, v{} GROUP BY b, h, s, e", view));
  layer.select(fmt::format("SELECT x + {} FROM x, ctx, wo, bo GROUP BY b, s, d",
                           dropped("(sum(ctx * wo) + bo)", model.dropout)));
  return layer;
}

LayerText whisper_mlp(const std::string& name, const Whisper& model, const Half& half) {
  LayerText layer(name, "x[b, s, d]");
  const std::string init = normal(model.range);
  layer.size("b", 1);
  layer.size("s", half.positions);
  layer.size("d", model.features);
  layer.size("f", half.inner);
  add_whisper_norm(layer, "ln", "final_layer_norm");
  layer.parameter("w1", {"d", "f"}, init, turned("fc1.weight"));
  layer.parameter("b1", {"f"}, "", same("fc1.bias"));
  layer.parameter("w2", {"f", "d"}, init, turned("fc2.weight"));
  layer.parameter("b2", {"d"}, "", same("fc2.bias"));
  layer.with("n", whisper_norm("x", "ln"));
  layer.with("up", fmt::format("SELECT {} FROM n, w1, b1 GROUP BY b, s, f",
                               dropped(model.activation + "(sum(n * w1) + b1)", model.activation_dropout)));
  layer.select(fmt::format("SELECT x + {} FROM x, up, w2, b2 GROUP BY b, s, d",
                           dropped("(sum(up * w2) + b2)", model.dropout)));
  return layer;
}

// The encoder: from the spectrogram to m[b, t, d], with one position per two frames.
void add_encoder(ModelText& text, const std::string& name, const Whisper& model, const std::string& prefix) {
  LayerText& body = text.body();
  const std::string init = normal(model.range);
  const LayerText attention = whisper_attention(name + "_listen", model, model.encoder, Sight::all);
  const LayerText mlp = whisper_mlp(name + "_listen_mlp", model, model.encoder);
  text.layer(attention);
  text.layer(mlp);
  body.size("t", model.encoder.positions);
  body.size("frames", 2 * model.encoder.positions, "2 * t");
  body.size("bins", model.bins);
  body.size("kernel", 3);
  body.size("d", model.features);
  body.size("c", model.features, "d");
  body.size("h", model.encoder.heads);
  body.size("f", model.encoder.inner);
  body.size("encoder_layers", model.encoder.layers);
  body.parameter("conv1", {"c", "bins", "kernel"}, init, same(prefix + "conv1.weight"));
  body.parameter("conv1_bias", {"c"}, "", same(prefix + "conv1.bias"));
  body.parameter("conv2", {"d", "c", "kernel"}, init, same(prefix + "conv2.weight"));
  body.parameter("conv2_bias", {"d"}, "", same(prefix + "conv2.bias"));
  body.state("moment", {"t", "d"}, same(prefix + "embed_positions.weight"));
  add_whisper_norm(body, "heard", prefix + "layer_norm");
  body.with("low",
            "SELECT gelu(conv1d(sound, conv1, padding => 1) + conv1_bias) FROM sound, conv1, conv1_bias");
  body.with("high",
            "SELECT gelu(conv1d(low, conv2, stride => 2, padding => 1) + conv2_bias) "
            "FROM low, conv2, conv2_bias");
  body.with("x", fmt::format("SELECT {} FROM high[b, d, frames AS s], moment[t AS s, d] GROUP BY b, s, d",
                             dropped("high + moment", model.dropout)));
  body.with("x",
            fmt::format("\n    WITH a AS (SELECT * FROM {0}_listen(x, h = h) AS listen)\n"
                        "    SELECT * FROM {0}_listen_mlp(a, f = f) AS listen_mlp",
                        name),
            "REPEAT encoder_layers TIMES ");
  text.call(attention, "listen", prefix + "layers.{}.", model.encoder.layers);
  text.call(mlp, "listen_mlp", prefix + "layers.{}.", model.encoder.layers);
  body.with("m", whisper_norm("x", "heard"));
}

// The decoder: from m and the tokens to n[b, s, d].
void add_decoder(ModelText& text, const std::string& name, const Whisper& model, const std::string& prefix) {
  LayerText& body = text.body();
  const std::string init = normal(model.range);
  const LayerText self = whisper_attention(name + "_attention", model, model.decoder, Sight::before);
  const LayerText cross = whisper_attention(name + "_cross_attention", model, model.decoder, Sight::across);
  const LayerText mlp = whisper_mlp(name + "_mlp", model, model.decoder);
  for (const LayerText* layer : {&self, &cross, &mlp}) text.layer(*layer);
  body.size("s", model.decoder.positions);
  body.size("p", model.decoder.positions);
  body.size("heads", model.decoder.heads);
  body.size("inner", model.decoder.inner);
  body.size("decoder_layers", model.decoder.layers);
  body.size("v", model.words);
  body.parameter("embed", {"v", "d"}, init, same(prefix + "embed_tokens.weight"));
  body.parameter("place", {"p", "d"}, init, same(prefix + "embed_positions.weight"));
  add_whisper_norm(body, "said", prefix + "layer_norm");
  body.with("x", fmt::format("SELECT {} FROM tokens JOIN embed ON v = tokens JOIN place ON p = s",
                             dropped("(embed + place)", model.dropout)));
  body.with("x",
            fmt::format(
                "\n    WITH a AS (SELECT * FROM {0}_attention(x, h = heads) AS attention),\n"
                "         c AS (SELECT * FROM {0}_cross_attention(a, m[b, s AS t, d], h = heads) AS cross)\n"
                "    SELECT * FROM {0}_mlp(c, f = inner) AS mlp",
                name),
            "REPEAT decoder_layers TIMES ");
  text.call(self, "attention", prefix + "layers.{}.", model.decoder.layers);
  text.call(cross, "cross", prefix + "layers.{}.", model.decoder.layers);
  text.call(mlp, "mlp", prefix + "layers.{}.", model.decoder.layers);
  body.with("n", whisper_norm("x", "said"));
}

}  // namespace

Result<Imported> whisper_of(Request request) {
  std::vector<std::string> notes = {"the encoder's position embeddings are a STATE: loaded, not trained"};
  WEFT_TRY(head, head_of(request, kWhisperClasses));
  WEFT_TRY(model, read_whisper(request, head.head));
  Task task;
  if (head.head == Head::sequence) WEFT_TRY_STATUS(read_labels(request.config, Head::tokens, task));
  std::string inputs = "sound[b, bins, frames]";
  if (model.writes) inputs += ", tokens[b, s] OF int32";
  if (head.head == Head::words) inputs += ", targets[b, s] OF int32";
  if (head.head == Head::sequence) inputs += ", label[b] OF int32";
  ModelText text(request.name, inputs, fmt::format("Whisper, as transformers' {} computes it.", head.name));
  LayerText& body = text.body();
  body.size("b", 1);
  add_encoder(text, request.name, model, model.writes ? "model.encoder." : "encoder.");
  if (model.writes) add_decoder(text, request.name, model, "model.decoder.");
  if (head.head == Head::words) {
    WEFT_TRY(tied, request.config.truth_or("tie_word_embeddings", true));
    if (!tied) body.parameter("head", {"v", "d"}, normal(model.range), same("proj_out.weight"));
    body.with("logits",
              fmt::format("SELECT sum(n * {0}) FROM n, {0} GROUP BY b, s, v", tied ? "embed" : "head"));
    body.select(
        "SELECT mean(cross_entropy(logits, targets) OVER (PARTITION BY b, s)) AS loss FROM logits, targets");
    notes.push_back("tokens are the target text, shifted right by one");
  } else if (head.head == Head::sequence) {
    body.size("j", model.projected);
    body.parameter("projector", {"d", "j"}, normal(model.range), turned("projector.weight"));
    body.parameter("projector_bias", {"j"}, "", same("projector.bias"));
    body.with(
        "short",
        "SELECT sum(m * projector) + projector_bias FROM m, projector, projector_bias GROUP BY b, s, j");
    body.with("pooled", "SELECT mean(short) FROM short GROUP BY b, j");
    add_label_head(body, task, "pooled", "j", normal(model.range), "classifier", true);
  } else if (head.head == Head::base) {
    body.select("SELECT n AS hidden, m AS heard FROM n, m[b, s AS t, d]");
  } else {
    body.select("SELECT m AS heard FROM m");
  }
  return finish(request, text, std::move(notes));
}

}  // namespace weft::imports
