// weft/translate/imports/architectures.h -- the transformer families, and their shared helpers.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "weft/base/result.h"
#include "weft/translate/imports/config.h"
#include "weft/translate/imports/hugging_face.h"
#include "weft/translate/imports/model_text.h"

namespace weft::imports {

// The input of every family's importer.
struct Request {
  Config& config;
  const HuggingFaceOptions& options;
  std::string name;          // of the model
  std::string architecture;  // model_type
  std::string head;          // the class in `architectures`, or empty
};

Result<Imported> bert_of(Request request);
Result<Imported> deepseek_of(Request request);  // v2 and v3
Result<Imported> falcon_of(Request request);
Result<Imported> gpt2_of(Request request);
Result<Imported> llama_of(Request request);  // and gemma, mistral, mixtral, olmo, phi3, qwen
Result<Imported> neox_of(Request request);
Result<Imported> t5_of(Request request);
Result<Imported> vit_of(Request request);
Result<Imported> whisper_of(Request request);

// The WeftQL function for an activation name of transformers.
Result<std::string> activation_of(Config& config, const char* key, std::string_view otherwise);
// "dropout(x, rate => 0.1)", or x if the rate is 0.
std::string dropped(std::string x, double rate);
// "normal(0, 0.02)"
std::string normal(double deviation);
// "layer_norm(x, epsilon => 1e-12) OVER (PARTITION BY b, s) * gain + bias"
std::string layer_norm(std::string_view x, double epsilon, std::string_view partition, std::string_view gain,
                       std::string_view bias);
std::string rms_norm(std::string_view x, double epsilon, std::string_view gain);

// Fails unless the number of parts (heads) divides the whole (features).
Status expect_divides(const char* parts_key, std::int64_t parts, const char* whole_key, std::int64_t whole);
// Finishes the model with the notes of all families.
Result<Imported> finish(Request& request, ModelText& model, std::vector<std::string> notes);

}  // namespace weft::imports
