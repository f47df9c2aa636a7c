// weft/rules/rule/infer_lists.h -- which index variables the results of a pattern's node have.
//
//   contract(x[B, K], v[K, n], to=[B, n])   [B, n]         as `to` says
//   add(x[B, n], b[n])                      [B, n]         joined
//   rename(w[K, m], from=[m], to=[n])       [K, n]         replaced
//   conv2d(x[b, c, h, w], v[o, c, r, q])    [b, o, h, w]   by place
//
// An operator that is not known here gives results of which nothing is known.
#pragma once
#include <optional>
#include <span>
#include <vector>

#include "weft/base/result.h"
#include "weft/rules/rule/rule.h"

namespace weft::rule {

// How many results a node of the operator has.
std::size_t results_of(const plan::Operator& op);

// One list for each result, where it is known. Fails when an attribute names an index that no operand has.
Result<std::vector<std::optional<IndexList>>> infer_lists(const Rule& rule, const PatternNode& node,
                                                          std::span<const std::optional<IndexList>> operands);

std::string print(const Rule& rule, const IndexList& list);  // [B, n]

}  // namespace weft::rule
