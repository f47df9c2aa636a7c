// weft/translate/imports/onnx_model.h -- an ONNX graph with every shape known and nothing left but what computes.
//
// Values and nodes are those of formats/model_file.h, which gives names to dims that go by place; beside them stands
// what that has no words for. Included by onnx*.cpp only.
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

// A node that stands for layers, one after the other (onnx_blocks.h).
struct RepeatedLayer {
  std::size_t node = 0;
  std::int64_t times = 0;
  std::vector<std::uint32_t> shared;  // values that each of them reads besides
};

// The output is a loss: a mean of cross entropies, or of all there is.
struct OnnxLoss {
  std::optional<std::uint32_t> labels = {};  // an input of whole numbers, or one that was reshaped
  std::size_t classes = 1;                   // the dim of the scores
};

struct OnnxModel {
  formats::ModelFile file;
  std::vector<std::string> stems;               // by node: what its entry is called after
  std::map<std::size_t, std::uint32_t> biases;  // of convolutions: a weight with one dim
  std::map<std::size_t, std::string>
      functions;  // of elementwise nodes that are no operation of the file: "sqrt({})"
  std::map<std::size_t, std::string> infixes;  // of two operands: " - "
  std::set<std::uint32_t> states;              // weights that are not trained
  std::set<std::uint32_t> labels;              // inputs of whole numbers that a loss compares with
  std::set<std::uint32_t> positions;  // inputs of whole numbers, whose last dim, of size 1, is not the file's
  std::vector<std::string> notes;
  std::optional<RepeatedLayer> repeated = {};
  std::optional<OnnxLoss> loss = {};  // of the one output
};

// The operators of ONNX that are known, in order.
std::vector<std::string_view> onnx_operators();

Result<OnnxModel> resolve_onnx(const OnnxGraph& graph);

// CREATE LAYER of what repeats, CREATE MODEL, their parameters and their weights.
struct OnnxText {
  std::string text;
  std::int64_t parameters = 0;
  std::map<std::uint32_t, std::string> names;  // of weights, in the text
};
Result<OnnxText> print_onnx(const OnnxModel& model, const std::string& name);

}  // namespace weft::imports
