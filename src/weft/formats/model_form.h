// weft/formats/model_form.h -- which dims of a node's operands and result are one and the same.
//
//   matmul a[8, 128, 768], b[768, 3072] -> [8, 128, 3072]
//     result 0, a 0    result 1, a 1    result 2, b 1    and among the operands: a 2, b 0
//
// This one table per operation is what names are found by and operands are renamed by.
#pragma once
#include <cstdint>
#include <vector>

#include "weft/base/result.h"
#include "weft/formats/model_file.h"

namespace weft::formats {

// Fails unless ranks, and sizes where they decide what a dim means, fit the node's operation.
Status check_form(const ModelFile& file, std::size_t node);

// A dim of a node's operand or, with kResult for the operand, of its result.
struct ModelDim {
  std::uint32_t operand = 0;
  std::uint32_t place = 0;
};
constexpr std::uint32_t kResult = 0xffffffff;

struct ModelTie {
  ModelDim a, b;
};

// The dims that are one index, result first. REQUIRES: the node has good form.
std::vector<ModelTie> ties(const ModelFile& file, std::size_t node);

}  // namespace weft::formats
