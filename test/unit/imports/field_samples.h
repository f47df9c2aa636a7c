// A configuration of every family and class, with every field that its table marks as honoured; in
// variants where two fields exclude each other. Any other value would describe another model.
#pragma once
#include <string>
#include <vector>

#include <fmt/format.h>

namespace weft::imports {

struct SampleClass {
  std::string name, head;
};
struct SampleFamily {
  std::string model_type;
  std::vector<SampleClass> classes;
  std::string fields;                 // of all variants
  std::vector<std::string> variants;  // added by each variant
};

inline std::vector<SampleClass> sample_classes(const std::string& prefix, std::size_t count) {
  const std::vector<SampleClass> all = {{prefix + "ForCausalLM", "words"},
                                        {prefix + "Model", "base"},
                                        {prefix + "ForSequenceClassification", "sequence"},
                                        {prefix + "ForTokenClassification", "tokens"},
                                        {prefix + "ForQuestionAnswering", "question"}};
  return {all.begin(), all.begin() + static_cast<std::ptrdiff_t>(count)};
}

inline const std::vector<SampleFamily>& sample_families() {
  const std::string common = R"("_name_or_path": "some/one", "auto_map": {"AutoModel": "one.One"}, )";
  const std::string labels_a = R"("id2label": {"0": "a", "1": "b", "2": "c"}, "dtype": "bfloat16")";
  const std::string labels_b = R"("num_labels": 3, "torch_dtype": "float16")";
  const std::string texts = R"(, "problem_type": "regression", "pad_token_id": 3, "classifier_dropout": 0.2)";
  const std::string hidden = R"(, "problem_type": "regression", "hidden_dropout": 0.2)";
  const std::string blocks =
      R"("hidden_size": 48, "initializer_range": 0.03, "intermediate_size": 24, "num_attention_heads": 4,
      "num_hidden_layers": 3, "vocab_size": 20, "hidden_act": "relu", "tie_word_embeddings": true)";
  const std::string rotary_a =
      R"(, "rope_theta": 500.0, "original_max_position_embeddings": 50, "partial_rotary_factor": 1.0,
      "rope_scaling": {"rope_type": "yarn", "factor": 4.0, "truncate": false})";
  const std::string rotary_b =
      R"(, "rope_parameters": {"rope_type": "yarn", "rope_theta": 500.0, "factor": 4.0,
      "original_max_position_embeddings": 50})";
  const std::string decoder =
      common + blocks + R"(, "max_position_embeddings": 200, "attention_dropout": 0.1, "head_dim": 12,
      "num_key_value_heads": 2)";
  const std::string epsilon = R"(, "rms_norm_eps": 0.001)";
  const std::string full = R"(, "layer_types": ["full_attention", "full_attention", "full_attention"])";
  const std::string mixed = R"(, "layer_types": ["full_attention", "sliding_attention", "full_attention"])";
  const std::string a = labels_a + texts, b = labels_b + texts, c = labels_a + hidden;
  const std::string window = R"(, "sliding_window": 7)";
  const std::string gemma = R"(, "hidden_activation": "relu", "attention_bias": true)";
  const std::string gemma2 =
      gemma + R"(, "final_logit_softcapping": 20.0, "query_pre_attn_scalar": 30.0)" + window;
  const std::string qwen = R"(, "use_sliding_window": true)" + window;
  const std::string experts = R"(, "num_local_experts": 4, "num_experts_per_tok": 2)";
  const std::string phi = R"(, "sliding_window": 7, "resid_pdrop": 0.1)";
  const std::string longrope =
      R"({"rope_type": "longrope", "short_factor": [1, 2, 3, 4, 5, 6], "long_factor": [2, 3, 4, 5, 6, 7])";
  const std::string latent =
      common + blocks + R"(, "max_position_embeddings": 200, "attention_dropout": 0.1, "rms_norm_eps": 0.001,
      "first_k_dense_replace": 1, "kv_lora_rank": 6, "moe_intermediate_size": 8, "n_routed_experts": 8, "n_shared_experts": 2,
      "num_experts_per_tok": 2, "q_lora_rank": 5, "qk_nope_head_dim": 4, "qk_rope_head_dim": 4, "routed_scaling_factor": 3.5,
      "v_head_dim": 3, "n_group": 4, "topk_group": 2)";
  static const std::vector<SampleFamily> families = {
      {"bert",
       {{"BertForMaskedLM", "words"},
        {"BertModel", "base"},
        {"BertForPreTraining", "pretraining"},
        {"BertForNextSentencePrediction", "next"},
        {"BertForSequenceClassification", "sequence"},
        {"BertForTokenClassification", "tokens"},
        {"BertForQuestionAnswering", "question"}},
       common + blocks +
           R"(, "attention_probs_dropout_prob": 0.2, "classifier_dropout": 0.3, "hidden_dropout_prob": 0.4,
           "layer_norm_eps": 0.001, "max_position_embeddings": 8, "type_vocab_size": 3, "problem_type": "regression", )",
       {labels_a, labels_b}},
      {"deepseek_v2",
       sample_classes("DeepseekV2", 3),
       latent + R"(, "topk_method": "group_limited_greedy", )",
       {a + rotary_a + R"(, "norm_topk_prob": false)", b + rotary_b}},
      {"deepseek_v3",
       sample_classes("DeepseekV3", 4),
       latent + R"(, "norm_topk_prob": true, "rope_interleave": true, )",
       {a + rotary_a + R"(, "num_mtp_layers": 1)", b + rotary_b + R"(, "num_nextn_predict_layers": 1)", c}},
      {"falcon",
       sample_classes("Falcon", 5),
       common +
           R"("hidden_size": 48, "initializer_range": 0.03, "num_attention_heads": 4, "num_hidden_layers": 3, "vocab_size": 20,
           "tie_word_embeddings": true, "max_position_embeddings": 200, "activation": "relu", "bias": true,
           "ffn_hidden_size": 24, "layer_norm_epsilon": 0.001, )",
       {a + rotary_a +
            R"(, "new_decoder_architecture": true, "num_kv_heads": 2, "num_ln_in_parallel_attn": 1, "hidden_dropout": 0.1)",
        b + rotary_b +
            R"(, "multi_query": true, "parallel_attn": false, "attention_dropout": 0.1, "hidden_dropout": 0.1)",
        c + R"(, "alibi": true, "attention_dropout": 0.1, "multi_query": false)"}},
      {"gemma",
       sample_classes("Gemma", 4),
       decoder + epsilon + gemma + ", ",
       {a + rotary_a + full, b + rotary_b, c}},
      {"gemma2",
       sample_classes("Gemma2", 4),
       decoder + epsilon + gemma2 + R"(, "attn_logit_softcapping": 5.0, )",
       {a + rotary_a + mixed, b + rotary_b, c}},
      {"gemma3_text",
       {{"Gemma3ForCausalLM", "words"},
        {"Gemma3TextModel", "base"},
        {"Gemma3TextForSequenceClassification", "sequence"}},
       decoder + epsilon + gemma2 + R"(, "rope_local_base_freq": 300.0, )",
       {a + rotary_a + mixed,
        b + R"(, "sliding_window_pattern": 2, "rope_parameters": {"full_attention": {"rope_type": "linear", "factor": 4.0}})"}},
      {"gpt2",
       {{"GPT2LMHeadModel", "words"},
        {"GPT2Model", "base"},
        {"GPT2ForSequenceClassification", "sequence"},
        {"GPT2ForTokenClassification", "tokens"},
        {"GPT2ForQuestionAnswering", "question"}},
       common +
           R"("activation_function": "relu", "attn_pdrop": 0.2, "embd_pdrop": 0.3, "initializer_range": 0.03,
           "layer_norm_epsilon": 0.001, "n_embd": 16, "n_head": 4, "n_inner": 24, "n_layer": 3, "resid_pdrop": 0.4,
           "scale_attn_weights": true, "tie_word_embeddings": true, "vocab_size": 20, )",
       {a + R"(, "n_positions": 8)", b, c}},
      {"gpt_neox",
       sample_classes("GPTNeoX", 5),
       common + blocks +
           R"(, "attention_bias": true, "attention_dropout": 0.1, "hidden_dropout": 0.2, "layer_norm_eps": 0.001,
           "max_position_embeddings": 200, "use_parallel_residual": true, "rotary_pct": 0.5, )",
       {a + R"(, "rotary_emb_base": 500.0, "original_max_position_embeddings": 50,
           "rope_scaling": {"rope_type": "yarn", "factor": 4.0, "truncate": false})",
        b + rotary_b}},
      {"llama",
       sample_classes("Llama", 5),
       decoder + epsilon + R"(, "attention_bias": true, "mlp_bias": true, )",
       {a + rotary_a + full, b + rotary_b, c}},
      {"mistral",
       sample_classes("Mistral", 5),
       decoder + epsilon + window + ", ",
       {a + rotary_a + R"(, "layer_types": ["sliding_attention", "sliding_attention", "sliding_attention"])",
        b + rotary_b, c}},
      {"mixtral",
       sample_classes("Mixtral", 5),
       decoder + epsilon + window + experts + ", ",
       {a + rotary_a +
            R"(, "layer_types": ["sliding_attention", "sliding_attention", "sliding_attention"], "output_router_logits": false)",
        b + rotary_b + R"(, "output_router_logits": true, "router_aux_loss_coef": 0.0)", c}},
      {"nemotron",
       sample_classes("Nemotron", 5),
       decoder + R"(, "norm_eps": 0.001, "attention_bias": true, )",
       {a + R"(, "rope_theta": 500.0, "original_max_position_embeddings": 50, "partial_rotary_factor": 0.5,
           "rope_scaling": {"rope_type": "yarn", "factor": 4.0, "truncate": false})" +
            full,
        b + rotary_b, c}},
      {"olmo",
       sample_classes("Olmo", 3),
       decoder + R"(, "attention_bias": true, "clip_qkv": 8.0, )",
       {a + rotary_a + full, b + rotary_b}},
      {"olmo2",
       sample_classes("Olmo2", 3),
       decoder + epsilon + R"(, "attention_bias": true, )",
       {a + rotary_a + full, b + rotary_b}},
      {"phi3",
       sample_classes("Phi3", 4),
       decoder + epsilon + phi + ", ",
       {a + R"(, "rope_theta": 500.0, "original_max_position_embeddings": 50, "partial_rotary_factor": 1.0,
           "layer_types": ["sliding_attention", "sliding_attention", "sliding_attention"], "rope_scaling": )" +
            longrope + "}",
        b + R"(, "rope_parameters": )" + longrope + R"(, "factor": 3.0})", c}},
      {"qwen2",
       sample_classes("Qwen2", 5),
       decoder + epsilon + qwen + ", ",
       {a + rotary_a + mixed, b + rotary_b + R"(, "max_window_layers": 1)",
        c + R"(, "max_window_layers": 1)"}},
      {"qwen3",
       sample_classes("Qwen3", 5),
       decoder + epsilon + qwen + R"(, "attention_bias": true, )",
       {a + rotary_a + mixed, b + rotary_b + R"(, "max_window_layers": 1)",
        c + R"(, "max_window_layers": 1)"}},
      {"qwen3_moe",
       sample_classes("Qwen3Moe", 5),
       decoder + epsilon + qwen + R"(, "attention_bias": true, "moe_intermediate_size": 20, "num_experts": 4,
           "num_experts_per_tok": 2, "norm_topk_prob": true, )",
       {a + rotary_a + mixed + R"(, "output_router_logits": false)",
        b + rotary_b +
            R"(, "max_window_layers": 1, "output_router_logits": true, "router_aux_loss_coef": 0.0)",
        c + R"(, "max_window_layers": 1)"}},
      {"t5",
       {{"T5ForConditionalGeneration", "words"}, {"T5Model", "base"}, {"T5EncoderModel", "encoder"}},
       common +
           R"("d_ff": 24, "d_kv": 4, "d_model": 16, "dropout_rate": 0.2, "feed_forward_proj": "gated-silu",
           "initializer_factor": 2.0, "layer_norm_epsilon": 0.001, "num_decoder_layers": 3, "num_heads": 4, "num_layers": 2,
           "relative_attention_max_distance": 64, "relative_attention_num_buckets": 16, "tie_word_embeddings": true,
           "vocab_size": 20, )",
       {R"("dtype": "bfloat16")", R"("torch_dtype": "float16")"}},
      {"vit",
       {{"ViTForImageClassification", "sequence"}, {"ViTModel", "base"}},
       common +
           R"("hidden_size": 48, "initializer_range": 0.03, "intermediate_size": 24, "num_attention_heads": 4,
           "num_hidden_layers": 3, "hidden_act": "relu", "attention_probs_dropout_prob": 0.2, "hidden_dropout_prob": 0.3,
           "image_size": 8, "layer_norm_eps": 0.001, "num_channels": 2, "patch_size": 4, "pooler_act": "relu",
           "pooler_output_size": 20, "qkv_bias": true, "problem_type": "regression", )",
       {labels_a, labels_b}},
      {"whisper",
       {{"WhisperForConditionalGeneration", "words"},
        {"WhisperModel", "base"},
        {"WhisperForAudioClassification", "sequence"},
        {"WhisperEncoder", "encoder"}},
       common +
           R"("activation_dropout": 0.1, "activation_function": "relu", "attention_dropout": 0.2, "classifier_proj_size": 7,
           "d_model": 16, "decoder_attention_heads": 4, "decoder_ffn_dim": 24, "decoder_layers": 2, "dropout": 0.3,
           "encoder_attention_heads": 4, "encoder_ffn_dim": 24, "encoder_layers": 3, "init_std": 0.03,
           "max_source_positions": 6, "max_target_positions": 5, "num_mel_bins": 9, "tie_word_embeddings": true,
           "vocab_size": 20, )",
       {labels_a, labels_b}},
  };
  return families;
}

}  // namespace weft::imports
