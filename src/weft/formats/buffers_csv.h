// weft/formats/buffers_csv.h -- buffers to be packed, as MiniMalloc's problems have them.
//
//   id,lower,upper,size        alive on [lower, upper); the columns in any order, others passed over
//   b1,0,3,4
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "weft/base/result.h"
#include "weft/program/memory/pack.h"

namespace weft::formats {

struct NamedBuffers {
  std::vector<std::string> ids;  // each once
  std::vector<memory::Buffer> buffers;
};

Result<NamedBuffers> read_buffers_csv(std::string_view text);

}  // namespace weft::formats
