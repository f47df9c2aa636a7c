// weft/translate/imports/hugging_face.h -- a model from the config.json that Hugging Face's transformers keep beside its weights.
//
//   {"model_type": "llama", "hidden_size": 4096, "num_hidden_layers": 32, ...}
//
//   CREATE OR REPLACE LAYER mine_attention(x[b, s, d]) ... ;
//   CREATE OR REPLACE LAYER mine_mlp(x[b, s, d]) ... ;
//   CREATE OR REPLACE MODEL mine (b = 1, s = 4096, d = 4096, ...) ... ;
//
// The text computes what the class of that name computes, dropout included, and its loss where the class has one.
// A field that Weft has no text for is refused by its name; one that changes nothing is passed over; one that is not
// known is told of.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "weft/base/result.h"
#include "weft/translate/imports/imported.h"

namespace weft::imports {

struct HuggingFaceOptions {
  std::string name = {};       // of the model; empty: as the file has it
  std::string otherwise = {};  // where the file has none; empty: its architecture
  bool plain_rotary = false;   // scaled rotary angles (llama3, yarn) are taken for unscaled ones, with a note
};

Result<Imported> import_hugging_face(std::string_view json, const HuggingFaceOptions& options = {});

// The model_types that are known, in order.
std::vector<std::string_view> hugging_face_models();

// A word that WeftQL takes for a name: "Meta-Llama-3.1-8B" is meta_llama_3_1_8b.
std::string name_from(std::string_view text);

}  // namespace weft::imports
