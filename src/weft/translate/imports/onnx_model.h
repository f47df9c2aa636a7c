// weft/translate/imports/onnx_model.h -- an ONNX graph with all shapes resolved.
//
// Only computing nodes are left. Values and nodes are those of formats/model_file.h, which names
// positional dims. Other members hold what that format cannot express. Included by onnx*.cpp only.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "weft/base/result.h"
#include "weft/formats/model_file.h"
#include "weft/translate/imports/onnx_graph.h"

namespace weft::imports {

// A node that represents consecutive repeated layers (onnx_blocks.h).
struct RepeatedLayer {
  std::size_t node = 0;
  std::int64_t times = 0;
  std::vector<std::uint32_t> shared;  // other values that each of them reads
};

// The output is a loss: a mean of cross entropies, or a mean of all elements.
struct OnnxLoss {
  std::optional<std::uint32_t> labels = {};  // an integer input, or a reshape of one; empty: no cross entropy
  std::size_t classes = 1;                   // the dim of the scores
};

struct OnnxModel {
  formats::ModelFile file;
  std::vector<std::string> stems;               // by node: the stem of its entry's name
  std::map<std::size_t, std::uint32_t> biases;  // of convolutions: a 1-dimensional weight
  std::map<std::size_t, std::string>
      functions;  // by elementwise node that is not an operation of the model file: "sqrt({})"
  std::map<std::size_t, std::string> infixes;  // by binary node: " - "
  std::set<std::uint32_t> states;              // weights that are not trained
  std::set<std::uint32_t> labels;              // integer inputs that are labels of a loss
  std::set<std::uint32_t> positions;  // integer inputs; their last dim, of size 1, is not in the ONNX file
  std::vector<std::string> notes;
  std::optional<RepeatedLayer> repeated = {};
  std::optional<OnnxLoss> loss = {};  // of the single output
};

// The supported ONNX operators, in order.
std::vector<std::string_view> onnx_operators();

Result<OnnxModel> resolve_onnx(const OnnxGraph& graph);

// CREATE LAYER for the repeated block, CREATE MODEL, the parameter count, and the names of the
// weights.
struct OnnxText {
  std::string text;
  std::int64_t parameters = 0;
  std::map<std::uint32_t, std::string> names;  // weights' names in the text
};
Result<OnnxText> print_onnx(const OnnxModel& model, const std::string& name);

}  // namespace weft::imports
