// weft/formats/safetensors_header.h -- reads and checks the JSON header of a safetensors file.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "weft/base/result.h"

namespace weft::formats {

// One tensor as the header describes it. Offsets count from the end of the header.
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

// Parses the header as a stream, so that a hostile one takes no more memory than its length. Checks
// its form: unique names, and every tensor with exactly dtype, shape and data_offsets.
Result<SafetensorsHeader> read_safetensors_header(std::string_view json, std::string_view path);

}  // namespace weft::formats
