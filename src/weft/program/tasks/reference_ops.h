// weft/program/tasks/reference_ops.h -- finds operators of a program without a CPU kernel.
//
//   top-k ×2, softmax (its elements are bf16); contract (it multiplies 3 factors at once)
//
// They run by their reference definition in ops/, element by element in double precision: correct,
// but hundreds of times slower.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "weft/program/tasks/program.h"

namespace weft::program {

struct ReferenceOps {
  std::string op, why;
  std::int64_t count = 0;

  friend bool operator==(const ReferenceOps&, const ReferenceOps&) = default;
};

// In the order of first occurrence.
std::vector<ReferenceOps> find_reference_ops(const Program& program);

std::string print(std::span<const ReferenceOps> found);

}  // namespace weft::program
