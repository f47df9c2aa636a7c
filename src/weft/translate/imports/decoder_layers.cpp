#include <fmt/format.h>

#include "weft/translate/imports/decoder.h"

namespace weft::imports {
namespace {

// The tensors of a layer of experts.
struct ExpertNames {
  const char *router, *gate, *up, *down;
};
constexpr ExpertNames kMixtralExperts = {
    "block_sparse_moe.gate.weight", "block_sparse_moe.experts.{}.w1.weight",
    "block_sparse_moe.experts.{}.w3.weight", "block_sparse_moe.experts.{}.w2.weight"};
constexpr ExpertNames kMlpExperts = {"mlp.gate.weight", "mlp.experts.{}.gate_proj.weight",
                                     "mlp.experts.{}.up_proj.weight", "mlp.experts.{}.down_proj.weight"};

constexpr std::string_view kMeanEpsilon = "1e-05";  // fixed in the class, for norms without parameters

// The name of a norm's bias: norm_gain has norm_bias.
std::string bias_beside(std::string_view gain) {
  return fmt::format("{}bias", gain.substr(0, gain.size() - std::string_view("gain").size()));
}

// The rows from `begin` on of a linear map with `rows` outputs.
Stored rows_of(std::string tensor, std::int64_t rows, std::int64_t inputs, std::int64_t begin) {
  Stored stored = same(std::move(tensor));
  stored.view = {rows, inputs};
  stored.begin = begin;
  stored.order = {1, 0};
  return stored;
}

struct Part {
  const char* name;             // q, k, v
  std::string indices;          // "b, h, g, s, e"
  std::vector<std::string> of;  // {"h", "g", "e"}
};

const std::vector<Part>& parts_of_attention() {
  static const std::vector<Part> parts = {{"q", "b, h, g, s, e", {"h", "g", "e"}},
                                          {"k", "b, h, s, e", {"h", "e"}},
                                          {"v", "b, h, s, e", {"h", "e"}}};
  return parts;
}

void add_projections(LayerText& layer, const Decoder& model) {
  const std::string init = normal(model.range);
  const std::int64_t keys = model.heads * model.head_size, queries = keys * model.groups;
  std::int64_t begin = 0;
  for (const Part& part : parts_of_attention()) {
    const bool query = part.name[0] == 'q';
    std::vector<std::string> indices = part.of;
    indices.insert(indices.begin(), "d");
    const std::string tensor = fmt::format("self_attn.{}_proj", part.name);
    layer.parameter(fmt::format("w{}", part.name), indices, init,
                    model.fused
                        ? rows_of("self_attn.qkv_proj.weight", queries + 2 * keys, model.features, begin)
                        : turned(tensor + ".weight"));
    if (model.query_bias) layer.parameter(fmt::format("b{}", part.name), part.of, "", same(tensor + ".bias"));
    begin += query ? queries : keys;
  }
  layer.parameter("wo", {"h", "g", "e", "d"}, init, turned("self_attn.o_proj.weight", 3));
  if (model.output_bias) layer.parameter("bo", {"d"}, "", same("self_attn.o_proj.bias"));
  if (model.norm_heads || model.norm_queries)
    for (const char* part : {"q", "k"})
      add_norm(
          layer, model, fmt::format("{}_gain", part),
          model.norm_heads ? std::vector<std::string>{"e"} : parts_of_attention()[part[0] == 'q' ? 0 : 1].of,
          fmt::format("self_attn.{}_norm.weight", part));
}

// Computes q, k or v from `x`: linear map, bias, clipping, norm, rotary embedding.
void add_part(LayerText& layer, const Decoder& model, const Rotary& rotary, const Part& part,
              std::string_view x) {
  const std::string name = part.name;
  const bool turns = name != "v", normed = turns && (model.norm_heads || model.norm_queries);
  std::string map = fmt::format("sum({} * w{})", x, name), from = fmt::format("{}, w{}", x, name);
  if (model.query_bias) {
    map += fmt::format(" + b{}", name);
    from += fmt::format(", b{}", name);
  }
  if (model.clip > 0) map = fmt::format("greatest(least({}, {}), {})", map, model.clip, -model.clip);
  const bool at_once = turns && !normed && !rotary.scaled() && !rotary.partial;
  if (at_once) map = fmt::format("rotary({}{})", map, rotary_options(rotary, "e"));
  layer.with(name, fmt::format("SELECT {} FROM {} GROUP BY {}", map, from, part.indices));
  if (normed)
    layer.with(name, fmt::format("SELECT {} FROM {}{}",
                                 decoder_norm(model, name, name + "_gain",
                                              model.norm_queries ? "b, s"
                                              : name == "q"      ? "b, h, g, s"
                                                                 : "b, h, s"),
                                 name, norm_source(model, name + "_gain")));
  if (turns && !at_once) add_rotated(layer, name, rotary, "e");
}

// x + the output of a half block, after its norm or dropout.
void add_result(LayerText& layer, const Decoder& model, const std::string& made, const std::string& from,
                const std::string& gain) {
  if (!model.norm_after) {
    layer.select(fmt::format("SELECT x + {} FROM x, {} GROUP BY b, s, d",
                             dropped(made, model.residual_dropout), from));
    return;
  }
  layer.with("made", fmt::format("SELECT {} FROM {} GROUP BY b, s, d", made, from));
  layer.select(fmt::format("SELECT x + {} FROM x, made{}", decoder_norm(model, "made", gain),
                           norm_source(model, gain)));
}

std::string attention_comment(const Decoder& model, const LayerKind& kind) {
  std::string text = kind.window > 0
                         ? fmt::format("Causal attention in a sliding window of {} tokens,", kind.window)
                         : "Causal attention";
  text += " with rotary positions";
  return text + (model.groups == 1 ? "." : ", g query heads to each of h key heads.");
}

void add_block_sizes(LayerText& layer, const Decoder& model) {
  layer.size("b", 1);
  layer.size("s", model.text_words());
  layer.size("d", model.features);
}

}  // namespace

std::string decoder_norm(const Decoder& model, std::string_view x, std::string_view gain,
                         std::string_view partition) {
  if (model.norm == NormKind::mean_around)
    return fmt::format("layer_norm({}, epsilon => {}) OVER (PARTITION BY {}) * (1 + {}) + {}", x,
                       model.epsilon, partition, gain, bias_beside(gain));
  if (model.norm == NormKind::mean)
    return fmt::format("layer_norm({}, epsilon => {}) OVER (PARTITION BY {})", x, kMeanEpsilon, partition);
  return fmt::format("rms_norm({}, epsilon => {}) OVER (PARTITION BY {}) * {}", x, model.epsilon, partition,
                     model.norm == NormKind::rms ? std::string(gain) : fmt::format("(1 + {})", gain));
}

std::string norm_source(const Decoder& model, std::string_view gain) {
  if (model.norm == NormKind::mean) return "";
  return model.norm == NormKind::mean_around ? fmt::format(", {}, {}", gain, bias_beside(gain))
                                             : fmt::format(", {}", gain);
}

void add_norm(LayerText& layer, const Decoder& model, const std::string& gain,
              std::vector<std::string> indices, const std::string& tensor) {
  if (model.norm == NormKind::mean) return;
  layer.parameter(gain, indices, model.norm == NormKind::rms ? "ones" : "", same(tensor));
  if (model.norm != NormKind::mean_around) return;
  constexpr std::string_view kWeight = ".weight";
  const std::string module = tensor.substr(0, tensor.size() - kWeight.size());
  layer.parameter(bias_beside(gain), std::move(indices), "", same(module + ".bias"));
}

LayerText decoder_attention(const std::string& name, const Decoder& model, const LayerKind& kind) {
  const Rotary& rotary = model.rotary_of(kind);
  LayerText layer(name, "x[b, s, d]" + rotary_arguments(rotary), attention_comment(model, kind));
  add_block_sizes(layer, model);
  layer.size("h", model.heads);
  layer.size("g", model.groups);
  layer.size("e", model.head_size);
  add_rotary_sizes(layer, rotary, "e");
  if (model.norm_before) add_norm(layer, model, "norm_gain", {"d"}, "input_layernorm.weight");
  add_projections(layer, model);
  if (model.norm_after) add_norm(layer, model, "after_gain", {"d"}, "post_attention_layernorm.weight");

  if (model.norm_before)
    layer.with("n", fmt::format("SELECT {} FROM x{}", decoder_norm(model, "x", "norm_gain"),
                                norm_source(model, "norm_gain")));
  for (const Part& part : parts_of_attention())
    add_part(layer, model, rotary, part, model.norm_before ? "n" : "x");
  const std::string divisor = model.score_size > 0 ? fmt::format("{}", model.score_size) : "e";
  layer.with(
      "scores",
      fmt::format("SELECT sum(q * k) / sqrt({}) FROM q, k[b, h, s AS t, e] GROUP BY b, h, g, s, t", divisor));
  if (model.score_cap > 0)
    layer.with("scores", fmt::format("SELECT tanh(scores / {0}) * {0} FROM scores", model.score_cap));
  layer.with("probs", fmt::format("SELECT softmax(CASE WHEN t <= s{} THEN scores ELSE -inf END) "
                                  "OVER (PARTITION BY b, h, g, s) FROM scores",
                                  kind.window > 0 ? fmt::format(" AND s - t < {}", kind.window) : ""));
  std::string probs = "probs";
  if (model.dropout > 0) {
    layer.with("kept", fmt::format("SELECT {} FROM probs", dropped("probs", model.dropout)));
    probs = "kept";
  }
  layer.with("ctx",
             fmt::format("SELECT sum({0} * v) FROM {0}, v[b, h, s AS t, e] GROUP BY b, h, g, s, e", probs));
  add_result(layer, model, model.output_bias ? "sum(ctx * wo) + bo" : "sum(ctx * wo)",
             model.output_bias ? "ctx, wo, bo" : "ctx, wo", "after_gain");
  return layer;
}

namespace {

// A feed-forward without a gate: down(activation(up(x))).
LayerText plain_mlp(const std::string& name, const Decoder& model) {
  LayerText layer(
      name, "x[b, s, d]",
      fmt::format("Feed-forward: down({}(up(x)){}).", model.activation, model.squared ? " squared" : ""));
  const std::string init = normal(model.range);
  add_block_sizes(layer, model);
  layer.size("f", model.inner);
  add_norm(layer, model, "norm_gain", {"d"}, "post_attention_layernorm.weight");
  layer.parameter("up", {"d", "f"}, init, turned("mlp.up_proj.weight"));
  layer.parameter("down", {"f", "d"}, init, turned("mlp.down_proj.weight"));
  layer.with("n", fmt::format("SELECT {} FROM x{}", decoder_norm(model, "x", "norm_gain"),
                              norm_source(model, "norm_gain")));
  layer.with("u", fmt::format("SELECT {}(sum(n * up)) FROM n, up GROUP BY b, s, f", model.activation));
  if (model.squared) layer.with("u", "SELECT u * u FROM u");
  add_result(layer, model, "sum(u * down)", "u, down", "after_gain");
  return layer;
}

}  // namespace

LayerText decoder_mlp(const std::string& name, const Decoder& model) {
  if (!model.gated) return plain_mlp(name, model);
  LayerText layer(name, "x[b, s, d]",
                  fmt::format("Gated feed-forward: down({}(gate(x)) * up(x)).", model.activation));
  const std::string init = normal(model.range);
  add_block_sizes(layer, model);
  layer.size("f", model.inner);
  if (model.norm_before)
    add_norm(layer, model, "norm_gain", {"d"},
             model.norm_after ? "pre_feedforward_layernorm.weight" : "post_attention_layernorm.weight");
  const char* both = "mlp.gate_up_proj.weight";
  layer.parameter(
      "gate", {"d", "f"}, init,
      model.fused ? rows_of(both, 2 * model.inner, model.features, 0) : turned("mlp.gate_proj.weight"));
  layer.parameter("up", {"d", "f"}, init,
                  model.fused ? rows_of(both, 2 * model.inner, model.features, model.inner)
                              : turned("mlp.up_proj.weight"));
  layer.parameter("down", {"f", "d"}, init, turned("mlp.down_proj.weight"));
  if (model.mlp_bias) {
    layer.parameter("gate_bias", {"f"}, "", same("mlp.gate_proj.bias"));
    layer.parameter("up_bias", {"f"}, "", same("mlp.up_proj.bias"));
    layer.parameter("down_bias", {"d"}, "", same("mlp.down_proj.bias"));
  }
  if (model.norm_after) add_norm(layer, model, "after_gain", {"d"}, "post_feedforward_layernorm.weight");
  const std::string x = model.norm_before ? "n" : "x";
  if (model.norm_before)
    layer.with("n", fmt::format("SELECT {} FROM x{}", decoder_norm(model, "x", "norm_gain"),
                                norm_source(model, "norm_gain")));
  layer.with("u", model.mlp_bias
                      ? fmt::format("SELECT {0}(sum({1} * gate) + gate_bias) * (sum({1} * up) + up_bias) "
                                    "FROM {1}, gate, gate_bias, up, up_bias GROUP BY b, s, f",
                                    model.activation, x)
                      : fmt::format(
                            "SELECT {0}(sum({1} * gate)) * sum({1} * up) FROM {1}, gate, up GROUP BY b, s, f",
                            model.activation, x));
  add_result(layer, model, model.mlp_bias ? "sum(u * down) + down_bias" : "sum(u * down)",
             model.mlp_bias ? "u, down, down_bias" : "u, down", "after_gain");
  return layer;
}

LayerText decoder_experts(const std::string& name, const Decoder& model) {
  LayerText layer(
      name, "y[b, s, d]",
      "Each token is routed to the k experts x with the largest scores, which have c slots each.");
  const std::string init = normal(model.range);
  add_block_sizes(layer, model);
  layer.size("f", model.inner);
  layer.size("x", model.experts);
  layer.size("k", model.chosen);
  layer.size("c", model.text_words());
  layer.size("p", model.experts * model.text_words(), "x * c");
  layer.size("r", model.experts, "x");  // as the router sees them: ranks that divide x route their own tokens
  layer.parameter("norm_gain", {"d"}, "ones", same("post_attention_layernorm.weight"));
  const ExpertNames& names = model.experts_in_mlp ? kMlpExperts : kMixtralExperts;
  layer.parameter("router", {"d", "r"}, init, turned(names.router));
  layer.parameter("gate", {"x", "d", "f"}, init, transposed_experts(names.gate));
  layer.parameter("up", {"x", "d", "f"}, init, transposed_experts(names.up));
  layer.parameter("down", {"x", "f", "d"}, init, transposed_experts(names.down));
  layer.with("z", fmt::format("SELECT {} FROM y, norm_gain", rms_norm("y", model.epsilon, "norm_gain")));
  layer.with("scores", "SELECT sum(z * router) FROM z, router GROUP BY b, s, r");
  if (model.weights_sum_to_one) {
    layer.with(
        "weight",
        "SELECT softmax(top_k(scores, k) OVER (PARTITION BY b, s)) OVER (PARTITION BY b, s) FROM scores");
  } else {
    layer.with("chance", "SELECT softmax(scores) OVER (PARTITION BY b, s) FROM scores");
    layer.with("weight", "SELECT top_k(chance, k) OVER (PARTITION BY b, s) FROM chance");
  }
  layer.with("place",
             "SELECT slot(top_k_positions(scores, k) OVER (PARTITION BY b, s), x, c) OVER (PARTITION BY b) "
             "FROM scores");
  layer.with("sent", "SELECT sum(z) FROM z, place GROUP BY b, place AS p, d");
  layer.with("hidden", fmt::format("SELECT {}(sum(sent * gate)) * sum(sent * up) "
                                   "FROM sent[b, p AS (x, c), d], gate, up GROUP BY b, x, c, f",
                                   model.activation));
  layer.with("done", "SELECT sum(hidden * down) FROM hidden, down GROUP BY b, x, c, d");
  layer.with("mixed",
             "SELECT sum(weight * done) FROM weight, place JOIN done[b, (x, c) AS p, d] ON p = place "
             "GROUP BY b, s, d");
  layer.select("SELECT y + mixed FROM y, mixed");
  return layer;
}

}  // namespace weft::imports
