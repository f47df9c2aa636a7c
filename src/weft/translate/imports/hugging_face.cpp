#include "weft/translate/imports/hugging_face.h"

#include <algorithm>
#include <cctype>

#include <fmt/format.h>

#include "weft/base/nearest.h"
#include "weft/formats/json_node.h"
#include "weft/formats/value.h"
#include "weft/translate/imports/architectures.h"

namespace weft::imports {
namespace {

struct Family {
  std::string_view model_type;
  Result<Imported> (*import)(Request);
};

constexpr Family kFamilies[] = {
    {"bert", bert_of},      {"deepseek_v2", deepseek_of}, {"deepseek_v3", deepseek_of}, {"falcon", falcon_of},
    {"gemma", llama_of},    {"gemma2", llama_of},         {"gemma3_text", llama_of},    {"gpt2", gpt2_of},
    {"gpt_neox", neox_of},  {"llama", llama_of},          {"mistral", llama_of},        {"mixtral", llama_of},
    {"nemotron", llama_of}, {"olmo", llama_of},           {"olmo2", llama_of},          {"phi3", llama_of},
    {"qwen2", llama_of},    {"qwen3", llama_of},          {"qwen3_moe", llama_of},      {"t5", t5_of},
    {"vit", vit_of},        {"whisper", whisper_of},
};

// The model's name in the file, if any.
Result<std::string> own_name(Config& config) {
  WEFT_TRY(path, config.word_or("_name_or_path", ""));
  while (path.ends_with('/')) path.pop_back();
  return name_from(path.substr(path.rfind('/') + 1));
}

}  // namespace

std::string name_from(std::string_view text) {
  std::string name;
  for (const char c : text.substr(0, 60)) {
    const bool letter =
        std::isalnum(static_cast<unsigned char>(c)) != 0 && static_cast<unsigned char>(c) < 128;
    if (letter)
      name += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    else if (!name.empty() && name.back() != '_')
      name += '_';
  }
  while (name.ends_with('_')) name.pop_back();
  if (!name.empty() && std::isdigit(static_cast<unsigned char>(name.front())) != 0) name.insert(0, "model_");
  return name;
}

std::vector<std::string_view> hugging_face_models() {
  std::vector<std::string_view> names;
  for (const Family& family : kFamilies) names.push_back(family.model_type);
  return names;
}

Result<Imported> import_hugging_face(std::string_view text, const HuggingFaceOptions& options) {
  WEFT_TRY(json, formats::parse_json(text));
  WEFT_TRY_STATUS(Config(json).expect_object());
  if (!Config(json).has("model_type"))
    return user_error("expected model_type, found none",
                      "use a config.json of Hugging Face transformers, with model_type");
  WEFT_TRY(type, Config(json).word_or("model_type", ""));
  const auto family = std::ranges::find(kFamilies, type, &Family::model_type);
  if (family == std::end(kFamilies)) {
    const auto known = hugging_face_models();
    std::string hint = did_you_mean(type, known);
    if (hint.empty()) hint = fmt::format("known are {}", fmt::join(known, ", "));
    if (Config(json).has("text_config"))
      hint = "save its text_config, the language model, as a separate file and import that";
    return user_error(fmt::format("unknown model_type: '{}'", formats::shown(type)), hint);
  }
  Config config(json, &fields_of(type));
  WEFT_TRY_STATUS(config.expect_table());
  // The weights of quantized models have other shapes.
  if (config.has("quantization_config")) {
    WEFT_TRY(quantized, config.object("quantization_config"));
    WEFT_TRY(method, quantized.word_or("quant_method", "some method"));
    if (!(method == "fp8" && type == "deepseek_v3"))  // trained in fp8: the same shapes
      return user_error(fmt::format("quantization_config: expected none, found {}", formats::shown(method)),
                        "import the config.json of the model that was quantized");
  }
  WEFT_TRY(heads, config.words("architectures"));
  if (heads.size() > 1)
    return user_error(fmt::format("architectures: expected one class, found {}", heads.size()));
  std::string name = options.name;
  if (name.empty()) {
    WEFT_TRY(own, own_name(config));
    name = !own.empty() ? own : !options.otherwise.empty() ? options.otherwise : type;
  }
  return family->import(Request{config, options, name, type, heads.empty() ? std::string() : heads.front()});
}

Result<std::string> activation_of(Config& config, const char* key, std::string_view otherwise) {
  struct Function {
    std::string_view theirs, ours;
  };
  constexpr Function kFunctions[] = {{"gelu", "gelu"},
                                     {"gelu_accurate", "gelu_tanh"},
                                     {"gelu_fast", "gelu_tanh"},
                                     {"gelu_new", "gelu_tanh"},
                                     {"gelu_python", "gelu"},
                                     {"gelu_python_tanh", "gelu_tanh"},
                                     {"gelu_pytorch_tanh", "gelu_tanh"},
                                     {"relu", "relu"},
                                     {"sigmoid", "sigmoid"},
                                     {"silu", "silu"},
                                     {"swish", "silu"},
                                     {"tanh", "tanh"}};
  WEFT_TRY(word, config.word_or(key, otherwise));
  for (const Function& function : kFunctions)
    if (function.theirs == word) return std::string(function.ours);
  return user_error(fmt::format("{}: unknown activation '{}'", key, formats::shown(word)),
                    "known are gelu, gelu_new and its other names, relu, sigmoid, silu, swish and tanh");
}

std::string dropped(std::string x, double rate) {
  return rate == 0 ? x : fmt::format("dropout({}, rate => {})", x, rate);
}

std::string normal(double deviation) { return fmt::format("normal(0, {})", deviation); }

std::string layer_norm(std::string_view x, double epsilon, std::string_view partition, std::string_view gain,
                       std::string_view bias) {
  return fmt::format("layer_norm({}, epsilon => {}) OVER (PARTITION BY {}) * {} + {}", x, epsilon, partition,
                     gain, bias);
}

std::string rms_norm(std::string_view x, double epsilon, std::string_view gain) {
  return fmt::format("rms_norm({}, epsilon => {}) OVER (PARTITION BY b, s) * {}", x, epsilon, gain);
}

Status expect_divides(const char* parts_key, std::int64_t parts, const char* whole_key, std::int64_t whole) {
  if (whole % parts == 0) return {};
  return user_error(fmt::format("{} does not divide {}: {} and {}", parts_key, whole_key, parts, whole));
}

Result<Imported> finish(Request& request, ModelText& model, std::vector<std::string> notes) {
  Config& config = request.config;
  WEFT_TRY(older, config.word_or("torch_dtype", ""));
  WEFT_TRY(dtype, config.word_or("dtype", older));
  if (dtype == "bfloat16" || dtype == "float16")
    notes.push_back(fmt::format("weights are stored as {}: SET precision = {}", dtype,
                                dtype == "bfloat16" ? "bf16" : "f16"));
  if (config.has("auto_map")) notes.push_back("auto_map names custom code, which Weft does not read");
  if (const std::string left = config.unread(); !left.empty()) notes.push_back(left);
  return model.finish(request.architecture, std::move(notes));
}

}  // namespace weft::imports
