// weft/formats/model_names.h -- index names for dims that go by place.
//
//   n0 = matmul x, w      x[8, 512]      ->  x[b, d]
//   n1 = add n0, bias     w[512, 256]    ->  w[d, d1]
//                         bias[256]      ->  bias[d1],  n0[b, d1],  n1[b, d1]
//
// Dims that a node ties together become one index, in the order of the file, unless a value would then
// have that index twice: queries and keys made from the same words meet in scores[s, t], of which only
// one can be the words' own s. Whoever builds the plan renames an operand there. The windows of all
// convolutions share their two names. An index is called by what its first reader takes it for: b, s, d
// of sequences, b, c, h, w of images, and a number where that is taken.
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

  // The names of a value's dims, all different.
  std::span<const std::string> of(std::uint32_t value) const {
    return std::span(names_).subspan(first_[value], first_[value + 1] - first_[value]);
  }

 private:
  std::vector<std::size_t> first_;  // by value: its dims among all
  std::vector<std::string> names_;
};

}  // namespace weft::formats
