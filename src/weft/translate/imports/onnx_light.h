// weft/translate/imports/onnx_light.h -- an ONNX file without its large tensors, which stay where they are.
//
//   model { graph { node .. initializer { w: 400 MB } .. } }   ->   the same without the 400 MB, and where they stand
//
// What is parsed is small then, however large the file is. Included by onnx_graph.cpp only.
#pragma once
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace weft::imports {

struct LightOnnx {
  std::string bytes;
  std::vector<std::string_view> data;  // by initializer: what was left out; empty: nothing
};

// None where the bytes are no protobuf as far as it looks into them: a parser says where they are wrong.
std::optional<LightOnnx> without_large_tensors(std::string_view bytes, std::size_t large = 4096);

}  // namespace weft::imports
