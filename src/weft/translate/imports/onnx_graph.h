// weft/translate/imports/onnx_graph.h -- an ONNX file as it states itself: nodes in order, tensors, what goes in and out.
//
// Only onnx_graph.cpp knows protobuf; where Weft is built without the distribution's libonnx it says so.
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
  std::string bytes;                  // row-major, little-endian; empty where the data are external or large
  std::string_view large = {};        // in the bytes that were read
  std::string location;               // of external data: a file beside this one
  std::int64_t offset = 0, size = 0;  // in it

  std::string_view data() const { return large.empty() ? std::string_view(bytes) : large; }
};

enum class OnnxKind : std::uint8_t { none, whole, number, word, tensor, wholes, other };

struct OnnxAttribute {
  OnnxKind kind = OnnxKind::none;  // of what is stated; none: nothing, as an empty list
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
  std::vector<std::int64_t> shape;  // 0: a dim that the file leaves open
  std::vector<std::string> open;    // the names of those, as the file has them
};

struct OnnxGraph {
  std::string name;
  std::int64_t opset = 0;
  std::vector<OnnxNode> nodes;
  std::vector<OnnxTensor> tensors;
  std::vector<OnnxValue> inputs;  // without tensors
  std::vector<std::string> outputs;
};

// The double that is written as the float is: of 0.1f, 0.1.
double as_written(float value);

// Large tensors are not copied: the graph points into the bytes.
Result<OnnxGraph> read_onnx(std::string_view bytes);

}  // namespace weft::imports
