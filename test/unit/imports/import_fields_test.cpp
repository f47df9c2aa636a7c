// Every field of every table, changed: an honoured field changes the import or ends it, an ignored
// one changes nothing, one with a single valid value or an alias is rejected otherwise, and unknown
// ones are listed.
#include <set>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "field_samples.h"
#include "thorough.h"
#include "weft/formats/json_node.h"
#include "weft/translate/imports/fields.h"
#include "weft/translate/imports/hugging_face.h"

namespace weft::imports {
namespace {

using formats::Json;

// The complete result of an import: its text with notes, and the source of each weight.
struct Outcome {
  bool refused = false;
  std::string text;
  bool operator==(const Outcome&) const = default;
};

Outcome outcome_of(const Json& config) {
  const auto model = import_hugging_face(config.dump());
  if (!model.ok()) return {true, model.error().message};
  Outcome outcome{false, model->text};
  for (const WeightSource& weight : model->weights)
    outcome.text +=
        fmt::format("{} {} {} {} {} {} {} {}\n", weight.parameter, weight.tensor, fmt::join(weight.view, ","),
                    weight.axis, weight.begin, weight.count, fmt::join(weight.order, ","), weight.pairs);
  return outcome;
}

// Other values that a saver might write.
std::vector<Json> others(const std::string& name, const Json& value) {
  if (name == "quantization_config") return {Json::parse(R"({"quant_method": "gptq"})")};
  if (name == "auto_map") return {Json()};
  if (name == "model_type") return {"gpt9"};
  if (name == "architectures") return {Json::parse(R"(["OtherModel"])"), Json::parse(R"(["A", "B"])")};
  if (name == "problem_type") return {"multi_label_classification", "single_label_classification", "ordinal"};
  if (name == "feed_forward_proj") return {"relu", "gated-gelu", "gated-relu"};
  if (name == "topk_method") return {"greedy", "noaux_tc"};
  if (name == "layer_types") {
    Json longer = value, other = value;
    longer.push_back(value.front());
    other[0] = value.front() == "full_attention" ? "sliding_attention" : "full_attention";
    return {longer, other};
  }
  if (name == "output_router_logits" && value == true) return {};  // with a weight of 0, both are the same
  if (value.is_boolean()) return {!value.get<bool>()};
  if (value.is_number_integer()) return {value.get<int>() + 1, value.get<int>() * 2};
  if (value.is_number()) return {value.get<double>() * 0.5 + 0.01, value.get<double>() * 0.75};
  if (value.is_string()) return {value.get<std::string>() == "relu" ? "tanh" : "float32", "zzz"};
  if (name == "id2label") {
    Json more = value;
    more["3"] = "d";
    return {more};
  }
  Json scaling = value;  // of rotary angles
  Json& object = scaling.contains("full_attention") ? scaling["full_attention"] : scaling;
  if (object.contains("factor")) object["factor"] = object["factor"].get<double>() * 2;
  Json plain = value;
  (plain.contains("full_attention") ? plain["full_attention"] : plain)["rope_type"] = "default";
  Json wrong = value;
  (wrong.contains("full_attention") ? wrong["full_attention"] : wrong)["rope_type"] = "ropy";
  std::vector<Json> changed = {plain, wrong};
  if (scaling != value) changed.push_back(scaling);
  return changed;
}

const std::vector<Json>& anything() {
  static const std::vector<Json> values = {Json(),
                                           true,
                                           false,
                                           0,
                                           1,
                                           3,
                                           -7,
                                           0.25,
                                           "relu",
                                           "zzz",
                                           Json::array(),
                                           Json::object(),
                                           Json::parse(R"([1, 2])"),
                                           Json::parse(R"({"a": 1})")};
  return values;
}

// Some of them, different ones for each `turn`.
std::vector<Json> something(std::size_t turn) {
  constexpr std::size_t kSome = 2;
  if (is_thorough()) return anything();
  std::vector<Json> some;
  for (std::size_t i = 0; i < kSome; ++i) some.push_back(anything()[(kSome * turn + i) % anything().size()]);
  return some;
}

bool reads(const Field& field, const std::string& head) {
  return field.detail.empty() ||
         (" " + std::string(field.detail) + " ").find(" " + head + " ") != std::string::npos;
}

struct Sample {
  std::string title, head;
  Json config;
};

std::vector<Sample> samples_of(const SampleFamily& family) {
  std::vector<Sample> samples;
  for (const SampleClass& one : family.classes)
    for (const std::string& variant : family.variants)
      samples.push_back({fmt::format("{} ({} ..)", one.name, variant.substr(0, 20)), one.head,
                         Json::parse(fmt::format(R"({{"model_type": "{}", "architectures": ["{}"], {}{}}})",
                                                 family.model_type, one.name, family.fields, variant))});
  return samples;
}

// Fields that the class does not read may have any value, all at once.
void check_idle(const FieldTable& table, const Sample& sample, const Outcome& base, std::size_t turn) {
  for (const Json& value : something(turn)) {
    Json changed = sample.config;
    for (const Field& field : table.all())
      if (field.use == Use::harmless || (field.use == Use::honoured && !reads(field, sample.head)))
        changed[std::string(field.name)] = value;
    EXPECT_EQ(outcome_of(changed), base) << sample.title << " with " << value.dump();
  }
}

void check_field(const Field& field, const Sample& sample, const Outcome& base, std::size_t turn) {
  const std::string name(field.name);
  const auto with = [&](const Json& value) {
    Json changed = sample.config;
    changed[name] = value;
    return outcome_of(changed);
  };
  const auto describe = [&](const Json& value) {
    return fmt::format("{}: {} = {}", sample.title, name, value.dump());
  };
  const Json own = sample.config.value(name, Json());
  if (field.use == Use::honoured && reads(field, sample.head) &&
      (sample.config.contains(name) || name == "quantization_config"))
    for (const Json& value : others(name, own))
      if (value != own) {
        EXPECT_NE(with(value), base) << describe(value);
      }
  if (field.use != Use::only && field.use != Use::same_as) return;
  const Json allowed = field.use == Use::only ? Json::parse(field.detail)
                                              : sample.config.value(std::string(field.detail), Json());
  for (const Json& value : something(turn)) {
    if (value.is_null() || value == allowed) continue;
    EXPECT_TRUE(with(value).refused) << describe(value);
  }
  EXPECT_EQ(with(allowed), base) << describe(allowed);
}

class ImportFields : public testing::TestWithParam<std::size_t> {};

TEST_P(ImportFields, AreHonouredRejectedOrIgnored) {
  const SampleFamily& family = sample_families()[GetParam()];
  const std::vector<Sample> samples = samples_of(family);
  std::vector<Outcome> bases;
  for (const Sample& sample : samples) {
    bases.push_back(outcome_of(sample.config));
    ASSERT_FALSE(bases.back().refused) << sample.title << ": " << bases.back().text;
    EXPECT_EQ(bases.back().text.find("unknown and ignored"), std::string::npos)
        << sample.title << bases.back().text;
  }
  const FieldTable& table = fields_of(family.model_type);
  for (std::size_t i = 0; i < samples.size(); ++i) check_idle(table, samples[i], bases[i], i);
  std::size_t turn = GetParam();
  for (const Field& field : table.all()) {
    ++turn;
    if (field.use != Use::honoured) {
      check_field(field, samples.front(), bases.front(), turn);
      continue;
    }
    std::set<std::string> missing, tried;  // the heads that read it
    for (std::size_t i = 0; i < samples.size(); ++i) {
      const Sample& sample = samples[i];
      if (!reads(field, sample.head)) continue;
      if (field.name != "quantization_config") missing.insert(sample.head);
      // Once per head if the field depends on the head, else only with the first, unless thorough.
      const bool has = sample.config.contains(std::string(field.name));
      if (is_thorough() || (has && tried.insert(field.detail.empty() ? "" : sample.head).second))
        check_field(field, sample, bases[i], turn);
    }
    for (const Sample& sample : samples)
      if (sample.config.contains(std::string(field.name))) missing.erase(sample.head);
    EXPECT_TRUE(missing.empty()) << family.model_type << " has no sample of " << field.name << " with "
                                 << fmt::format("{}", fmt::join(missing, ", "));
  }
}

TEST_P(ImportFields, UnknownOnesAreListed) {
  for (const Sample& sample : every(4, samples_of(sample_families()[GetParam()]))) {
    Json config = sample.config;
    config["wings"] = 2;
    const std::string inner = config.contains("rope_scaling") ? "rope_scaling" : "rope_parameters";
    const bool within = config.contains(inner);
    if (within) config[inner]["feathers"] = true;
    const auto model = import_hugging_face(config.dump());
    ASSERT_TRUE(model.ok()) << model.error().message;
    const std::string note = fmt::format("unknown and ignored: {}wings", within ? inner + ".feathers, " : "");
    EXPECT_NE(model->text.find(note), std::string::npos) << sample.title << "\n"
                                                         << model->text.substr(0, 500);
  }
}

INSTANTIATE_TEST_SUITE_P(All, ImportFields, testing::Range<std::size_t>(0, sample_families().size()),
                         [](const auto& one) { return sample_families()[one.param].model_type; });

// The fields of published files, most with other values: none is unknown.
TEST(ImportFieldTables, KnowTheFieldsOfPublishedFiles) {
  const std::string saved =
      R"("bos_token_id": 1, "eos_token_id": [2, 3], "torch_dtype": "bfloat16", "transformers_version": "4.43",
      "use_cache": true, "vocab_size": 20, "num_hidden_layers": 2, "initializer_range": 0.02, )";
  const std::string decoder = saved + R"("hidden_size": 16, "intermediate_size": 24, "num_attention_heads": 4,
      "num_key_value_heads": 2, "max_position_embeddings": 64, "rms_norm_eps": 1e-6, "attention_dropout": 0.0,
      "tie_word_embeddings": false, )";
  const std::string files[] = {
      decoder +
          R"("architectures": ["LlamaForCausalLM"], "model_type": "llama", "attention_bias": false, "hidden_act": "silu",
          "mlp_bias": false, "pretraining_tp": 1, "rope_theta": 5e5, "rope_scaling": {"factor": 8.0, "low_freq_factor": 1.0,
          "high_freq_factor": 4.0, "original_max_position_embeddings": 32, "rope_type": "llama3"})",
      decoder + R"("architectures": ["Gemma2ForCausalLM"], "model_type": "gemma2", "attention_bias": false,
          "attn_logit_softcapping": 50.0, "cache_implementation": "hybrid", "final_logit_softcapping": 30.0, "head_dim": 4,
          "hidden_act": "gelu_pytorch_tanh", "hidden_activation": "gelu_pytorch_tanh", "pad_token_id": 0,
          "query_pre_attn_scalar": 144, "rope_theta": 1e4, "sliding_window": 8, "sliding_window_size": 8)",
      decoder +
          R"("architectures": ["Gemma3ForCausalLM"], "model_type": "gemma3_text", "attention_bias": false,
          "attn_logit_softcapping": null, "final_logit_softcapping": null, "cache_implementation": "hybrid", "head_dim": 4,
          "hidden_activation": "gelu_pytorch_tanh", "query_pre_attn_scalar": 256, "rope_local_base_freq": 10000,
          "rope_scaling": null, "rope_theta": 1000000, "sliding_window": 8, "sliding_window_pattern": 6)",
      decoder +
          R"("architectures": ["Phi3ForCausalLM"], "model_type": "phi3", "attention_bias": false, "embd_pdrop": 0.0,
          "auto_map": {"AutoConfig": "configuration_phi3.Phi3Config"}, "hidden_act": "silu", "pad_token_id": 5,
          "original_max_position_embeddings": 4096, "resid_pdrop": 0.0, "rope_scaling": null, "sliding_window": 2047)",
      decoder +
          R"("architectures": ["Qwen3ForCausalLM"], "model_type": "qwen3", "attention_bias": false, "head_dim": 4,
          "hidden_act": "silu", "max_window_layers": 28, "rope_scaling": null, "rope_theta": 1000000, "sliding_window": null,
          "use_sliding_window": false)",
      decoder +
          R"("architectures": ["Olmo2ForCausalLM"], "model_type": "olmo2", "attention_bias": false, "hidden_act": "silu",
          "pad_token_id": 1, "rope_scaling": null, "rope_theta": 500000)",
      saved + R"("architectures": ["FalconForCausalLM"], "model_type": "falcon", "alibi": false,
          "apply_residual_connection_post_layernorm": false, "attention_dropout": 0.0, "bias": false, "hidden_dropout": 0.0,
          "hidden_size": 16, "layer_norm_epsilon": 1e-5, "multi_query": true, "new_decoder_architecture": false,
          "num_attention_heads": 4, "parallel_attn": true)",
      R"("architectures": ["WhisperForConditionalGeneration"], "model_type": "whisper", "activation_dropout": 0.0,
          "activation_function": "gelu", "apply_spec_augment": false, "attention_dropout": 0.0, "begin_suppress_tokens": [220],
          "classifier_proj_size": 256, "d_model": 16, "decoder_attention_heads": 4, "decoder_ffn_dim": 24,
          "decoder_layerdrop": 0.0, "decoder_layers": 2, "decoder_start_token_id": 1, "dropout": 0.0,
          "encoder_attention_heads": 4, "encoder_ffn_dim": 24, "encoder_layerdrop": 0.0, "encoder_layers": 2,
          "forced_decoder_ids": [[1, 2]], "init_std": 0.02, "is_encoder_decoder": true, "mask_time_prob": 0.05,
          "max_length": 448, "max_source_positions": 6, "max_target_positions": 4, "median_filter_width": 7,
          "num_hidden_layers": 2, "num_mel_bins": 8, "pad_token_id": 1, "scale_embedding": false, "suppress_tokens": [],
          "use_weighted_layer_sum": false, "vocab_size": 20)"};
  for (const std::string& fields : files) {
    const auto model = import_hugging_face("{" + fields + "}");
    ASSERT_TRUE(model.ok()) << model.error().message << fields;
    EXPECT_EQ(model->text.find("unknown and ignored"), std::string::npos) << model->text.substr(0, 400);
  }
}

// Empty values: null as a boolean is false, as in Python, and an empty list or table is rejected.
TEST(ImportFieldTables, TreatEmptyValuesAsTheClassDoes) {
  const Json config = Json::parse(
      R"({"model_type": "gpt_neox", "architectures": ["GPTNeoXForTokenClassification"], "hidden_size": 16,
      "intermediate_size": 24, "num_attention_heads": 4, "num_hidden_layers": 2, "vocab_size": 20, "rotary_pct": 1.0})");
  const auto with = [&](const char* name, const Json& value) {
    Json changed = config;
    changed[name] = value;
    return outcome_of(changed);
  };
  for (const char* name : {"attention_bias", "use_parallel_residual"}) {
    EXPECT_EQ(with(name, Json()), with(name, false)) << name;
    EXPECT_NE(with(name, Json()), with(name, true)) << name;
  }
  for (const Json& value : {Json::array(), Json::object(), Json("a"), Json::parse(R"(["a", "b"])")})
    EXPECT_TRUE(with("id2label", value).refused) << value.dump();
  Json mistral = config;
  mistral["model_type"] = "mistral";
  mistral["architectures"] = {"MistralModel"};
  mistral["num_key_value_heads"] = 2;
  EXPECT_FALSE(outcome_of(mistral).refused) << outcome_of(mistral).text;
  mistral["layer_types"] = Json::array();
  EXPECT_TRUE(outcome_of(mistral).refused);
}

TEST(ImportFieldTables, HaveASampleOfEveryFamily) {
  std::vector<std::string> sampled;
  for (const SampleFamily& family : sample_families()) sampled.push_back(family.model_type);
  const auto known = hugging_face_models();
  EXPECT_EQ(sampled, std::vector<std::string>(known.begin(), known.end()));
}

}  // namespace
}  // namespace weft::imports
