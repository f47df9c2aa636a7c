// weft/formats/safetensors_header.h -- the JSON that a safetensors file begins with, read and checked.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "weft/base/result.h"

namespace weft::formats {

// One tensor as the header tells of it. Offsets count from the end of the header.
struct HeaderTensor {
  std::string name;
  std::string dtype;  // "F32"
  std::vector<std::int64_t> shape;
  std::int64_t begin = 0, end = 0;  // 0 <= begin <= end
};

struct SafetensorsHeader {
  std::map<std::string, std::string> metadata;
  std::vector<HeaderTensor> tensors;
};

// Reads the header's text as a stream, so that a hostile one costs no more memory than its length.
// Checks its form: every name once, every tensor with dtype, shape and data_offsets and nothing else.
Result<SafetensorsHeader> read_safetensors_header(std::string_view json, std::string_view path);

}  // namespace weft::formats
