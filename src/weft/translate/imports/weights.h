// weft/translate/imports/weights.h -- a checkpoint of the program that a model comes from, as one that LOAD takes.
//
//   model.layers.0.self_attn.q_proj.weight [4096, 4096]   ->   attention.0.wq [4096, 32, 1, 128]
//
// Elements keep their type: SET precision says with which the model runs.
#pragma once
#include <span>
#include <string>
#include <vector>

#include "weft/base/result.h"
#include "weft/formats/safetensors.h"
#include "weft/translate/imports/imported.h"

namespace weft::imports {

struct ConvertedWeights {
  formats::Checkpoint checkpoint;
  std::vector<std::string> unread;  // tensors of the files that no parameter is made of
};

// `files` are the shards of one checkpoint. Fails when a tensor is missing or of another size.
Result<ConvertedWeights> convert_weights(const Imported& model, std::span<const formats::Checkpoint> files);

}  // namespace weft::imports
