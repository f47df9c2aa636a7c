// ViT: an encoder over image patches. ViTForImageClassification and ViTModel.
#include <fmt/format.h>

#include "weft/translate/imports/heads.h"

namespace weft::imports {
namespace {

constexpr HeadClass kVitClasses[] = {{"ViTForImageClassification", Head::sequence}, {"ViTModel", Head::base}};

struct Vit {
  std::int64_t features, layers, heads, inner, image, patch, channels, pooled;
  std::string activation, pool_activation;
  double epsilon, range, dropout, attention_dropout;
  bool biases;

  std::int64_t places() const { return (image / patch) * (image / patch) + 1; }
};

Result<Vit> read_vit(Request& request, Head head) {
  Config& config = request.config;
  WEFT_TRY(features, config.size("hidden_size"));
  WEFT_TRY(layers, config.size("num_hidden_layers"));
  WEFT_TRY(heads, config.size("num_attention_heads"));
  WEFT_TRY(inner, config.size("intermediate_size"));
  WEFT_TRY(image, config.size_or("image_size", 224));
  WEFT_TRY(patch, config.size_or("patch_size", 16));
  WEFT_TRY(channels, config.size_or("num_channels", 3));
  WEFT_TRY_STATUS(expect_divides("num_attention_heads", heads, "hidden_size", features));
  WEFT_TRY_STATUS(expect_divides("patch_size", patch, "image_size", image));
  if (image / patch > 30000)
    return user_error(fmt::format("image_size: expected fewer patches, found {} per side", image / patch));
  WEFT_TRY(activation, activation_of(config, "hidden_act", "gelu"));
  WEFT_TRY(epsilon, config.rate_or("layer_norm_eps", 1e-12));
  WEFT_TRY(range, config.rate_or("initializer_range", 0.02));
  WEFT_TRY(dropout, config.rate_or("hidden_dropout_prob", 0));
  WEFT_TRY(attention_dropout, config.rate_or("attention_probs_dropout_prob", 0));
  WEFT_TRY(biases, config.truth_or("qkv_bias", true));
  std::int64_t pooled = features;
  std::string pool_activation = "tanh";
  if (head == Head::base) {
    WEFT_TRY(size, config.size_or("pooler_output_size", features));
    WEFT_TRY(word, activation_of(config, "pooler_act", "tanh"));
    pooled = size;
    pool_activation = word;
  }
  return Vit{features, layers,     heads,           inner,   image, patch,   channels,
             pooled,   activation, pool_activation, epsilon, range, dropout, attention_dropout,
             biases};
}

LayerText vit_attention(const std::string& name, const Vit& model) {
  LayerText layer(name + "_attention", "x[b, s, d]", "Every patch attends to all patches.");
  const std::string init = normal(model.range);
  layer.size("b", 1);
  layer.size("s", model.places());
  layer.size("d", model.features);
  layer.size("h", model.heads);
  layer.size("e", model.features / model.heads, "d / h");
  layer.parameter("ln_gain", {"d"}, "ones", same("layernorm_before.weight"));
  layer.parameter("ln_bias", {"d"}, "", same("layernorm_before.bias"));
  constexpr std::pair<const char*, const char*> kParts[] = {{"q", "query"}, {"k", "key"}, {"v", "value"}};
  for (const auto& [part, tensor] : kParts) {
    layer.parameter(fmt::format("w{}", part), {"d", "h", "e"}, init,
                    turned(fmt::format("attention.attention.{}.weight", tensor)));
    if (model.biases)
      layer.parameter(fmt::format("b{}", part), {"h", "e"}, "",
                      same(fmt::format("attention.attention.{}.bias", tensor)));
  }
  layer.parameter("wo", {"h", "e", "d"}, init, turned("attention.output.dense.weight", 2));
  layer.parameter("bo", {"d"}, "", same("attention.output.dense.bias"));
  layer.with("n", fmt::format("SELECT {} FROM x, ln_gain, ln_bias",
                              layer_norm("x", model.epsilon, "b, s", "ln_gain", "ln_bias")));
  for (const auto& [part, tensor] : kParts)
    layer.with(
        part,
        fmt::format(model.biases
                        ? fmt::runtime("SELECT sum(n * w{0}) + b{0} FROM n, w{0}, b{0} GROUP BY b, h, s, e")
                        : fmt::runtime("SELECT sum(n * w{0}) FROM n, w{0} GROUP BY b, h, s, e"),
                    part));
  layer.with("scores", "SELECT sum(q * k) / sqrt(e) FROM q, k[b, h, s AS t, e] GROUP BY b, h, s, t");
  layer.with("probs",
             fmt::format("SELECT {} FROM scores",
                         dropped("softmax(scores) OVER (PARTITION BY b, h, s)", model.attention_dropout)));
  layer.with("ctx", "SELECT sum(probs * v) FROM probs, v[b, h, s AS t, e] GROUP BY b, h, s, e");
  layer.select(fmt::format("SELECT x + {} FROM x, ctx, wo, bo GROUP BY b, s, d",
                           dropped("sum(ctx * wo) + bo", model.dropout)));
  return layer;
}

LayerText vit_mlp(const std::string& name, const Vit& model) {
  LayerText layer(name + "_mlp", "x[b, s, d]");
  const std::string init = normal(model.range);
  layer.size("b", 1);
  layer.size("s", model.places());
  layer.size("d", model.features);
  layer.size("f", model.inner);
  layer.parameter("ln_gain", {"d"}, "ones", same("layernorm_after.weight"));
  layer.parameter("ln_bias", {"d"}, "", same("layernorm_after.bias"));
  layer.parameter("w1", {"d", "f"}, init, turned("intermediate.dense.weight"));
  layer.parameter("b1", {"f"}, "", same("intermediate.dense.bias"));
  layer.parameter("w2", {"f", "d"}, init, turned("output.dense.weight"));
  layer.parameter("b2", {"d"}, "", same("output.dense.bias"));
  layer.with("n", fmt::format("SELECT {} FROM x, ln_gain, ln_bias",
                              layer_norm("x", model.epsilon, "b, s", "ln_gain", "ln_bias")));
  layer.with("up",
             fmt::format("SELECT {}(sum(n * w1) + b1) FROM n, w1, b1 GROUP BY b, s, f", model.activation));
  layer.select(fmt::format("SELECT x + {} FROM x, up, w2, b2 GROUP BY b, s, d",
                           dropped("sum(up * w2) + b2", model.dropout)));
  return layer;
}

}  // namespace

Result<Imported> vit_of(Request request) {
  WEFT_TRY(head, head_of(request, kVitClasses));
  WEFT_TRY(model, read_vit(request, head.head));
  const bool classifies = head.head == Head::sequence;
  Task task;
  if (classifies) WEFT_TRY_STATUS(read_labels(request.config, head.head, task));
  const LayerText attention = vit_attention(request.name, model), mlp = vit_mlp(request.name, model);
  ModelText text(request.name,
                 "image[b, c, height, width]" + (classifies ? label_input(task) : std::string()),
                 fmt::format("ViT, as transformers' {} computes it.", head.name));
  text.layer(attention);
  text.layer(mlp);
  LayerText& body = text.body();
  const std::string init = normal(model.range);
  const std::string prefix = "vit.";
  body.size("b", 1);
  body.size("c", model.channels);
  body.size("height", model.image);
  body.size("width", model.image);
  body.size("r", model.patch);
  body.size("q", model.patch, "r");
  body.size("d", model.features);
  body.size("h", model.heads);
  body.size("f", model.inner);
  body.size("layers", model.layers);
  body.size("p", model.places(), "height / r * width / q + 1");
  body.parameter("patch", {"d", "c", "r", "q"}, init,
                 same(prefix + "embeddings.patch_embeddings.projection.weight"));
  body.parameter("patch_bias", {"d"}, "", same(prefix + "embeddings.patch_embeddings.projection.bias"));
  body.parameter("class_token", {"d"}, init, same(prefix + "embeddings.cls_token"));
  body.parameter("place", {"p", "d"}, init, same(prefix + "embeddings.position_embeddings"));
  body.parameter("ln_gain", {"d"}, "ones", same(prefix + "layernorm.weight"));
  body.parameter("ln_bias", {"d"}, "", same(prefix + "layernorm.bias"));
  body.with("grid", "SELECT conv2d(image, patch, stride => r) + patch_bias FROM image, patch, patch_bias");
  body.with("patches", "SELECT grid FROM grid[b, d, (height, width) AS s] GROUP BY b, s, d");
  body.with("words", "SELECT concat(class_token, patches, along => s) FROM class_token, patches");
  body.with("x",
            fmt::format("SELECT {} FROM words JOIN place ON p = s", dropped("words + place", model.dropout)));
  body.with("x",
            fmt::format("\n    WITH a AS (SELECT * FROM {0}_attention(x, h = h) AS attention)\n"
                        "    SELECT * FROM {0}_mlp(a, f = f) AS mlp",
                        request.name),
            "REPEAT layers TIMES ");
  text.call(attention, "attention", prefix + "encoder.layer.{}.", model.layers);
  text.call(mlp, "mlp", prefix + "encoder.layer.{}.", model.layers);
  if (classifies) {
    body.with("first", "SELECT x FROM x WHERE s = 0");
    body.with("n", fmt::format("SELECT {} FROM first, ln_gain, ln_bias",
                               layer_norm("first", model.epsilon, "b", "ln_gain", "ln_bias")));
    add_label_head(body, task, "n", "d", init, "classifier", true);
  } else {
    body.size("o", model.pooled, model.pooled == model.features ? "d" : "");
    body.parameter("pool", {"d", "o"}, init, turned("pooler.dense.weight"));
    body.parameter("pool_bias", {"o"}, "", same("pooler.dense.bias"));
    body.with("n", fmt::format("SELECT {} FROM x, ln_gain, ln_bias",
                               layer_norm("x", model.epsilon, "b, s", "ln_gain", "ln_bias")));
    body.with("first", "SELECT n FROM n WHERE s = 0");
    body.with(
        "pooled",
        fmt::format("SELECT {}(sum(first * pool) + pool_bias) FROM first, pool, pool_bias GROUP BY b, o",
                    model.pool_activation));
    body.select("SELECT n AS hidden, pooled FROM n, pooled");
  }
  return finish(request, text, {});
}

}  // namespace weft::imports
