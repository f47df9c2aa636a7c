// weft/translate/imports/weights.h -- converts a checkpoint of the original program for LOAD.
//
//   model.layers.0.self_attn.q_proj.weight [4096, 4096]   ->   attention.0.wq [4096, 32, 1, 128]
//
// Elements keep their dtype: SET precision selects the dtype of the run.
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
  std::vector<std::string> unread;  // tensors of the files that no parameter uses
};

// `files` are the shards of one checkpoint. Fails if a tensor is missing or has another size.
Result<ConvertedWeights> convert_weights(const Imported& model, std::span<const formats::Checkpoint> files);

}  // namespace weft::imports
