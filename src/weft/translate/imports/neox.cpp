// GPT-NeoX and Pythia: rotary positions on a quarter of each head, parallel attention and
// feed-forward.
#include <fmt/format.h>

#include "weft/translate/imports/parallel_block.h"

namespace weft::imports {
namespace {

constexpr HeadClass kNeoxClasses[] = {{"GPTNeoXForCausalLM", Head::words},
                                      {"GPTNeoXModel", Head::base},
                                      {"GPTNeoXForSequenceClassification", Head::sequence},
                                      {"GPTNeoXForTokenClassification", Head::tokens},
                                      {"GPTNeoXForQuestionAnswering", Head::question}};

Result<ParallelModel> read_neox(Request& request, std::vector<std::string>& notes) {
  Config& config = request.config;
  ParallelModel model;
  WEFT_TRY(features, config.size("hidden_size"));
  WEFT_TRY(layers, config.size("num_hidden_layers"));
  WEFT_TRY(heads, config.size("num_attention_heads"));
  WEFT_TRY(inner, config.size("intermediate_size"));
  WEFT_TRY(words, config.size("vocab_size"));
  WEFT_TRY(positions, config.size_or("max_position_embeddings", 2048));
  WEFT_TRY_STATUS(expect_divides("num_attention_heads", heads, "hidden_size", features));
  WEFT_TRY(activation, activation_of(config, "hidden_act", "gelu"));
  WEFT_TRY(epsilon, config.rate_or("layer_norm_eps", 1e-5));
  WEFT_TRY(range, config.rate_or("initializer_range", 0.02));
  WEFT_TRY(attention_dropout, config.rate_or("attention_dropout", 0));
  WEFT_TRY(dropout, config.rate_or("hidden_dropout", 0));
  WEFT_TRY(biases, config.truth_or("attention_bias", true));
  WEFT_TRY(parallel, config.truth_or("use_parallel_residual", true));
  model.features = features;
  model.layers = layers;
  model.heads = heads;
  model.head_size = features / heads;
  model.inner = inner;
  model.words = words;
  model.positions = positions;
  model.activation = activation;
  model.epsilon = epsilon;
  model.range = range;
  model.attention_dropout = attention_dropout;
  model.embedding_dropout = model.first_dropout = model.second_dropout = dropout;
  model.attention_bias = biases;
  model.mlp_bias = true;
  model.parallel = parallel;
  const RotaryFields fields{
      .base = "rotary_emb_base", .part = "rotary_pct", .part_otherwise = 0.25, .some_may_rest = true};
  WEFT_TRY(rotary, read_rotary(request, fields, {.head = model.head_size, .positions = positions}, notes));
  model.rotary = std::move(rotary);
  model.prefix = "gpt_neox.";
  model.attention = "attention.";
  model.first_norm = "input_layernorm";
  model.second_norm = "post_attention_layernorm";
  model.embedding = "embed_in";
  model.last_norm = "final_layer_norm";
  return model;
}

}  // namespace

Result<Imported> neox_of(Request request) {
  std::vector<std::string> notes;
  WEFT_TRY(head, head_of(request, kNeoxClasses));
  WEFT_TRY(model, read_neox(request, notes));
  if (head.head == Head::words) {
    WEFT_TRY(tied, request.config.truth_or("tie_word_embeddings", false));
    model.tied = tied;
  }
  WEFT_TRY(task, read_task(request, head.head, {.hidden_dropout = false}, notes));
  return parallel_model(request, model, head, task, "GPT-NeoX", std::move(notes));
}

}  // namespace weft::imports
