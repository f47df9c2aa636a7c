// weft/translate/imports/hugging_face.h -- imports a model from the config.json of transformers.
//
//   {"model_type": "llama", "hidden_size": 4096, "num_hidden_layers": 32, ...}
//
//   CREATE OR REPLACE LAYER mine_attention(x[b, s, d]) ... ;
//   CREATE OR REPLACE LAYER mine_mlp(x[b, s, d]) ... ;
//   CREATE OR REPLACE MODEL mine (b = 1, s = 4096, d = 4096, ...) ... ;
//
// The text computes the same as the class of that name, including dropout and, if the class has
// one, its loss. A field with an unsupported value is refused by name. A field that does not affect
// the model is ignored. An unknown field is reported.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "weft/base/result.h"
#include "weft/translate/imports/imported.h"

namespace weft::imports {

struct HuggingFaceOptions {
  std::string name = {};       // of the model; empty: the file's name
  std::string otherwise = {};  // if the file has no name; empty: its architecture
  bool plain_rotary = false;   // treat scaled rotary angles (llama3, yarn) as unscaled, with a note
};

Result<Imported> import_hugging_face(std::string_view json, const HuggingFaceOptions& options = {});

// The supported model_types, in order.
std::vector<std::string_view> hugging_face_models();

// A valid WeftQL identifier: "Meta-Llama-3.1-8B" becomes meta_llama_3_1_8b.
std::string name_from(std::string_view text);

}  // namespace weft::imports
