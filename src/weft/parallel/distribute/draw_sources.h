// weft/parallel/distribute/draw_sources.h -- random values on which two plans are compared.
//
//   tokens[b, s] OF int32, wte[v=7, d]   -1 0 1 2 3 4 5 6 7: every row of the table, and one past
//                                        either end
//   step, where mod(step + 1, 2000) = 0  1998 1999 2000 3999 ..: around and at multiples of the
//                                        limit
//   mask[b, s] OF bool                   mostly true
//   w over the field                     any residue; for ties -1, 0 or 1, so that sums equal zero
//                                        and each other
//   w in floating point                  near 1, and occasionally far from it: a softmax that does
//                                        not subtract the maximum overflows
//   state                                not negative: variances and second moments are squares
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

// How the plan uses the integers of a source.
struct WholeNumbers {
  std::vector<std::int64_t> sizes;   // of the tables and classes that they index
  std::vector<std::int64_t> limits;  // constants that they, or integers computed from them, are combined with
};

// By source, over all these plans. Sources without such uses have no entry.
std::map<std::string, WholeNumbers, std::less<>> whole_numbers(const std::vector<const plan::Graph*>& graphs);

// Over the field: whether inputs and parameters have few distinct values, and whether some tensors
// are all zero. Zeros make sums of deep plans tie with zero, but a factor of zero hides the effect
// of a tie.
enum class Ties : std::uint8_t { none, few_numbers, with_zeros };

struct DrawOptions {
  double peak = 1;  // magnitude of occasional outliers
  Ties ties = Ties::none;
};

// A random tensor for the source. `leads_to`: the source's entry of whole_numbers(), or empty.
template <class T>
ops::Tensor<T> draw_source(const plan::NodeView& source, const WholeNumbers& leads_to,
                           const DrawOptions& options, const ops::Numbers<T>& numbers, Random& random);

}  // namespace weft::distribute
