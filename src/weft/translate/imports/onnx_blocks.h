// weft/translate/imports/onnx_blocks.h -- detects the repeated blocks of an unrolled ONNX graph.
//
//   nodes   a b | c d e | c d e | c d e | f        layer  c d e, of x and its own weights
//   weights       p q     p' q'   p" q"            model  a b, REPEAT 3 TIMES x AS (SELECT * FROM block(x)), f
//
// Exporters unroll layers. Nodes form a repeated block if they recur at a fixed distance and
// exactly one value passes from each block to the next. Their operands must be shifted by the same
// distance, be other weights of the same shapes, or be the same values. Included by onnx*.cpp only.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "weft/translate/imports/onnx_model.h"

namespace weft::imports {

struct OnnxBlocks {
  OnnxModel layer;  // inputs: the value passed between blocks, then `shared`
  OnnxModel rest;   // the blocks are one node of it, see OnnxModel::repeated
  std::vector<std::vector<std::uint32_t>>
      weights;  // by block: weights of the whole model, in the layer's order
};

// The blocks that shorten the text the most; empty if nothing repeats.
std::optional<OnnxBlocks> find_blocks(const OnnxModel& model);

}  // namespace weft::imports
