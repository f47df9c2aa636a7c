// weft/parallel/distribute/draw_sources.h -- the random values at which two plans are compared.
//
//   tokens[b, s] OF int32, wte[v=7, d]     -1 0 1 2 3 4 5 6 7: every row of the table, and one beyond either end
//   step, where mod(step + 1, 2000) = 0    1998 1999 2000 3999 ..: at the multiple, before it and after it
//   mask[b, s] OF bool                     mostly true
//   w over the field                       any residue; for ties -1, 0 or 1, so that sums meet zero and each other
//   w in floating point                    near 1, and now and then far from it: softmax must be shifted, or
//                                          it overflows
//   state                                  not negative: variances and second moments are squares
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "weft/base/random.h"
#include "weft/plan/graph/graph.h"
#include "weft/plan/ops/evaluation.h"

namespace weft::distribute {

// What the whole numbers of a source lead to.
struct WholeNumbers {
  std::vector<std::int64_t> sizes;   // of the tables and of the classes that they pick from
  std::vector<std::int64_t> limits;  // numbers that they, or what is made of them, meet in arithmetic
};

// By source, of all these plans. None: they lead to nothing.
std::map<std::string, WholeNumbers, std::less<>> whole_numbers(const std::vector<const plan::Graph*>& graphs);

// Over the field: whether inputs and parameters have few different numbers, and whether some tensors are all zero.
// Zeros let the sums of deep plans meet zero, but what is multiplied by them hides what a tie decides.
enum class Ties : std::uint8_t { none, few_numbers, with_zeros };

struct DrawOptions {
  double peak = 1;  // how far from 1 a float is now and then
  Ties ties = Ties::none;
};

// A value of the source. `leads_to`: its own, or none.
template <class T>
ops::Tensor<T> draw_source(const plan::NodeView& source, const WholeNumbers& leads_to,
                           const DrawOptions& options, const ops::Numbers<T>& numbers, Random& random);

}  // namespace weft::distribute
