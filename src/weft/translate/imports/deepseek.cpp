// DeepSeek V2 and V3: multi-head latent attention, and many small experts plus shared experts that
// process every token.
#include <algorithm>

#include <fmt/format.h>

#include "weft/translate/imports/heads.h"
#include "weft/translate/imports/rotary.h"

namespace weft::imports {
namespace {

constexpr HeadClass kDeepseek2Classes[] = {{"DeepseekV2ForCausalLM", Head::words},
                                           {"DeepseekV2Model", Head::base},
                                           {"DeepseekV2ForSequenceClassification", Head::sequence}};
constexpr HeadClass kDeepseek3Classes[] = {{"DeepseekV3ForCausalLM", Head::words},
                                           {"DeepseekV3Model", Head::base},
                                           {"DeepseekV3ForSequenceClassification", Head::sequence},
                                           {"DeepseekV3ForTokenClassification", Head::tokens}};

constexpr std::int64_t kDeepseekWords = 4096;
constexpr double kLatentEpsilon = 1e-6;  // fixed for the norms within attention, instead of rms_norm_eps

struct Deepseek {
  std::int64_t features, layers, heads, words, positions;
  std::int64_t latent, query_latent;  // query_latent 0: queries are not compressed
  std::int64_t plain, rotary, value;  // per head
  std::int64_t inner, expert, experts, chosen, shared, dense, groups, kept;
  std::string activation;
  double epsilon, range, dropout, scale;
  bool version3, normed, grouped, pairs;
  Rotary turning;

  std::int64_t text_words() const { return std::min(positions, kDeepseekWords); }
};

Result<Deepseek> read_deepseek(Request& request, std::vector<std::string>& notes) {
  Config& config = request.config;
  const bool version3 = request.architecture == "deepseek_v3";
  WEFT_TRY(features, config.size("hidden_size"));
  WEFT_TRY(layers, config.size("num_hidden_layers"));
  WEFT_TRY(heads, config.size("num_attention_heads"));
  WEFT_TRY(words, config.size("vocab_size"));
  WEFT_TRY(positions, config.size_or("max_position_embeddings", version3 ? 4096 : 2048));
  WEFT_TRY(latent, config.size("kv_lora_rank"));
  WEFT_TRY(query_latent, config.count_or("q_lora_rank", config.is_null("q_lora_rank") ? 0 : 1536));
  WEFT_TRY(plain, config.size("qk_nope_head_dim"));
  WEFT_TRY(rotary, config.size("qk_rope_head_dim"));
  WEFT_TRY(value, config.size("v_head_dim"));
  WEFT_TRY(inner, config.size("intermediate_size"));
  WEFT_TRY(expert, config.size("moe_intermediate_size"));
  WEFT_TRY(experts, config.size("n_routed_experts"));
  WEFT_TRY(chosen, config.size("num_experts_per_tok"));
  WEFT_TRY(shared, config.size_or("n_shared_experts", version3 ? 1 : 2));
  WEFT_TRY(dense, config.count_or("first_k_dense_replace", version3 ? 3 : 0));
  if (rotary % 2 != 0)
    return user_error(fmt::format("qk_rope_head_dim: expected an even number, found {}", rotary));
  if (chosen > experts)
    return user_error(
        fmt::format("num_experts_per_tok: expected at most {} experts, found {}", experts, chosen));
  if (dense >= layers)
    return user_error(
        fmt::format("first_k_dense_replace: expected fewer than the {} layers, found {}", layers, dense));
  std::string method = "noaux_tc";
  if (!version3) {
    WEFT_TRY(read, config.word_or("topk_method", "greedy"));
    if (read != "greedy" && read != "group_limited_greedy")
      WEFT_TRY_STATUS(config.refuse("topk_method", "expected greedy or group_limited_greedy"));
    method = read;
  }
  WEFT_TRY(groups, config.size_or("n_group", version3 && !config.is_null("n_group") ? 8 : 1));
  WEFT_TRY(kept, config.size_or("topk_group", version3 && !config.is_null("topk_group") ? 4 : 1));
  const bool grouped = method != "greedy" && groups > kept;
  if (grouped) WEFT_TRY_STATUS(expect_divides("n_group", groups, "n_routed_experts", experts));
  if (grouped && version3 && experts / groups < 2)
    return user_error(
        fmt::format("n_group: expected groups of two experts or more, found {} of {}", groups, experts));
  if (grouped && kept * (experts / groups) < chosen)
    return user_error(fmt::format("topk_group: expected groups with {} experts or more, found {}", chosen,
                                  kept * (experts / groups)));
  WEFT_TRY(normed, config.truth_or("norm_topk_prob", version3));
  WEFT_TRY(scale, config.number_or("routed_scaling_factor", version3 ? 2.5 : 1));
  if (!(scale > 1e-9 && scale < 1e9))
    return user_error(
        fmt::format("routed_scaling_factor: expected a number from 1e-9 to 1e9, found {}", scale));
  WEFT_TRY(activation, activation_of(config, "hidden_act", "silu"));
  WEFT_TRY(epsilon, config.rate_or("rms_norm_eps", 1e-6));
  WEFT_TRY(range, config.rate_or("initializer_range", 0.02));
  WEFT_TRY(dropout, config.rate_or("attention_dropout", 0));
  WEFT_TRY(turning, read_rotary(request, {}, {.head = rotary, .positions = positions}, notes));
  bool pairs = true;
  if (version3) {
    WEFT_TRY(interleaved, config.truth_or("rope_interleave", true));
    pairs = interleaved;
    WEFT_TRY(older, config.count_or("num_nextn_predict_layers", 0));
    WEFT_TRY(ahead, config.count_or("num_mtp_layers", older));
    if (ahead > 0)
      notes.push_back(fmt::format("multi-token prediction layers are skipped, as in the class: {}", ahead));
  }
  return Deepseek{features, layers, heads,    words,  positions,  latent,  query_latent,
                  plain,    rotary, value,    inner,  expert,     experts, chosen,
                  shared,   dense,  groups,   kept,   activation, epsilon, range,
                  dropout,  scale,  version3, normed, grouped,    pairs,   turning};
}

// A slice of a linear map with `parts` outputs per head: the outputs from `begin` on.
Stored head_part(std::string tensor, std::int64_t heads, std::int64_t parts, std::int64_t inputs,
                 std::int64_t begin, bool pairs = false) {
  Stored stored = same(std::move(tensor));
  stored.view = {heads, parts, inputs};
  stored.axis = 1;
  stored.begin = begin;
  stored.order = {2, 0, 1};
  stored.pairs = pairs;
  return stored;
}

Stored output_part(std::string tensor, std::int64_t outputs, std::int64_t inputs, std::int64_t begin,
                   bool pairs) {
  Stored stored = same(std::move(tensor));
  stored.view = {outputs, inputs};
  stored.axis = 0;
  stored.begin = begin;
  stored.order = {1, 0};
  stored.pairs = pairs;
  return stored;
}

LayerText latent_attention(const std::string& name, const Deepseek& model) {
  LayerText layer(
      name + "_attention", "x[b, s, d]" + rotary_arguments(model.turning),
      "Keys and values are decompressed from the latent c of size l; positions use r separate features that "
      "all keys share.");
  const std::string init = normal(model.range);
  const bool low_queries = model.query_latent > 0;
  layer.size("b", 1);
  layer.size("s", model.text_words());
  layer.size("d", model.features);
  layer.size("h", model.heads);
  layer.size("l", model.latent);
  if (low_queries) layer.size("m", model.query_latent);
  layer.size("n", model.plain);
  layer.size("r", model.rotary);
  layer.size("e", model.value);
  add_rotary_sizes(layer, model.turning, "r");
  const std::int64_t query = model.plain + model.rotary;
  layer.parameter("norm_gain", {"d"}, "ones", same("input_layernorm.weight"));
  const std::string from = low_queries ? "m" : "d";
  const std::int64_t inputs = low_queries ? model.query_latent : model.features;
  const std::string tensor = low_queries ? "self_attn.q_b_proj.weight" : "self_attn.q_proj.weight";
  if (low_queries) {
    layer.parameter("query", {"d", "m"}, init, turned("self_attn.q_a_proj.weight"));
    layer.parameter("query_gain", {"m"}, "ones", same("self_attn.q_a_layernorm.weight"));
  }
  layer.parameter("wq", {from, "h", "n"}, init, head_part(tensor, model.heads, query, inputs, 0));
  layer.parameter("wq_rotary", {from, "h", "r"}, init,
                  head_part(tensor, model.heads, query, inputs, model.plain, model.pairs));
  const std::int64_t both = model.latent + model.rotary;
  layer.parameter("latent", {"d", "l"}, init,
                  output_part("self_attn.kv_a_proj_with_mqa.weight", both, model.features, 0, false));
  layer.parameter(
      "wk_rotary", {"d", "r"}, init,
      output_part("self_attn.kv_a_proj_with_mqa.weight", both, model.features, model.latent, model.pairs));
  layer.parameter("latent_gain", {"l"}, "ones", same("self_attn.kv_a_layernorm.weight"));
  const std::int64_t parts = model.plain + model.value;
  layer.parameter("wk", {"l", "h", "n"}, init,
                  head_part("self_attn.kv_b_proj.weight", model.heads, parts, model.latent, 0));
  layer.parameter("wv", {"l", "h", "e"}, init,
                  head_part("self_attn.kv_b_proj.weight", model.heads, parts, model.latent, model.plain));
  layer.parameter("wo", {"h", "e", "d"}, init, turned("self_attn.o_proj.weight", 2));

  layer.with("z", fmt::format("SELECT {} FROM x, norm_gain", rms_norm("x", model.epsilon, "norm_gain")));
  std::string queries = "z";
  if (low_queries) {
    layer.with("asked", "SELECT sum(z * query) FROM z, query GROUP BY b, s, m");
    layer.with("y", fmt::format("SELECT {} FROM asked, query_gain",
                                rms_norm("asked", kLatentEpsilon, "query_gain")));
    queries = "y";
  }
  layer.with("q", fmt::format("SELECT sum({0} * wq) FROM {0}, wq GROUP BY b, h, s, n", queries));
  const auto turned_map = [&](const char* as, std::string_view of, const char* weight, const char* indices) {
    const std::string map = fmt::format("sum({} * {})", of, weight);
    const bool at_once = !model.turning.scaled();
    layer.with(
        as, fmt::format("SELECT {} FROM {}, {} GROUP BY {}",
                        at_once ? fmt::format("rotary({}{})", map, rotary_options(model.turning, "r")) : map,
                        of, weight, indices));
    if (!at_once) add_rotated(layer, as, model.turning, "r");
  };
  turned_map("qr", queries, "wq_rotary", "b, h, s, r");
  turned_map("kr", "z", "wk_rotary", "b, s, r");
  layer.with("low", "SELECT sum(z * latent) FROM z, latent GROUP BY b, s, l");
  layer.with("c",
             fmt::format("SELECT {} FROM low, latent_gain", rms_norm("low", kLatentEpsilon, "latent_gain")));
  layer.with("k", "SELECT sum(c * wk) FROM c, wk GROUP BY b, h, s, n");
  layer.with("v", "SELECT sum(c * wv) FROM c, wv GROUP BY b, h, s, e");
  const double scores = model.turning.scores;
  // One product of both parts, so that attention is recognized.
  layer.with("q", "SELECT concat(q, qr, along => n) FROM q, qr[b, h, s, r AS n]");
  layer.with("k", "SELECT concat(k, kr, along => n) FROM k, kr[b, s, r AS n]");
  layer.with("scores", fmt::format("SELECT sum(q * k) / sqrt(n + r){} FROM q, k[b, h, s AS t, n] "
                                   "GROUP BY b, h, s, t",
                                   scores == 1 ? "" : fmt::format(" * {}", scores)));
  layer.with(
      "probs",
      "SELECT softmax(CASE WHEN t <= s THEN scores ELSE -inf END) OVER (PARTITION BY b, h, s) FROM scores");
  std::string probs = "probs";
  if (model.dropout > 0) {
    layer.with("kept", fmt::format("SELECT {} FROM probs", dropped("probs", model.dropout)));
    probs = "kept";
  }
  layer.with("ctx",
             fmt::format("SELECT sum({0} * v) FROM {0}, v[b, h, s AS t, e] GROUP BY b, h, s, e", probs));
  layer.select("SELECT x + sum(ctx * wo) FROM x, ctx, wo GROUP BY b, s, d");
  return layer;
}

LayerText deepseek_mlp(const std::string& name, const Deepseek& model) {
  LayerText layer(name + "_mlp", "x[b, s, d]", "The first layers have a dense feed-forward.");
  const std::string init = normal(model.range);
  layer.size("b", 1);
  layer.size("s", model.text_words());
  layer.size("d", model.features);
  layer.size("f", model.inner);
  layer.parameter("norm_gain", {"d"}, "ones", same("post_attention_layernorm.weight"));
  layer.parameter("gate", {"d", "f"}, init, turned("mlp.gate_proj.weight"));
  layer.parameter("up", {"d", "f"}, init, turned("mlp.up_proj.weight"));
  layer.parameter("down", {"f", "d"}, init, turned("mlp.down_proj.weight"));
  layer.with("n", fmt::format("SELECT {} FROM x, norm_gain", rms_norm("x", model.epsilon, "norm_gain")));
  layer.with("u", fmt::format("SELECT {}(sum(n * gate)) * sum(n * up) FROM n, gate, up GROUP BY b, s, f",
                              model.activation));
  layer.select("SELECT x + sum(u * down) FROM x, u, down GROUP BY b, s, d");
  return layer;
}

// The router: the `chosen` experts of each token and their `weight`.
void add_routing(LayerText& layer, const Deepseek& model) {
  layer.with("scores", "SELECT sum(z * router) FROM z, router GROUP BY b, s, r");
  std::string likes = "chance";
  if (model.version3) {
    layer.with("chance", "SELECT sigmoid(scores) FROM scores");
    layer.with("liked", "SELECT chance + bias FROM chance, bias");
    likes = "liked";
  } else {
    layer.with("chance", "SELECT softmax(scores) OVER (PARTITION BY b, s) FROM scores");
  }
  if (model.grouped) {
    // Group-limited routing: a group's score is its best expert (V3: the sum of its best two).
    // Experts of other groups are masked.
    if (model.version3) {
      layer.with("two", fmt::format("SELECT top_k({0}, pair) OVER (PARTITION BY b, s, j) "
                                    "FROM {0}[b, s, r AS (j, m)]",
                                    likes));
      layer.with("best", "SELECT sum(two) FROM two GROUP BY b, s, j");
    } else {
      layer.with("best", fmt::format("SELECT max({0}) FROM {0}[b, s, r AS (j, m)] GROUP BY b, s, j", likes));
    }
    layer.with("first", "SELECT top_k(best, kept) OVER (PARTITION BY b, s) FROM best");
    layer.with("least", "SELECT min(first) FROM first GROUP BY b, s");
    layer.with("near", fmt::format("SELECT CASE WHEN best >= least THEN {0} ELSE 0 END "
                                   "FROM {0}[b, s, r AS (j, m)], best, least GROUP BY b, s, j, m",
                                   likes));
    layer.with("open", "SELECT near FROM near[b, s, (j, m) AS r]");
    likes = "open";
  }
  layer.with("chosen",
             fmt::format("SELECT top_k_positions({0}, k) OVER (PARTITION BY b, s) FROM {0}", likes));
  layer.with("some", "SELECT chance FROM chosen JOIN chance ON r = chosen");
  std::string weight = "some";
  if (model.normed) weight = "some / (sum(some) OVER (PARTITION BY b, s) + 1e-20)";
  if (model.scale != 1 && (model.version3 || !model.normed)) weight += fmt::format(" * {}", model.scale);
  layer.with("weight", fmt::format("SELECT {} FROM some", weight));
}

LayerText deepseek_experts(const std::string& name, const Deepseek& model) {
  LayerText layer(
      name + "_experts", "y[b, s, d]",
      "Each token is routed to k of x experts with c slots each, and to a shared expert of width w.");
  const std::string init = normal(model.range);
  layer.size("b", 1);
  layer.size("s", model.text_words());
  layer.size("d", model.features);
  layer.size("f", model.expert);
  layer.size("x", model.experts);
  layer.size("k", model.chosen);
  layer.size("w", model.shared * model.expert);
  layer.size("c", model.text_words());
  layer.size("p", model.experts * model.text_words(), "x * c");
  layer.size("r", model.experts, "x");  // as the router sees them: ranks that divide x route their own tokens
  if (model.grouped) {
    layer.size("j", model.groups);
    layer.size("m", model.experts / model.groups, "x / j");
    layer.size("kept", model.kept);
    if (model.version3) layer.size("pair", 2);
  }
  layer.parameter("norm_gain", {"d"}, "ones", same("post_attention_layernorm.weight"));
  layer.parameter("router", {"d", "r"}, init, turned("mlp.gate.weight"));
  layer.parameter("gate", {"x", "d", "f"}, init, transposed_experts("mlp.experts.{}.gate_proj.weight"));
  layer.parameter("up", {"x", "d", "f"}, init, transposed_experts("mlp.experts.{}.up_proj.weight"));
  layer.parameter("down", {"x", "f", "d"}, init, transposed_experts("mlp.experts.{}.down_proj.weight"));
  layer.parameter("shared_gate", {"d", "w"}, init, turned("mlp.shared_experts.gate_proj.weight"));
  layer.parameter("shared_up", {"d", "w"}, init, turned("mlp.shared_experts.up_proj.weight"));
  layer.parameter("shared_down", {"w", "d"}, init, turned("mlp.shared_experts.down_proj.weight"));
  if (model.version3) layer.state("bias", {"r"}, same("mlp.gate.e_score_correction_bias"));
  layer.with("z", fmt::format("SELECT {} FROM y, norm_gain", rms_norm("y", model.epsilon, "norm_gain")));
  add_routing(layer, model);
  layer.with("place", "SELECT slot(chosen, x, c) OVER (PARTITION BY b) FROM chosen");
  layer.with("sent", "SELECT sum(z) FROM z, place GROUP BY b, place AS p, d");
  layer.with("hidden", fmt::format("SELECT {}(sum(sent * gate)) * sum(sent * up) "
                                   "FROM sent[b, p AS (x, c), d], gate, up GROUP BY b, x, c, f",
                                   model.activation));
  layer.with("done", "SELECT sum(hidden * down) FROM hidden, down GROUP BY b, x, c, d");
  layer.with("mixed",
             "SELECT sum(weight * done) FROM weight, place JOIN done[b, (x, c) AS p, d] ON p = place "
             "GROUP BY b, s, d");
  layer.with("always", fmt::format("SELECT {}(sum(z * shared_gate)) * sum(z * shared_up) "
                                   "FROM z, shared_gate, shared_up GROUP BY b, s, w",
                                   model.activation));
  layer.select(
      "SELECT y + mixed + sum(always * shared_down) FROM y, mixed, always, shared_down GROUP BY b, s, d");
  return layer;
}

}  // namespace

Result<Imported> deepseek_of(Request request) {
  std::vector<std::string> notes;
  WEFT_TRY(head, head_of(request, request.architecture == "deepseek_v3"
                                      ? std::span<const HeadClass>(kDeepseek3Classes)
                                      : std::span<const HeadClass>(kDeepseek2Classes)));
  WEFT_TRY(model, read_deepseek(request, notes));
  WEFT_TRY(task, read_task(request, head.head, {}, notes));
  bool tied = false;
  if (head.head == Head::words) {
    WEFT_TRY(read, request.config.truth_or("tie_word_embeddings", false));
    tied = read;
  }
  const std::string& name = request.name;
  const LayerText attention = latent_attention(name, model), mlp = deepseek_mlp(name, model);
  const LayerText experts = deepseek_experts(name, model);
  ModelText text(
      name, text_inputs(head.head, task),
      fmt::format("DeepSeek-{}, as transformers' {} computes it.", model.version3 ? "V3" : "V2", head.name));
  text.layer(attention);
  if (model.dense > 0) text.layer(mlp);
  text.layer(experts);
  LayerText& body = text.body();
  const bool low_queries = model.query_latent > 0;
  body.size("b", 1);
  body.size("s", model.text_words());
  body.size("d", model.features);
  body.size("h", model.heads);
  body.size("l", model.latent);
  if (low_queries) body.size("m", model.query_latent);
  body.size("n", model.plain);
  body.size("r", model.rotary);
  body.size("e", model.value);
  if (model.dense > 0) body.size("f", model.inner);
  body.size("experts", model.experts);
  body.size("k", model.chosen);
  body.size("expert", model.expert);
  body.size("shared", model.shared * model.expert);
  const std::int64_t sent = model.text_words() * model.chosen;
  body.size("slots", (sent + model.experts - 1) / model.experts, "ceil(s * k / experts)");
  body.size("layers", model.layers);
  body.size("v", model.words);
  body.parameter("embed", {"v", "d"}, normal(model.range), same("model.embed_tokens.weight"));
  body.parameter("norm_gain", {"d"}, "ones", same("model.norm.weight"));
  if (head.head == Head::words && !tied)
    body.parameter("head", {"d", "v"}, normal(model.range), turned("lm_head.weight"));
  body.with("x", "SELECT embed FROM tokens JOIN embed ON v = tokens");
  add_rotary_tables(body, {model.turning});
  const std::string sizes = fmt::format("h = h, l = l, {}n = n, r = r, e = e", low_queries ? "m = m, " : "");
  if (model.dense > 0)
    body.with("x",
              fmt::format("\n    WITH a AS (SELECT * FROM {0}_attention(x{2}, {1}) AS first_attention)\n"
                          "    SELECT * FROM {0}_mlp(a, f = f) AS first_mlp",
                          name, sizes, rotary_call_arguments(model.turning)),
              fmt::format("REPEAT {} TIMES ", model.dense));
  const std::string rest = model.dense > 0 ? fmt::format("layers - {}", model.dense) : "layers";
  body.with("x",
            fmt::format("\n    WITH a AS (SELECT * FROM {0}_attention(x{2}, {1}) AS attention)\n"
                        "    SELECT * FROM {0}_experts(a, f = expert, x = experts, k = k, w = shared, c = "
                        "slots) AS experts",
                        name, sizes, rotary_call_arguments(model.turning)),
            fmt::format("REPEAT {} TIMES ", rest));
  if (model.dense > 0) {
    text.call(attention, "first_attention", "model.layers.{}.", model.dense);
    text.call(mlp, "first_mlp", "model.layers.{}.", model.dense);
  }
  text.call(attention, "attention", "model.layers.{}.", model.layers - model.dense, model.dense);
  text.call(experts, "experts", "model.layers.{}.", model.layers - model.dense, model.dense);
  body.with("z", fmt::format("SELECT {} FROM x, norm_gain", rms_norm("x", model.epsilon, "norm_gain")));
  if (head.head == Head::words) {
    body.with("logits",
              fmt::format("SELECT sum(z * {0}) FROM z, {0} GROUP BY b, s, v", tied ? "embed" : "head"));
    body.select(
        "SELECT mean(cross_entropy(logits, targets) OVER (PARTITION BY b, s)) AS loss FROM logits, targets");
  } else {
    add_text_head(body, head.head, task, "z", normal(model.range), "score");
  }
  notes.push_back(
      "an expert has slots for its share of the tokens and drops the rest: WITH (slots = s) drops none");
  return finish(request, text, std::move(notes));
}

}  // namespace weft::imports
