// weft/rules/rule/infer_lists.h -- infers the index variables of the results of a pattern's node.
//
//   contract(x[B, K], v[K, n], to=[B, n])   [B, n]         given by `to`
//   add(x[B, n], b[n])                      [B, n]         joined
//   rename(w[K, m], from=[m], to=[n])       [K, n]         replaced
//   conv2d(x[b, c, h, w], v[o, c, r, q])    [b, o, h, w]   by position
//
// For an operator that is not listed here, the results' lists are unknown.
#pragma once
#include <optional>
#include <span>
#include <vector>

#include "weft/base/result.h"
#include "weft/rules/rule/rule.h"

namespace weft::rule {

// The number of results of a node with this operator.
std::size_t results_of(const plan::Operator& op);

// One list per result, nullopt if unknown. Fails if an attribute names an index that no operand
// has.
Result<std::vector<std::optional<IndexList>>> infer_lists(const Rule& rule, const PatternNode& node,
                                                          std::span<const std::optional<IndexList>> operands);

std::string print(const Rule& rule, const IndexList& list);  // [B, n]

}  // namespace weft::rule
