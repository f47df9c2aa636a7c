// weft/distribute/draw_sources.h -- the random values at which two plans are compared.
//
//   tokens[b, s] OF int32, wte[v=7, d]     -1 0 1 2 3 4 5 6 7: every row of the table, and one beyond either end
//   mask[b, s] OF bool                     mostly true
//   w over the field                       any residue
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
#include "weft/ops/evaluation.h"
#include "weft/plan/graph.h"

namespace weft::distribute {

// What the whole numbers of the sources pick from, by name: the sizes of the tables and of the classes that
// they lead to. None: they lead to no table.
std::map<std::string, std::vector<std::int64_t>, std::less<>> picked_sizes(const plan::Graph& graph);

// A value of the source. `sizes`: what its whole numbers pick from. `peak`: how far from 1 a float is now and
// then.
template <class T>
ops::Tensor<T> draw_source(const plan::NodeView& source, const std::vector<std::int64_t>& sizes, double peak,
                           const ops::Numbers<T>& numbers, Random& random);

}  // namespace weft::distribute
