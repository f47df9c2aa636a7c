// Models from config.json: published shapes, their numbers of parameters, and what is rejected.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "weft/translate/imports/hugging_face.h"

namespace weft::imports {
namespace {

std::string with(std::string_view base, std::string_view fields) {
  return fmt::format("{{{}{}}}", base, fields);
}

// The shapes are facts about published models; the parameter counts are those that the authors
// report.
constexpr std::string_view kLlama =
    R"("model_type": "llama", "hidden_size": 4096, "intermediate_size": 11008, "num_hidden_layers": 32,
       "num_attention_heads": 32, "vocab_size": 32000, "max_position_embeddings": 4096, "rms_norm_eps": 1e-5)";
constexpr std::string_view kMistral =
    R"("model_type": "mistral", "hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32,
       "num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 32000, "sliding_window": 4096,
       "max_position_embeddings": 32768)";
constexpr std::string_view kMixtral =
    R"("model_type": "mixtral", "hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32,
       "num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 32000, "num_local_experts": 8,
       "num_experts_per_tok": 2, "max_position_embeddings": 32768)";
constexpr std::string_view kQwen =
    R"("model_type": "qwen2", "hidden_size": 896, "intermediate_size": 4864, "num_hidden_layers": 24,
       "num_attention_heads": 14, "num_key_value_heads": 2, "vocab_size": 151936, "tie_word_embeddings": true,
       "max_position_embeddings": 131072, "use_sliding_window": false, "sliding_window": 131072)";
constexpr std::string_view kBert =
    R"("model_type": "bert", "hidden_size": 768, "intermediate_size": 3072, "num_hidden_layers": 12,
       "num_attention_heads": 12, "vocab_size": 30522)";
constexpr std::string_view kT5 =
    R"("model_type": "t5", "d_model": 512, "d_kv": 64, "d_ff": 2048, "num_layers": 6, "num_heads": 8,
       "vocab_size": 32128)";
constexpr std::string_view kVit =
    R"("model_type": "vit", "hidden_size": 768, "intermediate_size": 3072, "num_hidden_layers": 12,
       "num_attention_heads": 12)";
constexpr std::string_view kGpt2 =
    R"("model_type": "gpt2", "n_embd": 768, "n_layer": 12, "n_head": 12, "n_positions": 1024, "vocab_size": 50257)";
constexpr std::string_view kDeepseekLite =
    R"("model_type": "deepseek_v2", "hidden_size": 2048, "intermediate_size": 10944, "moe_intermediate_size": 1408,
       "num_hidden_layers": 27, "num_attention_heads": 16, "n_shared_experts": 2, "n_routed_experts": 64,
       "kv_lora_rank": 512, "q_lora_rank": null, "qk_rope_head_dim": 64, "v_head_dim": 128, "qk_nope_head_dim": 128,
       "num_experts_per_tok": 6, "first_k_dense_replace": 1, "vocab_size": 102400)";
constexpr std::string_view kDeepseek3 =
    R"("model_type": "deepseek_v3", "hidden_size": 7168, "intermediate_size": 18432, "moe_intermediate_size": 2048,
       "num_hidden_layers": 61, "num_attention_heads": 128, "n_shared_experts": 1, "n_routed_experts": 256,
       "kv_lora_rank": 512, "q_lora_rank": 1536, "qk_rope_head_dim": 64, "v_head_dim": 128, "qk_nope_head_dim": 128,
       "num_experts_per_tok": 8, "first_k_dense_replace": 3, "vocab_size": 129280, "n_group": 8, "topk_group": 4)";

std::int64_t parameters(std::string_view base, std::string_view fields = {}) {
  const auto model = import_hugging_face(with(base, fields));
  EXPECT_TRUE(model.ok()) << model.error().message;
  return model.ok() ? model->parameters : -1;
}

std::string refusal(std::string_view text) {
  const auto model = import_hugging_face(text);
  EXPECT_FALSE(model.ok());
  if (model.ok()) return model->text;
  EXPECT_EQ(model.error().fault, Fault::user);
  return model.error().message;
}

TEST(HuggingFace, CountsTheParametersOfPublishedModels) {
  EXPECT_EQ(parameters(kGpt2), 124'439'808);
  EXPECT_EQ(parameters(kLlama), 6'738'415'616);
  EXPECT_EQ(parameters(R"("model_type": "llama", "hidden_size": 8192, "intermediate_size": 28672,
      "num_hidden_layers": 80, "num_attention_heads": 64, "num_key_value_heads": 8, "vocab_size": 128256)"),
            70'553'706'496);
  EXPECT_EQ(parameters(R"("model_type": "llama", "hidden_size": 16384, "intermediate_size": 53248,
      "num_hidden_layers": 126, "num_attention_heads": 128, "num_key_value_heads": 8, "vocab_size": 128256)"),
            405'853'388'800);
  EXPECT_EQ(parameters(kMistral), 7'241'732'096);
  EXPECT_EQ(parameters(kMixtral), 46'702'792'704);
  EXPECT_EQ(parameters(kQwen), 494'032'768);
  EXPECT_EQ(parameters(R"("model_type": "qwen2", "hidden_size": 3584, "intermediate_size": 18944,
      "num_hidden_layers": 28, "num_attention_heads": 28, "num_key_value_heads": 4, "vocab_size": 152064)"),
            7'615'616'512);
  EXPECT_EQ(parameters(kT5), 60'506'624);
  EXPECT_EQ(parameters(R"("model_type": "t5", "d_model": 768, "d_kv": 64, "d_ff": 2048, "num_layers": 12,
      "num_heads": 12, "vocab_size": 32128, "feed_forward_proj": "gated-gelu", "tie_word_embeddings": false)"),
            247'577'856);
  EXPECT_EQ(parameters(kDeepseekLite), 15'706'484'224);
  // Qwen3 30B A3B
  EXPECT_EQ(parameters(R"("model_type": "qwen3_moe", "hidden_size": 2048, "moe_intermediate_size": 768,
      "num_hidden_layers": 48, "num_attention_heads": 32, "num_key_value_heads": 4, "head_dim": 128,
      "num_experts": 128, "num_experts_per_tok": 8, "norm_topk_prob": true, "vocab_size": 151936)"),
            30'532'122'624);
  EXPECT_EQ(parameters(kDeepseek3),
            671'026'404'352);  // without the 58 x 256 biases of routers, which are states
}

// Llama 3.1 8B, Qwen3 0.6B and 8B, Gemma 2 2B and 9B, Gemma 3 1B, Phi-3 mini, Phi-4 mini.
TEST(HuggingFace, CountsTheParametersOfNewerDecoders) {
  EXPECT_EQ(parameters(R"("model_type": "llama", "hidden_size": 4096, "intermediate_size": 14336,
      "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 128256,
      "max_position_embeddings": 131072, "rope_theta": 500000.0, "rope_scaling": {"rope_type": "llama3", "factor": 8.0,
      "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 8192})"),
            8'030'261'248);
  EXPECT_EQ(parameters(R"("model_type": "qwen3", "hidden_size": 1024, "intermediate_size": 3072,
      "num_hidden_layers": 28, "num_attention_heads": 16, "num_key_value_heads": 8, "head_dim": 128,
      "vocab_size": 151936, "tie_word_embeddings": true)"),
            596'049'920);
  EXPECT_EQ(parameters(R"("model_type": "qwen3", "hidden_size": 4096, "intermediate_size": 12288,
      "num_hidden_layers": 36, "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 128,
      "vocab_size": 151936)"),
            8'190'735'360);
  EXPECT_EQ(parameters(R"("model_type": "gemma2", "hidden_size": 2304, "intermediate_size": 9216,
      "num_hidden_layers": 26, "num_attention_heads": 8, "num_key_value_heads": 4, "head_dim": 256,
      "vocab_size": 256000)"),
            2'614'341'888);
  EXPECT_EQ(parameters(R"("model_type": "gemma2", "hidden_size": 3584, "intermediate_size": 14336,
      "num_hidden_layers": 42, "num_attention_heads": 16, "num_key_value_heads": 8, "head_dim": 256,
      "vocab_size": 256000)"),
            9'241'705'984);
  EXPECT_EQ(parameters(R"("model_type": "gemma3_text", "hidden_size": 1152, "intermediate_size": 6912,
      "num_hidden_layers": 26, "num_attention_heads": 4, "num_key_value_heads": 1, "head_dim": 256,
      "vocab_size": 262144, "sliding_window": 512, "sliding_window_pattern": 6)"),
            999'885'952);
  EXPECT_EQ(parameters(R"("model_type": "phi3", "hidden_size": 3072, "intermediate_size": 8192,
      "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 32, "vocab_size": 32064)"),
            3'821'079'552);
  EXPECT_EQ(parameters(R"("model_type": "phi3", "hidden_size": 3072, "intermediate_size": 8192,
      "num_hidden_layers": 32, "num_attention_heads": 24, "num_key_value_heads": 8, "vocab_size": 200064,
      "partial_rotary_factor": 0.75, "tie_word_embeddings": true)"),
            3'836'021'760);
}

// GPT-NeoX 20B, Pythia 160M, Falcon 7B, 40B and RW 1B, OLMo 1B and 7B, OLMo 2 7B.
TEST(HuggingFace, CountsTheParametersOfOtherDecoders) {
  EXPECT_EQ(parameters(R"("model_type": "gpt_neox", "hidden_size": 6144, "intermediate_size": 24576,
      "num_hidden_layers": 44, "num_attention_heads": 64, "vocab_size": 50432)"),
            20'554'567'680);
  EXPECT_EQ(parameters(R"("model_type": "gpt_neox", "hidden_size": 768, "intermediate_size": 3072,
      "num_hidden_layers": 12, "num_attention_heads": 12, "vocab_size": 50304)"),
            162'322'944);
  EXPECT_EQ(parameters(R"("model_type": "falcon", "hidden_size": 4544, "num_hidden_layers": 32,
      "num_attention_heads": 71, "vocab_size": 65024)"),
            6'921'720'704);
  EXPECT_EQ(parameters(R"("model_type": "falcon", "hidden_size": 8192, "num_hidden_layers": 60,
      "num_attention_heads": 128, "num_kv_heads": 8, "new_decoder_architecture": true, "vocab_size": 65024)"),
            41'303'293'952);
  EXPECT_EQ(parameters(R"("model_type": "falcon", "hidden_size": 2048, "num_hidden_layers": 24,
      "num_attention_heads": 32, "multi_query": false, "parallel_attn": false, "alibi": true, "bias": true,
      "vocab_size": 50304)"),
            1'311'625'216);
  EXPECT_EQ(parameters(R"("model_type": "olmo", "hidden_size": 2048, "intermediate_size": 8192,
      "num_hidden_layers": 16, "num_attention_heads": 16, "vocab_size": 50304, "tie_word_embeddings": true)"),
            1'176'764'416);
  EXPECT_EQ(parameters(R"("model_type": "olmo", "hidden_size": 4096, "intermediate_size": 11008,
      "num_hidden_layers": 32, "num_attention_heads": 32, "vocab_size": 50304)"),
            6'888'095'744);
  EXPECT_EQ(parameters(R"("model_type": "olmo2", "hidden_size": 4096, "intermediate_size": 11008,
      "num_hidden_layers": 32, "num_attention_heads": 32, "vocab_size": 100352)"),
            7'298'617'344);
}

// Whisper tiny has 37,760,640, of which 576,000 are fixed encoder positions.
TEST(HuggingFace, CountsTheParametersOfWhisper) {
  constexpr std::string_view kWhisper =
      R"("model_type": "whisper", "d_model": 384, "encoder_layers": 4, "encoder_attention_heads": 6,
         "encoder_ffn_dim": 1536, "decoder_layers": 4, "decoder_attention_heads": 6, "decoder_ffn_dim": 1536,
         "num_mel_bins": 80, "vocab_size": 51865)";
  EXPECT_EQ(parameters(kWhisper), 37'760'640 - 576'000);
  EXPECT_EQ(parameters(kWhisper, R"(, "architectures": ["WhisperEncoder"])"), 8'208'384 - 576'000);
}

TEST(HuggingFace, GivesADecoderTheHeadOfItsClass) {
  EXPECT_EQ(parameters(kGpt2, R"(, "architectures": ["GPT2Model"])"), 124'439'808);
  EXPECT_EQ(parameters(kGpt2, R"(, "architectures": ["GPT2ForSequenceClassification"])"), 124'441'344);
  EXPECT_EQ(parameters(kT5, R"(, "architectures": ["T5EncoderModel"])"), 35'330'816);
  EXPECT_EQ(parameters(kT5, R"(, "architectures": ["T5Model"])"), 60'506'624);
  EXPECT_EQ(parameters(kLlama, R"(, "architectures": ["LlamaModel"])"), 6'607'343'616);
  EXPECT_EQ(parameters(kLlama, R"(, "architectures": ["LlamaForSequenceClassification"])"), 6'607'351'808);
  EXPECT_EQ(parameters(kLlama, R"(, "architectures": ["LlamaForTokenClassification"])"), 6'607'351'810);
  EXPECT_EQ(parameters(kLlama, R"(, "architectures": ["LlamaForQuestionAnswering"])"), 6'607'351'810);
  EXPECT_EQ(refusal(with(kLlama, R"(, "architectures": ["LlamaForMaskedLM"])")),
            "architectures[0]: unknown class 'LlamaForMaskedLM'");
  EXPECT_EQ(
      import_hugging_face(with(kGpt2, R"(, "architectures": ["GPT2DoubleHeadsModel"])")).error().hint,
      "known are GPT2LMHeadModel, GPT2Model, GPT2ForSequenceClassification, GPT2ForTokenClassification, "
      "GPT2ForQuestionAnswering");
}

TEST(HuggingFace, GivesBertTheHeadOfItsClass) {
  EXPECT_EQ(parameters(kBert, R"(, "architectures": ["BertModel"])"), 109'482'240);
  EXPECT_EQ(parameters(kBert, R"(, "architectures": ["BertForMaskedLM"])"), 109'514'298);
  EXPECT_EQ(parameters(kBert, R"(, "architectures": ["BertForPreTraining"])"), 110'106'428);
  EXPECT_EQ(parameters(kBert, R"(, "architectures": ["BertForSequenceClassification"])"), 109'483'778);
  EXPECT_EQ(parameters(kBert, R"(, "architectures": ["BertForTokenClassification"])"), 108'893'186);
  EXPECT_EQ(parameters(kBert, R"(, "architectures": ["BertForQuestionAnswering"])"), 108'893'186);
  EXPECT_EQ(parameters(kBert, R"(, "architectures": ["BertForNextSentencePrediction"])"), 109'483'778);
  EXPECT_EQ(refusal(with(kBert, R"(, "architectures": ["BertForQuestions"])")),
            "architectures[0]: unknown class 'BertForQuestions'");
}

TEST(HuggingFace, CountsTheLabelsOfAClassifier) {
  std::string labels;
  for (int i = 0; i < 1000; ++i) labels += fmt::format(R"({}"{}": "a")", i == 0 ? "" : ", ", i);
  EXPECT_EQ(parameters(kVit, fmt::format(R"(, "id2label": {{{}}})", labels)), 86'567'656);
  EXPECT_EQ(parameters(kVit, R"(, "architectures": ["ViTModel"])"), 86'389'248);
}

TEST(HuggingFace, NamesUnknownFields) {
  EXPECT_EQ(refusal("{}"), "expected model_type, found none");
  EXPECT_EQ(refusal("[1]"), "expected an object, found a list");
  EXPECT_EQ(refusal(R"({"model_type": "lama"})"), "unknown model_type: 'lama'");
  EXPECT_EQ(import_hugging_face(R"({"model_type": "lama"})").error().hint, "did you mean 'llama'?");
  EXPECT_EQ(
      import_hugging_face(R"({"model_type": "rwkv5world"})").error().hint,
      "known are bert, deepseek_v2, deepseek_v3, falcon, gemma, gemma2, gemma3_text, gpt2, gpt_neox, llama, "
      "mistral, mixtral, nemotron, olmo, olmo2, phi3, qwen2, qwen3, qwen3_moe, t5, vit, whisper");
  EXPECT_EQ(refusal(R"({"model_type": "gpt2"})"), "expected n_embd, found none");
  const auto model = import_hugging_face(with(kLlama, R"(, "wings": 2, "use_cache": true)"));
  ASSERT_TRUE(model.ok());
  EXPECT_EQ(model->notes, std::vector<std::string>{"unknown and ignored: wings"});
  const auto slip = import_hugging_face(with(kLlama, R"(, "num_key_value_head": 8)"));
  ASSERT_TRUE(slip.ok());
  EXPECT_EQ(slip->notes,
            std::vector<std::string>{"unknown and ignored: num_key_value_head (not num_key_value_heads)"});
  EXPECT_EQ(import_hugging_face(R"({"model_type": "gemma3", "text_config": {"model_type": "gemma3_text"}})")
                .error()
                .hint,
            "save its text_config, the language model, as a separate file and import that");
}

TEST(HuggingFace, RejectsFieldsThatChangeTheArithmetic) {
  EXPECT_EQ(refusal(with(kGpt2, R"(, "scale_attn_by_inverse_layer_idx": true)")),
            "scale_attn_by_inverse_layer_idx: expected false, the only value that Weft supports, found true");
  EXPECT_EQ(refusal(with(kBert, R"(, "position_embedding_type": "relative_key")")),
            "position_embedding_type: expected 'absolute', the only value that Weft supports, found "
            "'relative_key'");
  EXPECT_EQ(refusal(with(kLlama, R"(, "hidden_act": "mish")")), "hidden_act: unknown activation 'mish'");
  EXPECT_EQ(refusal(with(kLlama, R"(, "quantization_config": {"quant_method": "gptq"})")),
            "quantization_config: expected none, found gptq");
  EXPECT_EQ(refusal(with(kLlama, R"(, "layer_types": ["full_attention", "sliding_attention"])")),
            "layer_types: expected one for each of 32 layers, found 2");
  EXPECT_EQ(refusal(with(kGpt2, R"(, "hidden_size": 512)")),
            "hidden_size: expected 768 as n_embd has it, found 512");
  EXPECT_EQ(refusal(with(kLlama, R"(, "partial_rotary_factor": 0.5)")),
            "partial_rotary_factor: expected 1, the only value that the class supports, found 0.5");
  EXPECT_EQ(refusal(with(kLlama, R"(, "rope_scaling": {"rope_type": "proportional"})")),
            "rope_scaling.rope_type: unknown scaling 'proportional'");
  EXPECT_EQ(refusal(with(kMixtral, R"(, "output_router_logits": true)")),
            "output_router_logits: expected false, or router_aux_loss_coef of 0, not 0.001, found true");
  EXPECT_EQ(refusal(with(kDeepseek3, R"(, "scoring_func": "softmax")")),
            "scoring_func: expected 'sigmoid', the only value that Weft supports, found 'softmax'");
}

TEST(HuggingFace, IgnoresRotaryScalingOnRequest) {
  const std::string text =
      with(kLlama, R"(, "rope_theta": 500000.0, "rope_scaling": {"rope_type": "llama3", "factor": 8.0})");
  EXPECT_EQ(refusal(text), "expected rope_scaling.low_freq_factor, found none");
  const auto model = import_hugging_face(text, {.name = {}, .otherwise = {}, .plain_rotary = true});
  ASSERT_TRUE(model.ok());
  EXPECT_EQ(model->notes.front(), "rope_scaling.rope_type 'llama3' is not applied: results differ");
  EXPECT_NE(model->text.find("base => 500000"), std::string::npos);
}

TEST(HuggingFace, RejectsInvalidNumbers) {
  EXPECT_EQ(refusal(with(kGpt2, R"(, "layer_norm_epsilon": "small")")),
            "layer_norm_epsilon: expected a number, found 'small'");
  EXPECT_EQ(refusal(with(kGpt2, R"(, "attn_pdrop": 1)")),
            "attn_pdrop: expected a number from 0 to below 1, found 1");
  EXPECT_EQ(refusal(R"({"model_type": "gpt2", "n_embd": -768})"),
            "n_embd: expected a whole number up to 2147483647, found -768");
  EXPECT_EQ(refusal(R"({"model_type": "gpt2", "n_embd": 768, "n_layer": 1, "n_head": 7, "vocab_size": 9})"),
            "n_head does not divide n_embd: 7 and 768");
  EXPECT_EQ(refusal(R"({"model_type": "llama", "hidden_size": 2147483644, "intermediate_size": 2147483644,
      "num_hidden_layers": 100, "num_attention_heads": 2, "vocab_size": 2147483644})"),
            "the model has more parameters than can be counted");
  EXPECT_EQ(
      refusal(R"({"model_type": "gpt2", "n_embd": 2, "n_layer": 2147483647, "n_head": 1, "vocab_size": 9})"),
      "the model has more parameters than can be counted");
  EXPECT_EQ(refusal(with(kLlama, "").substr(0, 60)), "expected JSON, found an error at byte 61");
}

TEST(HuggingFace, NamesTheModel) {
  EXPECT_EQ(name_from("Meta-Llama-3.1-8B"), "meta_llama_3_1_8b");
  EXPECT_EQ(name_from("7b"), "model_7b");
  EXPECT_EQ(name_from("--"), "");
  const auto named = [](std::string_view fields, const HuggingFaceOptions& options) {
    return import_hugging_face(with(kGpt2, fields), options)->name;
  };
  EXPECT_EQ(named("", {}), "gpt2");
  EXPECT_EQ(named("", {.name = {}, .otherwise = "folder"}), "folder");
  EXPECT_EQ(named(R"(, "_name_or_path": "someone/Small-GPT")", {.name = {}, .otherwise = "folder"}),
            "small_gpt");
  EXPECT_EQ(named("", {.name = "mine"}), "mine");
}

}  // namespace
}  // namespace weft::imports
