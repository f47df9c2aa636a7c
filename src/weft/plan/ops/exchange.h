// weft/plan/ops/exchange.h -- the effect of a communication on the arrays of one group of ranks.
//
//   reduce-scatter along b, three ranks:   [1 2 3 4]         [6 9]
//                                          [2 3 4 5]   ->    [12 15]    blocks of ceil(4 / 3) = 2,
//                                          [3 4 5 6]         []         the last rank's is empty
#pragma once
#include <span>
#include <vector>

#include "weft/plan/graph/layout.h"
#include "weft/plan/ops/communication.h"
#include "weft/plan/ops/evaluation.h"

namespace weft::ops {

// The slice of x given by `share` along one of its dims.
template <class T>
Tensor<T> block_of(const Tensor<T>& x, std::size_t dim, plan::Share share);

// Concatenates the tensors along one dim. Their other dims are equal.
template <class T>
Tensor<T> end_to_end(std::span<const Tensor<T>* const> tensors, std::size_t dim);

// Combines elementwise, from the first tensor on: the order determines the bits of the result.
template <class T>
Tensor<T> combination(std::span<const Tensor<T>* const> tensors, plan::Monoid monoid,
                      const Numbers<T>& numbers);

// What each rank of the group holds after the exchange. `type` is the value's type, for its
// indices.
template <class T>
std::vector<Tensor<T>> exchange(const Exchange& what, const plan::Type& type,
                                std::span<const Tensor<T>* const> group, const Numbers<T>& numbers);

}  // namespace weft::ops
