// weft/translate/imports/onnx_norms.h -- fuses layer norms that an exporter decomposed.
//
//   (x - mean(x)) / sqrt(mean((x - mean(x)) ^ 2) + epsilon)   ->   LayerNormalization (ONNX opset 17)
//
// Included by onnx*.cpp only.
#pragma once
#include "weft/translate/imports/onnx_graph.h"

namespace weft::imports {

// Fuses norms along the last dim. Scale and shift remain separate nodes. Nodes without readers are
// removed.
void join_norms(OnnxGraph& graph);

}  // namespace weft::imports
