// weft/translate/imports/onnx.h -- imports an ONNX file: graph as WeftQL, tensors as a checkpoint.
//
//   Conv, Relu, MaxPool, Gemm ..     conv1 AS (SELECT relu(conv2d(image, conv1_weight) + conv1_bias) ..
//
// ONNX dims are positional; the indices of the text are named by formats/model_names.h. Shapes
// computed from shapes are folded. Dims that the file leaves open become 1. Batch norms keep their
// statistics as STATEs.
#pragma once
#include <string_view>

#include "weft/base/result.h"
#include "weft/formats/safetensors.h"
#include "weft/translate/imports/imported.h"

namespace weft::imports {

// A parameter whose data are in a file beside the model's.
struct ExternalTensor {
  std::string parameter;
  plan::DType dtype = plan::DType::f32;
  std::vector<std::int64_t> shape;
  std::string location;               // relative path within the folder of the model's file
  std::int64_t offset = 0, size = 0;  // within that file
};

struct ImportedOnnx {
  Imported model;
  formats::Checkpoint weights;  // in the file, by names of the text; large ones point into the file's bytes
  std::vector<ExternalTensor> external;
};

Result<ImportedOnnx> import_onnx(std::string_view bytes, std::string_view name);

}  // namespace weft::imports
