// weft/translate/imports/onnx_light.h -- an ONNX file without its large tensors, to avoid copies.
//
//   model { graph { node .. initializer { w: 400 MB } .. } }   ->   the same without the 400 MB, and
//                                                                   their location
//
// So the parser's input is small, however large the file is. Included by onnx_graph.cpp only.
#pragma once
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace weft::imports {

struct LightOnnx {
  std::string bytes;
  std::vector<std::string_view> data;  // by initializer: the data left out, or empty
};

// Empty if the bytes are not valid protobuf as far as they are scanned; the parser then reports the
// error.
std::optional<LightOnnx> without_large_tensors(std::string_view bytes, std::size_t large = 4096);

}  // namespace weft::imports
