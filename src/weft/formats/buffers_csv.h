// weft/formats/buffers_csv.h -- buffers to pack, in MiniMalloc's problem format.
//
//   id,lower,upper,size        live on [lower, upper); columns in any order, other columns ignored
//   b1,0,3,4
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "weft/base/result.h"
#include "weft/program/memory/pack.h"

namespace weft::formats {

struct NamedBuffers {
  std::vector<std::string> ids;  // unique
  std::vector<memory::Buffer> buffers;
};

Result<NamedBuffers> read_buffers_csv(std::string_view text);

}  // namespace weft::formats
