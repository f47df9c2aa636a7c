// Llama-like models: repeated layers and the head of the class. Gemma, Mistral, Mixtral, Nemotron,
// OLMo, Phi-3, Qwen.
#include <algorithm>
#include <map>
#include <span>

#include <fmt/format.h>

#include "weft/translate/imports/decoder.h"
#include "weft/translate/imports/layer_runs.h"

namespace weft::imports {
namespace {

using enum Head;

constexpr HeadClass kGemmaClasses[] = {{"GemmaForCausalLM", words},
                                       {"GemmaModel", base},
                                       {"GemmaForSequenceClassification", sequence},
                                       {"GemmaForTokenClassification", tokens}};
constexpr HeadClass kGemma2Classes[] = {{"Gemma2ForCausalLM", words},
                                        {"Gemma2Model", base},
                                        {"Gemma2ForSequenceClassification", sequence},
                                        {"Gemma2ForTokenClassification", tokens}};
constexpr HeadClass kGemma3Classes[] = {{"Gemma3ForCausalLM", words},
                                        {"Gemma3TextModel", base},
                                        {"Gemma3TextForSequenceClassification", sequence}};
constexpr HeadClass kLlamaClasses[] = {{"LlamaForCausalLM", words},
                                       {"LlamaModel", base},
                                       {"LlamaForSequenceClassification", sequence},
                                       {"LlamaForTokenClassification", tokens},
                                       {"LlamaForQuestionAnswering", question}};
constexpr HeadClass kMistralClasses[] = {{"MistralForCausalLM", words},
                                         {"MistralModel", base},
                                         {"MistralForSequenceClassification", sequence},
                                         {"MistralForTokenClassification", tokens},
                                         {"MistralForQuestionAnswering", question}};
constexpr HeadClass kMixtralClasses[] = {{"MixtralForCausalLM", words},
                                         {"MixtralModel", base},
                                         {"MixtralForSequenceClassification", sequence},
                                         {"MixtralForTokenClassification", tokens},
                                         {"MixtralForQuestionAnswering", question}};
constexpr HeadClass kNemotronClasses[] = {{"NemotronForCausalLM", words},
                                          {"NemotronModel", base},
                                          {"NemotronForSequenceClassification", sequence},
                                          {"NemotronForTokenClassification", tokens},
                                          {"NemotronForQuestionAnswering", question}};
constexpr HeadClass kOlmoClasses[] = {
    {"OlmoForCausalLM", words}, {"OlmoModel", base}, {"OlmoForSequenceClassification", sequence}};
constexpr HeadClass kOlmo2Classes[] = {
    {"Olmo2ForCausalLM", words}, {"Olmo2Model", base}, {"Olmo2ForSequenceClassification", sequence}};
constexpr HeadClass kPhi3Classes[] = {{"Phi3ForCausalLM", words},
                                      {"Phi3Model", base},
                                      {"Phi3ForSequenceClassification", sequence},
                                      {"Phi3ForTokenClassification", tokens}};
constexpr HeadClass kQwen2Classes[] = {{"Qwen2ForCausalLM", words},
                                       {"Qwen2Model", base},
                                       {"Qwen2ForSequenceClassification", sequence},
                                       {"Qwen2ForTokenClassification", tokens},
                                       {"Qwen2ForQuestionAnswering", question}};
constexpr HeadClass kQwen3Classes[] = {{"Qwen3ForCausalLM", words},
                                       {"Qwen3Model", base},
                                       {"Qwen3ForSequenceClassification", sequence},
                                       {"Qwen3ForTokenClassification", tokens},
                                       {"Qwen3ForQuestionAnswering", question}};

constexpr HeadClass kQwen3MoeClasses[] = {{"Qwen3MoeForCausalLM", words},
                                          {"Qwen3MoeModel", base},
                                          {"Qwen3MoeForSequenceClassification", sequence},
                                          {"Qwen3MoeForTokenClassification", tokens},
                                          {"Qwen3MoeForQuestionAnswering", question}};

struct DecoderName {
  std::string_view model_type, title;
  std::span<const HeadClass> classes;
  std::int64_t pad;  // the class's default; -1: none
  bool tied;
};
constexpr DecoderName kDecoderNames[] = {
    {"gemma", "Gemma", kGemmaClasses, 0, true},
    {"gemma2", "Gemma 2", kGemma2Classes, 0, true},
    {"gemma3_text", "Gemma 3", kGemma3Classes, 0, true},
    {"llama", "Llama", kLlamaClasses, -1, false},
    {"mistral", "Mistral", kMistralClasses, -1, false},
    {"mixtral", "Mixtral", kMixtralClasses, -1, false},
    {"nemotron", "Nemotron", kNemotronClasses, -1, false},
    {"olmo", "OLMo", kOlmoClasses, 1, false},
    {"olmo2", "OLMo 2", kOlmo2Classes, 1, false},
    {"phi3", "Phi-3", kPhi3Classes, 32000, false},
    {"qwen2", "Qwen2", kQwen2Classes, -1, false},
    {"qwen3", "Qwen3", kQwen3Classes, -1, false},
    {"qwen3_moe", "Qwen3 MoE", kQwen3MoeClasses, -1, false},
};

// Distinct kinds in order of their first layers, and the kind of each layer.
struct Kinds {
  std::vector<LayerKind> distinct;
  std::vector<std::size_t> of_layer;
};

Kinds distinct_kinds(const Decoder& model) {
  Kinds kinds;
  for (const LayerKind& kind : model.kinds) {
    const auto found = std::ranges::find(kinds.distinct, kind);
    kinds.of_layer.push_back(static_cast<std::size_t>(found - kinds.distinct.begin()));
    if (found == kinds.distinct.end()) kinds.distinct.push_back(kind);
  }
  return kinds;
}

// The layers of a model: their texts, and the REPEATs that call them.
class Blocks {
 public:
  Blocks(ModelText& text, const std::string& name, const Decoder& model)
      : text_(text), name_(name), model_(model), kinds_(distinct_kinds(model)) {
    for (const LayerKind& kind : kinds_.distinct) {
      suffixes_.push_back(kinds_.distinct.size() > 1 && kind != LayerKind{} ? "window_attention"
                                                                            : "attention");
      attentions_.push_back(decoder_attention(fmt::format("{}_{}", name, suffixes_.back()), model, kind));
      text.layer(attentions_.back());
    }
    second_ = model.experts > 0 ? "experts" : "mlp";
    const std::string second_name = fmt::format("{}_{}", name, second_);
    seconds_.push_back(model.experts > 0 ? decoder_experts(second_name, model)
                                         : decoder_mlp(second_name, model));
    text.layer(seconds_.back());
  }

  void call() {
    const std::vector<LayerRun> runs = layer_runs(kinds_.of_layer);
    const bool simple = runs.size() == 1 && runs.front().kinds.size() == 1;
    if (simple) text_.body().size("layers", model_.layers);
    for (const LayerRun& run : runs) call_run(run, simple ? "layers" : std::to_string(run.times));
  }

 private:
  // A unique name for another call of that layer.
  std::string fresh(const std::string& of) {
    const int count = ++calls_[of];
    return count == 1 ? of : fmt::format("{}_{}", of, count);
  }

  void call_run(const LayerRun& run, const std::string& times) {
    const auto stride = static_cast<std::int64_t>(run.kinds.size());
    const bool repeats = run.times > 1 || times == "layers";
    std::string query = "\n    WITH ";
    for (std::size_t i = 0; i < run.kinds.size(); ++i) {
      const std::size_t kind = run.kinds[i];
      const std::string attention = fresh(suffixes_[kind]), second = fresh(second_);
      const bool last = i + 1 == run.kinds.size();
      query +=
          fmt::format("a AS (SELECT * FROM {}_{}(x{}, h = h, g = g, e = e) AS {})", name_, suffixes_[kind],
                      rotary_call_arguments(model_.rotary_of(kinds_.distinct[kind])), attention);
      const std::string made = model_.experts > 0
                                   ? fmt::format("{}_experts(a, f = f, x = experts, k = k, c = slots)", name_)
                                   : fmt::format("{}_mlp(a, f = f)", name_);
      query += last ? fmt::format("\n    SELECT * FROM {} AS {}", made, second)
                    : fmt::format(",\n         x AS (SELECT * FROM {} AS {}),\n         ", made, second);
      for (const auto& [layer, as] : {std::pair{&attentions_[kind], attention}, {&seconds_.front(), second}})
        text_.call(*layer, as, "model.layers.{}.", repeats ? run.times : 0,
                   run.first + static_cast<std::int64_t>(i), stride);
    }
    text_.body().with("x", query, repeats ? fmt::format("REPEAT {} TIMES ", times) : "");
  }

  ModelText& text_;
  const std::string& name_;
  const Decoder& model_;
  Kinds kinds_;
  std::vector<std::string> suffixes_;
  std::vector<LayerText> attentions_, seconds_;
  std::string second_;
  std::map<std::string, int> calls_;
};

void add_sizes(LayerText& body, const Decoder& model, std::vector<std::string>& notes) {
  body.size("b", 1);
  body.size("s", model.text_words());
  body.size("d", model.features);
  body.size("h", model.heads);
  body.size("g", model.groups);
  body.size("e", model.head_size);
  body.size("f", model.inner);
  if (model.experts > 0) {
    body.size("experts", model.experts);
    body.size("k", model.chosen);
    // The expert capacity of a balanced router, rounded up.
    const std::int64_t sent = model.text_words() * model.chosen;
    body.size("slots", (sent + model.experts - 1) / model.experts, "ceil(s * k / experts)");
    notes.push_back(
        "an expert has slots for its share of the tokens and drops the rest: WITH (slots = s) drops none");
  }
}

void add_words_head(LayerText& body, const Decoder& model) {
  const std::string weight = model.tied ? "embed" : "head";
  if (!model.tied) body.parameter("head", {"d", "v"}, normal(model.range), turned("lm_head.weight"));
  const std::string product = fmt::format("sum(n * {})", weight);
  body.with("logits",
            fmt::format("SELECT {} FROM n, {} GROUP BY b, s, v",
                        model.logit_cap > 0 ? fmt::format("tanh({0} / {1}) * {1}", product, model.logit_cap)
                                            : product,
                        weight));
  body.select(
      "SELECT mean(cross_entropy(logits, targets) OVER (PARTITION BY b, s)) AS loss FROM logits, targets");
}

}  // namespace

Result<Imported> llama_of(Request request) {
  const DecoderName& family =
      *std::ranges::find(kDecoderNames, request.architecture, &DecoderName::model_type);
  std::vector<std::string> notes;
  WEFT_TRY(head, head_of(request, family.classes));
  WEFT_TRY(model, read_decoder(request, head.head, notes));
  if (head.head == words) {
    WEFT_TRY(tied, request.config.truth_or("tie_word_embeddings", family.tied));
    model.tied = tied;
  }
  const auto pad = family.pad < 0 ? std::optional<std::int64_t>() : family.pad;
  WEFT_TRY(task, read_task(request, head.head, {.pad = pad}, notes));
  ModelText text(request.name, text_inputs(head.head, task),
                 fmt::format("{}, as transformers' {} computes it.", family.title, head.name));
  LayerText& body = text.body();
  Blocks blocks(text, request.name, model);
  add_sizes(body, model, notes);
  body.parameter("embed", {"v", "d"}, normal(model.range), same("model.embed_tokens.weight"));
  add_norm(body, model, "norm_gain", {"d"}, "model.norm.weight");
  body.with("x", fmt::format("SELECT embed{} FROM tokens JOIN embed ON v = tokens",
                             model.scaled_embedding ? " * sqrt(size(d))" : ""));
  std::vector<Rotary> rotaries;
  for (const Rotary* rotary : {&model.rotary, &model.local_rotary})
    if (std::ranges::any_of(model.kinds,
                            [&](const LayerKind& kind) { return &model.rotary_of(kind) == rotary; }))
      rotaries.push_back(*rotary);
  add_rotary_tables(body, rotaries);
  blocks.call();
  body.size("v", model.words);
  body.with("n", fmt::format("SELECT {} FROM x{}", decoder_norm(model, "x", "norm_gain"),
                             norm_source(model, "norm_gain")));
  if (head.head == words)
    add_words_head(body, model);
  else
    add_text_head(body, head.head, task, "n", normal(model.range), "score");
  if (model.positions > model.text_words())
    notes.push_back(fmt::format("texts of {} tokens; the model supports up to {}: WITH (s = {})",
                                model.text_words(), model.positions, model.positions));
  return finish(request, text, std::move(notes));
}

}  // namespace weft::imports
