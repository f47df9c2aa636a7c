// weft/plan/ops/exchange.h -- what a communication does to the arrays of one group of ranks.
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

// The part of x that `share` names along one of its dims.
template <class T>
Tensor<T> block_of(const Tensor<T>& x, std::size_t dim, plan::Share share);

// The tensors end to end along one dim; in all others they are alike.
template <class T>
Tensor<T> end_to_end(std::span<const Tensor<T>* const> tensors, std::size_t dim);

// Element by element, from the first tensor on: the order is part of the result's bits.
template <class T>
Tensor<T> combination(std::span<const Tensor<T>* const> tensors, plan::Monoid monoid,
                      const Numbers<T>& numbers);

// What each rank of the group has after the exchange. `type` is the value's, for its indices.
template <class T>
std::vector<Tensor<T>> exchange(const Exchange& what, const plan::Type& type,
                                std::span<const Tensor<T>* const> group, const Numbers<T>& numbers);

}  // namespace weft::ops
