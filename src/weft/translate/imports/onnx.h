// weft/translate/imports/onnx.h -- a model from an ONNX file: its graph as WeftQL, its tensors as a checkpoint.
//
//   Conv, Relu, MaxPool, Gemm ...          conv1 AS (SELECT relu(conv2d(image, conv1_weight) + conv1_bias) ...
//
// Dims of ONNX go by place; the indices of the text are named as formats/model_names.h names them. Shapes that are
// computed from shapes are folded; dims that the file leaves open are 1. Batch norms keep their statistics as STATEs.
#pragma once
#include <string_view>

#include "weft/base/result.h"
#include "weft/formats/safetensors.h"
#include "weft/translate/imports/imported.h"

namespace weft::imports {

// A parameter whose numbers stand in a file beside the model's.
struct ExternalTensor {
  std::string parameter;
  plan::DType dtype = plan::DType::f32;
  std::vector<std::int64_t> shape;
  std::string location;               // relative, and within the folder of the model's file
  std::int64_t offset = 0, size = 0;  // in it
};

struct ImportedOnnx {
  Imported model;
  formats::Checkpoint
      weights;  // those that stand in the file, by the names of the text: large ones point into it
  std::vector<ExternalTensor> external;
};

Result<ImportedOnnx> import_onnx(std::string_view bytes, std::string_view name);

}  // namespace weft::imports
