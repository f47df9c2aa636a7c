// weft/translate/imports/onnx_graph.h -- a parsed ONNX file: nodes, tensors, inputs and outputs.
//
// Only onnx_graph.cpp uses protobuf. If Weft is built without the distribution's libonnx, it
// returns an error.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "weft/base/result.h"
#include "weft/plan/graph/dtype.h"

namespace weft::imports {

struct OnnxTensor {
  std::string name;
  plan::DType dtype = plan::DType::f32;
  std::vector<std::int64_t> shape;
  std::string bytes;                  // row-major, little-endian; empty if external or large
  std::string_view large = {};        // points into the bytes that were read
  std::string location;               // external data: a file beside this one
  std::int64_t offset = 0, size = 0;  // within that file

  std::string_view data() const { return large.empty() ? std::string_view(bytes) : large; }
};

enum class OnnxKind : std::uint8_t { none, whole, number, word, tensor, wholes, other };

struct OnnxAttribute {
  OnnxKind kind = OnnxKind::none;  // kind of the value; none: no value, such as an empty list
  std::int64_t whole = 0;
  double number = 0;
  std::string word;
  std::vector<std::int64_t> wholes;
  OnnxTensor tensor;
};

struct OnnxNode {
  std::string operation, name;
  std::vector<std::string> inputs, outputs;
  std::map<std::string, OnnxAttribute, std::less<>> attributes;
};

struct OnnxValue {
  std::string name;
  plan::DType dtype = plan::DType::f32;
  std::vector<std::int64_t> shape;  // 0: a symbolic dim
  std::vector<std::string> open;    // names of the symbolic dims
};

struct OnnxGraph {
  std::string name;
  std::int64_t opset = 0;
  std::vector<OnnxNode> nodes;
  std::vector<OnnxTensor> tensors;
  std::vector<OnnxValue> inputs;  // without initializers
  std::vector<std::string> outputs;
};

// The double with the float's shortest decimal form: 0.1 for 0.1f.
double as_written(float value);

// Large tensors are not copied: the graph points into `bytes`.
Result<OnnxGraph> read_onnx(std::string_view bytes);

}  // namespace weft::imports
