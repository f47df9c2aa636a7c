// weft/translate/imports/onnx_blocks.h -- the blocks that an ONNX graph repeats, found again.
//
//   nodes   a b | c d e | c d e | c d e | f        layer  c d e, of x and its own weights
//   weights       p q     p' q'   p" q"            model  a b, REPEAT 3 TIMES x AS (SELECT * FROM block(x)), f
//
// Exporters unroll layers. Nodes that come again at a distance, with the same operands moved by that distance, other
// weights of the same shapes, or the very same values, are a block where just one value goes from each to the next.
// Included by onnx*.cpp only.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "weft/translate/imports/onnx_model.h"

namespace weft::imports {

struct OnnxBlocks {
  OnnxModel layer;  // its inputs: what goes from block to block, then `shared`
  OnnxModel rest;   // the blocks are one node of it, see OnnxModel::repeated
  std::vector<std::vector<std::uint32_t>>
      weights;  // by block: those of the whole model, in the layer's order
};

// The one that leaves least to read; none where nothing repeats.
std::optional<OnnxBlocks> find_blocks(const OnnxModel& model);

}  // namespace weft::imports
