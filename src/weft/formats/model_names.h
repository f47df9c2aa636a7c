// weft/formats/model_names.h -- chooses index names for dims that are identified by position.
//
//   n0 = matmul x, w      x[8, 512]      ->  x[b, d]
//   n1 = add n0, bias     w[512, 256]    ->  w[d, d1]
//                         bias[256]      ->  bias[d1],  n0[b, d1],  n1[b, d1]
//
// Dims that a node ties together become one index, in file order, unless a value would then have
// that index twice. Queries and keys made from the same words meet in scores[s, t], where only one
// dim can be the words' own s; the plan builder renames an operand there. The windows of all
// convolutions share their two names. An index is named by its role in its first reader (b, s, d
// for sequences, b, c, h, w for images), with a number if the name is taken.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "weft/formats/model_file.h"

namespace weft::formats {

class ModelNames {
 public:
  explicit ModelNames(const ModelFile& file);

  // The names of a value's dims, all distinct.
  std::span<const std::string> of(std::uint32_t value) const {
    return std::span(names_).subspan(first_[value], first_[value + 1] - first_[value]);
  }

 private:
  std::vector<std::size_t> first_;  // per value: number of its first dim among all dims
  std::vector<std::string> names_;
};

}  // namespace weft::formats
