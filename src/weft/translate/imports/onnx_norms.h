// weft/translate/imports/onnx_norms.h -- layer norms that an exporter wrote out, put together again.
//
//   (x - mean(x)) / sqrt(mean((x - mean(x)) ^ 2) + epsilon)      LayerNormalization, which ONNX has from opset 17 on
//
// Included by onnx*.cpp only.
#pragma once
#include "weft/translate/imports/onnx_graph.h"

namespace weft::imports {

// Along the last dim; scale and shift stay nodes of their own. Nodes that nobody reads any more are dropped.
void join_norms(OnnxGraph& graph);

}  // namespace weft::imports
