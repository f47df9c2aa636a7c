#include "weft/translate/imports/parallel_block.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include <fmt/format.h>

namespace weft::imports {
namespace {

constexpr std::int64_t kParallelWords = 4096;  // tokens per text, if the model supports more

// The fused query_key_value map stores, per key head, its g queries, its key and its value, with e
// features each.
Stored of_heads(const ParallelModel& model, std::int64_t begin, bool weight) {
  Stored stored = same(model.attention + (weight ? "query_key_value.weight" : "query_key_value.bias"));
  stored.view = {model.heads, (model.groups + 2) * model.head_size};
  if (weight) stored.view.push_back(model.features);
  stored.axis = 1;
  stored.begin = begin * model.head_size;
  stored.order = weight ? std::vector<std::size_t>{2, 0, 1} : std::vector<std::size_t>{0, 1};
  return stored;
}

void add_parallel_norm(LayerText& layer, const std::string& name, const std::string& tensor) {
  layer.parameter(name + "_gain", {"d"}, "ones", same(tensor + ".weight"));
  layer.parameter(name + "_bias", {"d"}, "", same(tensor + ".bias"));
}

std::string parallel_norm(const ParallelModel& model, std::string_view x, std::string_view name) {
  return fmt::format(
      "SELECT {} FROM {}, {}_gain, {}_bias",
      layer_norm(x, model.epsilon, "b, s", fmt::format("{}_gain", name), fmt::format("{}_bias", name)), x,
      name, name);
}

// ALiBi slopes (Press, Smith and Lewis): 2^(-8 (i + 1) / n) for n heads, a power of 2. Otherwise
// the remaining heads use every second slope of twice the next lower power of 2.
void add_slopes(LayerText& layer, const ParallelModel& model) {
  const auto heads = static_cast<std::uint64_t>(model.heads * model.groups);
  const auto whole = static_cast<double>(std::bit_floor(heads));
  const double step = 8 * std::log(2.0) / whole;
  layer.with("number", "SELECT CAST(h * size(g) + g AS f32) FROM q GROUP BY h, g");
  const std::string slope = fmt::format("exp((number + 1) * {})", -step);
  layer.with(
      "slope",
      std::has_single_bit(heads)
          ? fmt::format("SELECT {} FROM number", slope)
          : fmt::format("SELECT CASE WHEN number < {0} THEN {1} ELSE exp((2 * (number - {0}) + 1) * {2}) "
                        "END FROM number",
                        whole, slope, -step / 2));
}

void add_attention_of(LayerText& layer, const ParallelModel& model) {
  for (const auto& [part, indices] :
       {std::pair{"q", "b, h, g, s, e"}, {"k", "b, h, s, e"}, {"v", "b, h, s, e"}}) {
    const std::string bias = fmt::format("b{}", part);
    layer.with(part,
               model.attention_bias
                   ? fmt::format("SELECT sum(n * w{0}) + b{0} FROM n, w{0}, b{0} GROUP BY {1}", part, indices)
                   : fmt::format("SELECT sum(n * w{0}) FROM n, w{0} GROUP BY {1}", part, indices));
    if (part[0] != 'v' && !model.alibi) add_rotated(layer, part, model.rotary, "e");
  }
  if (model.alibi) add_slopes(layer, model);
  layer.with("scores", model.alibi
                           ? "SELECT sum(q * k) FROM q, k[b, h, s AS t, e] GROUP BY b, h, g, s, t"
                           : "SELECT sum(q * k) / sqrt(e) FROM q, k[b, h, s AS t, e] GROUP BY b, h, g, s, t");
  if (model.alibi)
    layer.with("scores",
               "SELECT (scores + slope * t) / sqrt(size(e)) FROM scores, slope GROUP BY b, h, g, s, t");
  layer.with("probs",
             "SELECT softmax(CASE WHEN t <= s THEN scores ELSE -inf END) OVER (PARTITION BY b, h, g, s) FROM "
             "scores");
  std::string probs = "probs";
  if (model.attention_dropout > 0) {
    layer.with("kept", fmt::format("SELECT {} FROM probs", dropped("probs", model.attention_dropout)));
    probs = "kept";
  }
  layer.with("ctx",
             fmt::format("SELECT sum({0} * v) FROM {0}, v[b, h, s AS t, e] GROUP BY b, h, g, s, e", probs));
  layer.with("seen", fmt::format("SELECT {} FROM ctx, wo{} GROUP BY b, s, d",
                                 dropped(model.attention_bias ? "sum(ctx * wo) + bo" : "sum(ctx * wo)",
                                         model.first_dropout),
                                 model.attention_bias ? ", bo" : ""));
}

void add_parameters(LayerText& layer, const ParallelModel& model) {
  const std::string init = normal(model.range);
  add_parallel_norm(layer, "ln1", model.first_norm);
  if (model.two_norms) add_parallel_norm(layer, "ln2", model.second_norm);
  const std::int64_t g = model.groups;
  layer.parameter("wq", {"d", "h", "g", "e"}, init, of_heads(model, 0, true));
  layer.parameter("wk", {"d", "h", "e"}, init, of_heads(model, g, true));
  layer.parameter("wv", {"d", "h", "e"}, init, of_heads(model, g + 1, true));
  layer.parameter("wo", {"h", "g", "e", "d"}, init, turned(model.attention + "dense.weight", 3));
  if (model.attention_bias) {
    layer.parameter("bq", {"h", "g", "e"}, "", of_heads(model, 0, false));
    layer.parameter("bk", {"h", "e"}, "", of_heads(model, g, false));
    layer.parameter("bv", {"h", "e"}, "", of_heads(model, g + 1, false));
    layer.parameter("bo", {"d"}, "", same(model.attention + "dense.bias"));
  }
  layer.parameter("w1", {"d", "f"}, init, turned("mlp.dense_h_to_4h.weight"));
  layer.parameter("w2", {"f", "d"}, init, turned("mlp.dense_4h_to_h.weight"));
  if (model.mlp_bias) {
    layer.parameter("b1", {"f"}, "", same("mlp.dense_h_to_4h.bias"));
    layer.parameter("b2", {"d"}, "", same("mlp.dense_4h_to_h.bias"));
  }
}

LayerText parallel_block(const std::string& name, const ParallelModel& model) {
  LayerText layer(name + "_block", "x[b, s, d]" + rotary_arguments(model.rotary),
                  model.parallel ? "Parallel attention and feed-forward." : "Attention, then feed-forward.");
  layer.size("b", 1);
  layer.size("s", model.text_words());
  layer.size("d", model.features);
  layer.size("h", model.heads);
  layer.size("g", model.groups);
  layer.size("e", model.head_size);
  layer.size("f", model.inner);
  if (!model.alibi) add_rotary_sizes(layer, model.rotary, "e");
  add_parameters(layer, model);
  layer.with("n", parallel_norm(model, "x", "ln1"));
  add_attention_of(layer, model);
  std::string read = "n";
  if (!model.parallel) {
    layer.with("a", "SELECT x + seen FROM x, seen");
    layer.with("m", parallel_norm(model, "a", "ln2"));
    read = "m";
  } else if (model.two_norms) {
    layer.with("m", parallel_norm(model, "x", "ln2"));
    read = "m";
  }
  layer.with("up", model.mlp_bias
                       ? fmt::format("SELECT {0}(sum({1} * w1) + b1) FROM {1}, w1, b1 GROUP BY b, s, f",
                                     model.activation, read)
                       : fmt::format("SELECT {0}(sum({1} * w1)) FROM {1}, w1 GROUP BY b, s, f",
                                     model.activation, read));
  const std::string down = model.mlp_bias ? "sum(up * w2) + b2" : "sum(up * w2)";
  const std::string from = model.mlp_bias ? "up, w2, b2" : "up, w2";
  if (!model.parallel)
    layer.select(
        fmt::format("SELECT a + {} FROM a, {} GROUP BY b, s, d", dropped(down, model.second_dropout), from));
  else if (model.added_first)
    layer.select(fmt::format("SELECT x + {} FROM x, seen, {} GROUP BY b, s, d",
                             dropped("(seen + " + down + ")", model.second_dropout), from));
  else
    layer.select(fmt::format("SELECT x + seen + {} FROM x, seen, {} GROUP BY b, s, d",
                             dropped(down, model.second_dropout), from));
  return layer;
}

}  // namespace

std::int64_t ParallelModel::text_words() const { return std::min(positions, kParallelWords); }

Result<Imported> parallel_model(Request& request, const ParallelModel& model, HeadClass head,
                                const Task& task, const std::string& title, std::vector<std::string> notes) {
  const LayerText block = parallel_block(request.name, model);
  ModelText text(request.name, text_inputs(head.head, task),
                 fmt::format("{}, as transformers' {} computes it.", title, head.name));
  text.layer(block);
  LayerText& body = text.body();
  const std::string init = normal(model.range);
  body.size("b", 1);
  body.size("s", model.text_words());
  body.size("d", model.features);
  body.size("h", model.heads);
  body.size("g", model.groups);
  body.size("e", model.head_size);
  body.size("f", model.inner);
  body.size("layers", model.layers);
  body.size("v", model.words);
  body.parameter("embed", {"v", "d"}, init, same(model.prefix + model.embedding + ".weight"));
  add_parallel_norm(body, "ln", model.prefix + model.last_norm);
  body.with("x", fmt::format("SELECT {} FROM tokens JOIN embed ON v = tokens",
                             dropped("embed", model.embedding_dropout)));
  if (!model.alibi) add_rotary_tables(body, {model.rotary});
  body.with("x",
            fmt::format("SELECT * FROM {}_block(x{}, h = h, g = g, e = e, f = f) AS block", request.name,
                        rotary_call_arguments(model.rotary)),
            "REPEAT layers TIMES ");
  text.call(block, "block", model.prefix + (model.prefix == "transformer." ? "h.{}." : "layers.{}."),
            model.layers);
  body.with("n", parallel_norm(model, "x", "ln"));
  if (head.head == Head::words) {
    const bool gpt = request.architecture == "gpt_neox";
    if (!model.tied)
      body.parameter("head", {"d", "v"}, init, turned(gpt ? "embed_out.weight" : "lm_head.weight"));
    body.with("logits",
              fmt::format("SELECT sum(n * {0}) FROM n, {0} GROUP BY b, s, v", model.tied ? "embed" : "head"));
    body.select(
        "SELECT mean(cross_entropy(logits, targets) OVER (PARTITION BY b, s)) AS loss FROM logits, targets");
  } else {
    add_text_head(body, head.head, task, "n", init, "classifier");
  }
  if (model.positions > model.text_words())
    notes.push_back(fmt::format("texts of {} tokens; the model supports up to {}: WITH (s = {})",
                                model.text_words(), model.positions, model.positions));
  return finish(request, text, std::move(notes));
}

}  // namespace weft::imports
