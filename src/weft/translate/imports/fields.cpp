#include "weft/translate/imports/fields.h"

#include <iterator>
#include <map>
#include <span>

namespace weft::imports {
namespace {

using enum Use;

constexpr std::string_view kGeneration = "for generation";
constexpr std::string_view kOutputs = "controls extra return values";
constexpr std::string_view kSaver = "about the program that saved the file";
constexpr std::string_view kSpeed = "changes the implementation, not the result";
constexpr std::string_view kUnused = "the class has no such component";

constexpr Field kCommon[] = {
    {"_name_or_path", honoured},
    {"architectures", honoured},
    {"auto_map", honoured},
    {"dtype", honoured},
    {"model_type", honoured},
    {"quantization_config", honoured},
    {"torch_dtype", honoured},
    {"_attn_implementation", harmless, kSpeed},
    {"_attn_implementation_autoset", harmless, kSpeed},
    {"_commit_hash", harmless, kSaver},
    {"attn_implementation", harmless, kSpeed},
    {"bad_words_ids", harmless, kGeneration},
    {"begin_suppress_tokens", harmless, kGeneration},
    {"bos_token_id", harmless, kGeneration},
    {"cache_implementation", harmless, kGeneration},
    {"chunk_size_feed_forward", harmless, kSpeed},
    {"cross_attention_hidden_size", only, "null"},
    {"decoder_start_token_id", harmless, kGeneration},
    {"diversity_penalty", harmless, kGeneration},
    {"do_sample", harmless, kGeneration},
    {"early_stopping", harmless, kGeneration},
    {"encoder_no_repeat_ngram_size", harmless, kGeneration},
    {"eos_token_id", harmless, kGeneration},
    {"exponential_decay_length_penalty", harmless, kGeneration},
    {"finetuning_task", harmless, kSaver},
    {"forced_bos_token_id", harmless, kGeneration},
    {"forced_decoder_ids", harmless, kGeneration},
    {"forced_eos_token_id", harmless, kGeneration},
    {"gradient_checkpointing", harmless, kSpeed},
    {"id2label", harmless, "the class has no labels"},
    {"is_encoder_decoder", harmless, "determined by model_type"},
    {"keys_to_ignore_at_inference", harmless, kOutputs},
    {"label2id", harmless, "names of labels; id2label counts them"},
    {"length_penalty", harmless, kGeneration},
    {"license", harmless, kSaver},
    {"max_length", harmless, kGeneration},
    {"min_length", harmless, kGeneration},
    {"mlx", harmless, kSaver},
    {"no_repeat_ngram_size", harmless, kGeneration},
    {"num_beam_groups", harmless, kGeneration},
    {"num_beams", harmless, kGeneration},
    {"num_labels", harmless, "the class has no labels"},
    {"num_return_sequences", harmless, kGeneration},
    {"output_attentions", harmless, kOutputs},
    {"output_hidden_states", harmless, kOutputs},
    {"output_past", harmless, kOutputs},
    {"output_scores", harmless, kOutputs},
    {"pad_token_id", harmless, "no effect on the forward pass"},
    {"prefix", harmless, kGeneration},
    {"problem_type", harmless, "the class has no labels"},
    {"pruned_heads", only, "{}"},
    {"remove_invalid_values", harmless, kGeneration},
    {"repetition_penalty", harmless, kGeneration},
    {"return_dict", harmless, kOutputs},
    {"return_dict_in_generate", harmless, kGeneration},
    {"sep_token_id", harmless, kGeneration},
    {"suppress_tokens", harmless, kGeneration},
    {"task_specific_params", harmless, kGeneration},
    {"temperature", harmless, kGeneration},
    {"tf_legacy_loss", harmless, "for TensorFlow classes"},
    {"tie_encoder_decoder", only, "false"},
    {"tokenizer_class", harmless, "used by the tokenizer"},
    {"top_k", harmless, kGeneration},
    {"top_p", harmless, kGeneration},
    {"torchscript", harmless, kSpeed},
    {"transformers.js_config", harmless, kSaver},
    {"transformers_version", harmless, kSaver},
    {"typical_p", harmless, kGeneration},
    {"unsloth_fixed", harmless, kSaver},
    {"unsloth_version", harmless, kSaver},
    {"use_bfloat16", harmless, "for TPUs, which Weft does not support"},
    {"use_cache", harmless, kGeneration},
};

// -- groups that several families share

constexpr Field kLabels[] = {
    {"id2label", honoured, "sequence tokens"},
    {"num_labels", honoured, "sequence tokens"},
    {"problem_type", honoured, "sequence"},
};
constexpr Field kTextLabels[] = {
    {"classifier_dropout", honoured, "tokens"},
    {"pad_token_id", honoured, "sequence"},
};
constexpr Field kBlocks[] = {
    {"hidden_size", honoured},       {"initializer_range", honoured},
    {"intermediate_size", honoured}, {"num_attention_heads", honoured},
    {"num_hidden_layers", honoured}, {"vocab_size", honoured},
    {"hidden_act", honoured},        {"tie_word_embeddings", honoured, "words"},
};
constexpr Field kRotary[] = {
    {"max_position_embeddings", honoured},
    {"original_max_position_embeddings", honoured},
    {"partial_rotary_factor", honoured},
    {"rope_parameters", honoured},
    {"rope_scaling", honoured},
    {"rope_theta", honoured},
};
constexpr Field kDecoder[] = {
    {"attention_dropout", honoured},
    {"head_dim", honoured},
    {"num_key_value_heads", honoured},
    {"rms_norm_eps", honoured},
    {"hidden_dropout", honoured, "tokens"},  // if there is no classifier_dropout
    {"is_decoder", harmless, "these models are decoders regardless"},
    {"layer_types", honoured},
    {"mlp_bias", only, "false"},
    {"attention_bias", only, "false"},
    {"clip_qkv", only, "null"},
    {"logit_scale", only, "null"},
    {"qk_layernorm", only, "false"},
    {"use_bidirectional_attention", only, "false"},
    {"attn_logit_softcapping", only, "null"},
    {"final_logit_softcapping", only, "null"},
    {"token_classification_bias", only, "true"},
};

// -- fields of one family

constexpr Field kLlama[] = {
    {"attention_bias", honoured},
    {"mlp_bias", honoured},
    {"pretraining_tp", harmless, "splits products without changing their sum"},
    {"sliding_window", harmless, kUnused},
    {"use_sliding_window", harmless, kUnused},
    {"max_window_layers", harmless, kUnused},
};
constexpr Field kMistral[] = {{"sliding_window", honoured}};
constexpr Field kMixtral[] = {
    {"num_experts", same_as, "num_local_experts"},
    {"num_experts_per_tok", honoured},
    {"num_local_experts", honoured},
    {"output_router_logits", honoured},
    {"router_aux_loss_coef", honoured},
    {"router_jitter_noise", only, "0"},
    {"sliding_window", honoured},
};
constexpr Field kWindows[] = {
    {"max_window_layers", honoured},
    {"sliding_window", honoured},
    {"use_sliding_window", honoured},
};
constexpr Field kQwen2[] = {{"attention_bias", only, "true"}};
constexpr Field kQwen3[] = {{"attention_bias", honoured}};
constexpr Field kQwen3Moe[] = {
    {"decoder_sparse_step", only, "1"},
    {"intermediate_size", harmless, "the width of layers without experts, of which there are none"},
    {"mlp_only_layers", only, "[]"},
    {"moe_intermediate_size", honoured},
    {"norm_topk_prob", honoured},
    {"num_experts", honoured},
    {"num_experts_per_tok", honoured},
    {"num_local_experts", same_as, "num_experts"},
    {"output_router_logits", honoured},
    {"router_aux_loss_coef", honoured},
};
constexpr Field kNemotron[] = {
    {"attention_bias", honoured},
    {"norm_eps", honoured},
    {"rms_norm_eps", harmless, "determined by norm_eps"},
};
constexpr Field kGemma[] = {
    {"attention_bias", honoured},
    {"hidden_activation", honoured},
};
constexpr Field kGemma2[] = {
    {"attn_logit_softcapping", honoured},
    {"final_logit_softcapping", honoured, "words"},
    {"hidden_act", harmless, "determined by hidden_activation"},
    {"query_pre_attn_scalar", honoured},
    {"sliding_window", honoured},
    {"sliding_window_size", harmless, "determined by sliding_window"},
};
constexpr Field kGemma3[] = {
    {"attn_logit_softcapping", only, "null"},
    {"rope_local_base_freq", honoured},
    {"sliding_window_pattern", honoured},
    {"_sliding_window_pattern", harmless, "determined by layer_types or sliding_window_pattern"},
};
constexpr Field kPhi3[] = {
    {"embd_pdrop", harmless, "the class does not apply it"},
    {"resid_pdrop", honoured},
    {"sliding_window", honoured},
};
constexpr Field kOlmo[] = {
    {"attention_bias", honoured},
    {"clip_qkv", honoured},
    {"rms_norm_eps", harmless, "the class fixes epsilon to 1e-5"},
};
constexpr Field kOlmo2[] = {{"attention_bias", honoured}};
constexpr Field kNeox[] = {
    {"attention_bias", honoured},
    {"attention_dropout", honoured},
    {"head_dim", only, "null"},
    {"hidden_dropout", honoured},
    {"is_decoder", harmless, "the model is a decoder regardless"},
    {"layer_norm_eps", honoured},
    {"rotary_emb_base", honoured},
    {"rotary_pct", honoured},
    {"rope_theta", only, "null"},  // the class reads rotary_emb_base
    {"partial_rotary_factor", only, "null"},
    {"use_parallel_residual", honoured},
};
constexpr Field kFalcon[] = {
    {"activation", honoured},
    {"alibi", honoured},
    {"attention_dropout", honoured},
    {"bias", honoured},
    {"ffn_hidden_size", honoured},
    {"hidden_act", harmless, "determined by activation"},
    {"hidden_dropout", honoured},
    {"intermediate_size", harmless, "determined by ffn_hidden_size"},
    {"layer_norm_epsilon", honoured},
    {"multi_query", honoured},
    {"n_embed", same_as, "hidden_size"},
    {"n_head", same_as, "num_attention_heads"},
    {"n_layer", same_as, "num_hidden_layers"},
    {"new_decoder_architecture", honoured},
    {"num_kv_heads", honoured},
    {"num_ln_in_parallel_attn", honoured},
    {"parallel_attn", honoured},
    {"apply_residual_connection_post_layernorm", only, "false"},
};
constexpr Field kDeepseek[] = {
    {"attention_dropout", honoured},
    {"aux_loss_alpha", harmless, "the class does not compute the loss that balances experts"},
    {"ep_size", harmless, kSpeed},
    {"first_k_dense_replace", honoured},
    {"head_dim", harmless, "determined by qk_rope_head_dim"},
    {"kv_lora_rank", honoured},
    {"moe_intermediate_size", honoured},
    {"moe_layer_freq", only, "1"},
    {"n_group", honoured},
    {"n_routed_experts", honoured},
    {"n_shared_experts", honoured},
    {"norm_topk_prob", honoured},
    {"num_experts_per_tok", honoured},
    {"num_key_value_heads", same_as, "num_attention_heads"},
    {"num_experts", same_as, "n_routed_experts"},
    {"num_local_experts", same_as, "n_routed_experts"},
    {"pretraining_tp", harmless, "splits products without changing their sum"},
    {"q_lora_rank", honoured},
    {"qk_head_dim", harmless, "determined by qk_nope_head_dim and qk_rope_head_dim"},
    {"qk_nope_head_dim", honoured},
    {"qk_rope_head_dim", honoured},
    {"rms_norm_eps", honoured},
    {"routed_scaling_factor", honoured},
    {"seq_aux", harmless, "the class does not compute the loss that balances experts"},
    {"topk_group", honoured},
    {"v_head_dim", honoured},
    {"attention_bias", only, "false"},
    {"mlp_bias", only, "false"},
    {"hidden_dropout", honoured, "tokens"},
};
constexpr Field kDeepseek2[] = {
    {"rope_interleave", only, "true"},
    {"scoring_func", only, "\"softmax\""},
    {"topk_method", honoured},
};
constexpr Field kDeepseek3[] = {
    {"mlp_bias", harmless, kUnused},        {"num_mtp_layers", honoured},
    {"num_nextn_predict_layers", honoured}, {"rope_interleave", honoured},
    {"scoring_func", only, "\"sigmoid\""},  {"topk_method", only, "\"noaux_tc\""},
};
constexpr Field kGpt2[] = {
    {"activation_function", honoured},
    {"add_cross_attention", only, "false"},
    {"attn_pdrop", honoured},
    {"embd_pdrop", honoured},
    {"head_dim", only, "null"},
    {"hidden_dropout", honoured, "tokens"},
    {"hidden_size", same_as, "n_embd"},
    {"initializer_range", honoured},
    {"is_decoder", harmless, "the model is a decoder regardless"},
    {"layer_norm_epsilon", honoured},
    {"max_position_embeddings", same_as, "n_positions"},
    {"n_ctx", harmless, "determined by n_positions"},
    {"n_embd", honoured},
    {"n_head", honoured},
    {"n_inner", honoured},
    {"n_layer", honoured},
    {"n_positions", honoured},
    {"num_attention_heads", same_as, "n_head"},
    {"num_hidden_layers", same_as, "n_layer"},
    {"reorder_and_upcast_attn", harmless, kSpeed},
    {"resid_pdrop", honoured},
    {"scale_attn_by_inverse_layer_idx", only, "false"},
    {"scale_attn_weights", honoured},
    {"summary_activation", harmless, "used by GPT2DoubleHeadsModel"},
    {"summary_first_dropout", harmless, "used by GPT2DoubleHeadsModel"},
    {"summary_proj_to_labels", harmless, "used by GPT2DoubleHeadsModel"},
    {"summary_type", harmless, "used by GPT2DoubleHeadsModel"},
    {"summary_use_proj", harmless, "used by GPT2DoubleHeadsModel"},
    {"tie_word_embeddings", honoured, "words"},
    {"vocab_size", honoured},
};
constexpr Field kBert[] = {
    {"add_cross_attention", only, "false"},
    {"attention_probs_dropout_prob", honoured},
    {"classifier_dropout", honoured, "sequence tokens"},
    {"directionality", harmless, "written by old versions with one fixed value"},
    {"embedding_size", same_as, "hidden_size"},
    {"hidden_dropout_prob", honoured},
    {"is_decoder", only, "false"},
    {"layer_norm_eps", honoured},
    {"max_position_embeddings", honoured},
    {"pooler_fc_size", harmless, "written by old versions with one fixed value"},
    {"pooler_num_attention_heads", harmless, "written by old versions with one fixed value"},
    {"pooler_num_fc_layers", harmless, "written by old versions with one fixed value"},
    {"pooler_size_per_head", harmless, "written by old versions with one fixed value"},
    {"pooler_type", harmless, "written by old versions with one fixed value"},
    {"position_embedding_type", only, "\"absolute\""},
    {"tie_word_embeddings", honoured, "words pretraining"},
    {"type_vocab_size", honoured},
};
constexpr Field kT5[] = {
    {"classifier_dropout", harmless, "used only by unsupported classes"},
    {"d_ff", honoured},
    {"d_kv", honoured},
    {"d_model", honoured},
    {"dense_act_fn", harmless, "determined by feed_forward_proj"},
    {"dropout_rate", honoured},
    {"feed_forward_proj", honoured},
    {"head_dim", same_as, "d_kv"},
    {"hidden_size", same_as, "d_model"},
    {"initializer_factor", honoured},
    {"is_decoder", harmless, "set by the encoder and decoder themselves"},
    {"is_gated_act", harmless, "determined by feed_forward_proj"},
    {"layer_norm_epsilon", honoured},
    {"n_positions", harmless, "positions are relative"},
    {"num_attention_heads", same_as, "num_heads"},
    {"num_decoder_layers", honoured, "words base"},
    {"num_heads", honoured},
    {"num_hidden_layers", same_as, "num_layers"},
    {"num_layers", honoured},
    {"relative_attention_max_distance", honoured},
    {"relative_attention_num_buckets", honoured},
    {"tie_word_embeddings", honoured, "words"},
    {"vocab_size", honoured},
};
constexpr Field kVit[] = {
    {"attention_probs_dropout_prob", honoured},
    {"encoder_stride", harmless, "used by ViTForMaskedImageModeling"},
    {"hidden_dropout_prob", honoured},
    {"image_size", honoured},
    {"layer_norm_eps", honoured},
    {"num_channels", honoured},
    {"patch_size", honoured},
    {"pooler_act", honoured, "base"},
    {"pooler_output_size", honoured, "base"},
    {"qkv_bias", honoured},
    {"vocab_size", harmless, kUnused},
    {"tie_word_embeddings", harmless, kUnused},
};
constexpr Field kWhisper[] = {
    {"activation_dropout", honoured},
    {"activation_function", honoured},
    {"apply_spec_augment", only, "false"},
    {"attention_dropout", honoured},
    {"classifier_proj_size", honoured, "sequence"},
    {"d_model", honoured},
    {"decoder_attention_heads", honoured, "words base"},
    {"decoder_ffn_dim", honoured, "words base"},
    {"decoder_layerdrop", only, "0"},
    {"decoder_layers", honoured, "words base"},
    {"dropout", honoured},
    {"encoder_attention_heads", honoured},
    {"encoder_ffn_dim", honoured},
    {"encoder_layerdrop", only, "0"},
    {"encoder_layers", honoured},
    {"hidden_size", same_as, "d_model"},
    {"id2label", honoured, "sequence"},
    {"init_std", honoured},
    {"mask_feature_length", harmless, "used by apply_spec_augment"},
    {"mask_feature_min_masks", harmless, "used by apply_spec_augment"},
    {"mask_feature_prob", harmless, "used by apply_spec_augment"},
    {"mask_time_length", harmless, "used by apply_spec_augment"},
    {"mask_time_min_masks", harmless, "used by apply_spec_augment"},
    {"mask_time_prob", harmless, "used by apply_spec_augment"},
    {"max_source_positions", honoured},
    {"max_target_positions", honoured, "words base"},
    {"median_filter_width", harmless, kGeneration},
    {"num_attention_heads", same_as, "encoder_attention_heads"},
    {"num_hidden_layers", same_as, "encoder_layers"},
    {"num_labels", honoured, "sequence"},
    {"num_mel_bins", honoured},
    {"scale_embedding", only, "false"},
    {"tie_word_embeddings", honoured, "words"},
    {"use_weighted_layer_sum", only, "false"},
    {"vocab_size", honoured, "words base"},
};

using Group = std::span<const Field>;
struct FamilyFields {
  std::string_view model_type;
  std::vector<Group> groups;
};

// A family's own fields come before the shared ones.
std::vector<FamilyFields> family_fields() {
  return {
      {"bert", {kBert, kLabels, kBlocks}},
      {"deepseek_v2", {kDeepseek2, kDeepseek, kLabels, kTextLabels, kRotary, kBlocks}},
      {"deepseek_v3", {kDeepseek3, kDeepseek, kLabels, kTextLabels, kRotary, kBlocks}},
      {"falcon", {kFalcon, kLabels, kTextLabels, kRotary, kBlocks}},
      {"gemma", {kGemma, kLabels, kTextLabels, kRotary, kDecoder, kBlocks}},
      {"gemma2", {kGemma2, kGemma, kLabels, kTextLabels, kRotary, kDecoder, kBlocks}},
      {"gemma3_text", {kGemma3, kGemma2, kGemma, kLabels, kTextLabels, kRotary, kDecoder, kBlocks}},
      {"gpt2", {kGpt2, kLabels, kTextLabels}},
      {"gpt_neox", {kNeox, kLabels, kTextLabels, kRotary, kBlocks}},
      {"llama", {kLlama, kLabels, kTextLabels, kRotary, kDecoder, kBlocks}},
      {"mistral", {kMistral, kLabels, kTextLabels, kRotary, kDecoder, kBlocks}},
      {"mixtral", {kMixtral, kLabels, kTextLabels, kRotary, kDecoder, kBlocks}},
      {"nemotron", {kNemotron, kLabels, kTextLabels, kRotary, kDecoder, kBlocks}},
      {"olmo", {kOlmo, kLabels, kTextLabels, kRotary, kDecoder, kBlocks}},
      {"olmo2", {kOlmo2, kLabels, kTextLabels, kRotary, kDecoder, kBlocks}},
      {"phi3", {kPhi3, kLabels, kTextLabels, kRotary, kDecoder, kBlocks}},
      {"qwen2", {kQwen2, kWindows, kLabels, kTextLabels, kRotary, kDecoder, kBlocks}},
      {"qwen3", {kQwen3, kWindows, kLabels, kTextLabels, kRotary, kDecoder, kBlocks}},
      {"qwen3_moe", {kQwen3Moe, kQwen3, kWindows, kLabels, kTextLabels, kRotary, kDecoder, kBlocks}},
      {"t5", {kT5}},
      {"vit", {kVit, kLabels, kBlocks}},
      {"whisper", {kWhisper}},
  };
}

FieldTable table_of(const std::vector<Group>& groups) {
  std::vector<Field> fields;
  for (const Group group : groups) fields.insert(fields.end(), group.begin(), group.end());
  fields.insert(fields.end(), std::begin(kCommon), std::end(kCommon));
  return FieldTable(fields);
}

}  // namespace

FieldTable::FieldTable(const std::vector<Field>& fields) {
  for (const Field& field : fields) {
    if (!places_.emplace(field.name, fields_.size()).second) continue;
    fields_.push_back(field);
    names_.push_back(field.name);
  }
}

const Field* FieldTable::find(std::string_view name) const {
  const auto found = places_.find(name);
  return found == places_.end() ? nullptr : &fields_[found->second];
}

const FieldTable& fields_of(std::string_view model_type) {
  static const FieldTable common = table_of({});
  static const std::map<std::string_view, FieldTable> tables = [] {
    std::map<std::string_view, FieldTable> made;
    for (const FamilyFields& family : family_fields())
      made.emplace(family.model_type, table_of(family.groups));
    return made;
  }();
  const auto found = tables.find(model_type);
  return found == tables.end() ? common : found->second;
}

}  // namespace weft::imports
