// weft/formats/model_form.h -- which dims of a node's operands and result are the same index.
//
//   matmul a[8, 128, 768], b[768, 3072] -> [8, 128, 3072]
//     result 0, a 0    result 1, a 1    result 2, b 1    and among the operands: a 2, b 0
//
// This table per operation is used both to find names and to rename operands.
#pragma once
#include <cstdint>
#include <vector>

#include "weft/base/result.h"
#include "weft/formats/model_file.h"

namespace weft::formats {

// Fails unless the ranks fit the node's operation, and so do sizes that decide what a dim means.
Status check_form(const ModelFile& file, std::size_t node);

// A dim of a node's operand, or of its result if the operand is kResult.
struct ModelDim {
  std::uint32_t operand = 0;
  std::uint32_t place = 0;
};
constexpr std::uint32_t kResult = 0xffffffff;

struct ModelTie {
  ModelDim a, b;
};

// Pairs of dims that are one index, result first. REQUIRES: the node has valid form.
std::vector<ModelTie> ties(const ModelFile& file, std::size_t node);

}  // namespace weft::formats
