// Falcon: multi-query or grouped-query attention, parallel attention and feed-forward, rotary
// positions or ALiBi.
#include <fmt/format.h>

#include "weft/translate/imports/parallel_block.h"

namespace weft::imports {
namespace {

constexpr HeadClass kFalconClasses[] = {{"FalconForCausalLM", Head::words},
                                        {"FalconModel", Head::base},
                                        {"FalconForSequenceClassification", Head::sequence},
                                        {"FalconForTokenClassification", Head::tokens},
                                        {"FalconForQuestionAnswering", Head::question}};

// Reads the query groups and the norms of a block.
Status read_falcon_shape(Config& config, std::int64_t heads, ParallelModel& model) {
  WEFT_TRY(newer, config.truth_or("new_decoder_architecture", false));
  WEFT_TRY(shared, config.truth_or("multi_query", true));
  WEFT_TRY(parallel, config.truth_or("parallel_attn", true));
  WEFT_TRY(own, config.size_or("num_kv_heads", heads));
  WEFT_TRY(norms, config.size_or("num_ln_in_parallel_attn", newer ? 2 : 1));
  if (newer && !parallel)
    return config.refuse("parallel_attn", "expected true with new_decoder_architecture");
  if (norms > 2 || (norms == 2 && !newer))
    return config.refuse("num_ln_in_parallel_attn",
                         newer ? "expected 1 or 2" : "expected 1, or new_decoder_architecture");
  model.heads = newer ? own : shared ? 1 : heads;
  if (newer) WEFT_TRY_STATUS(expect_divides("num_kv_heads", own, "num_attention_heads", heads));
  model.groups = heads / model.heads;
  model.parallel = parallel;
  model.two_norms = norms == 2 || !parallel;
  model.first_norm = norms == 2 ? "ln_attn" : "input_layernorm";
  model.second_norm = norms == 2 ? "ln_mlp" : "post_attention_layernorm";
  return {};
}

Result<ParallelModel> read_falcon(Request& request, std::vector<std::string>& notes) {
  Config& config = request.config;
  ParallelModel model;
  WEFT_TRY(features, config.size("hidden_size"));
  WEFT_TRY(layers, config.size("num_hidden_layers"));
  WEFT_TRY(heads, config.size("num_attention_heads"));
  WEFT_TRY(words, config.size("vocab_size"));
  WEFT_TRY(positions, config.size_or("max_position_embeddings", 2048));
  WEFT_TRY(inner, config.size_or("ffn_hidden_size", 4 * features));
  WEFT_TRY_STATUS(expect_divides("num_attention_heads", heads, "hidden_size", features));
  WEFT_TRY(activation, activation_of(config, "activation", "gelu"));
  WEFT_TRY(epsilon, config.rate_or("layer_norm_epsilon", 1e-5));
  WEFT_TRY(range, config.rate_or("initializer_range", 0.02));
  WEFT_TRY(attention_dropout, config.rate_or("attention_dropout", 0));
  WEFT_TRY(dropout, config.rate_or("hidden_dropout", 0));
  WEFT_TRY(biases, config.truth_or("bias", false));
  WEFT_TRY(alibi, config.truth_or("alibi", false));
  WEFT_TRY_STATUS(read_falcon_shape(config, heads, model));
  model.features = features;
  model.layers = layers;
  model.head_size = features / heads;
  model.inner = inner;
  model.words = words;
  model.positions = positions;
  model.activation = activation;
  model.epsilon = epsilon;
  model.range = range;
  // The class drops attention probabilities only with ALiBi, and attention's output only in
  // sequential blocks.
  model.attention_dropout = alibi ? attention_dropout : 0;
  model.first_dropout = model.parallel ? 0 : attention_dropout;
  model.second_dropout = dropout;
  model.attention_bias = model.mlp_bias = biases;
  model.added_first = true;
  model.alibi = alibi;
  if (alibi) {
    notes.push_back("ALiBi slopes are not rounded to bf16 as in transformers");
  } else {
    WEFT_TRY(rotary, read_rotary(request, {}, {.head = model.head_size, .positions = positions}, notes));
    model.rotary = std::move(rotary);
  }
  model.prefix = "transformer.";
  model.attention = "self_attention.";
  model.embedding = "word_embeddings";
  model.last_norm = "ln_f";
  return model;
}

}  // namespace

Result<Imported> falcon_of(Request request) {
  std::vector<std::string> notes;
  WEFT_TRY(head, head_of(request, kFalconClasses));
  WEFT_TRY(model, read_falcon(request, notes));
  if (head.head == Head::words) {
    WEFT_TRY(tied, request.config.truth_or("tie_word_embeddings", true));
    model.tied = tied;
  }
  // Without classifier_dropout, the class uses hidden_dropout, which always has a value.
  WEFT_TRY(task, read_task(request, head.head, {.dropout = 0}, notes));
  return parallel_model(request, model, head, task, "Falcon", std::move(notes));
}

}  // namespace weft::imports
