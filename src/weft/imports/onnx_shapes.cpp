// Operators that move dims alone.
#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "weft/imports/onnx_resolver.h"

namespace weft::imports {

Status OnnxResolver::reshape_to(ModelShape result) {
  WEFT_TRY(x, operand(0));
  return push(made(Operation::reshape, {x}), std::move(result), "shaped");
}

Status OnnxResolver::add_reshape() {
  WEFT_TRY(x, operand(0));
  const Folded* sizes = known(1);
  if (sizes == nullptr) return user_error("expected a shape that is known, found one that is computed");
  std::int64_t elements = 1, rest = 1;
  for (const std::int64_t size : shape(x)) elements *= size;
  ModelShape result = sizes->wholes;
  std::optional<std::size_t> open;
  for (std::size_t i = 0; i < result.size(); ++i) {
    if (result[i] == 0 && i < shape(x).size() && whole("allowzero", 0) == 0) result[i] = shape(x)[i];
    if (result[i] == -1 && !open) {
      open = i;
      continue;
    }
    if (result[i] < 1 || __builtin_mul_overflow(rest, result[i], &rest))
      return user_error(fmt::format("expected sizes from 1 on, found {}", result[i]));
  }
  if (open) {
    if (elements % rest != 0)
      return user_error(fmt::format("{} elements are no multiple of {}", elements, rest));
    result[*open] = elements / rest;
  }
  return reshape_to(std::move(result));
}

Status OnnxResolver::add_flatten() {
  WEFT_TRY(x, operand(0));
  const std::int64_t at = whole("axis", 1);
  const auto rank = static_cast<std::int64_t>(shape(x).size());
  if (at < -rank || at > rank)
    return user_error(fmt::format("expected an axis of {} dims, found {}", rank, at));
  ModelShape result = {1, 1};
  for (std::int64_t i = 0; i < rank; ++i)
    result[i < (at < 0 ? at + rank : at) ? 0 : 1] *= shape(x)[static_cast<std::size_t>(i)];
  return reshape_to(std::move(result));
}

Status OnnxResolver::add_unsqueeze() {
  WEFT_TRY(x, operand(0));
  const Folded* axes = known(1);
  if (axes == nullptr) return user_error("expected axes that are known");
  ModelShape result = shape(x);
  std::vector<std::int64_t> places = axes->wholes;
  const auto rank = static_cast<std::int64_t>(result.size() + places.size());
  for (std::int64_t& place : places) {
    if (place < -rank || place >= rank)
      return user_error(fmt::format("expected an axis of {} dims, found {}", rank, place));
    if (place < 0) place += rank;
  }
  std::ranges::sort(places);
  for (const std::int64_t place : places) {
    if (place > static_cast<std::int64_t>(result.size())) return user_error("expected every axis once");
    result.insert(result.begin() + place, 1);
  }
  return reshape_to(std::move(result));
}

Status OnnxResolver::add_squeeze() {
  WEFT_TRY(x, operand(0));
  const Folded* axes = known(1);
  ModelShape result;
  std::set<std::size_t> gone;
  if (axes != nullptr)
    for (const std::int64_t place : axes->wholes) {
      WEFT_TRY(at, axis(place, shape(x).size()));
      if (shape(x)[at] != 1) return user_error(fmt::format("expected a dim of 1, found {}", shape(x)[at]));
      gone.insert(at);
    }
  for (std::size_t i = 0; i < shape(x).size(); ++i)
    if (axes == nullptr ? shape(x)[i] != 1 : !gone.contains(i)) result.push_back(shape(x)[i]);
  return reshape_to(std::move(result));
}

Status OnnxResolver::add_transpose() {
  WEFT_TRY(x, operand(0));
  ModelNode node = made(Operation::transpose, {x});
  const std::size_t rank = shape(x).size();
  std::vector<std::int64_t> order = wholes("perm");
  if (order.empty())
    for (std::size_t i = rank; i-- > 0;) order.push_back(static_cast<std::int64_t>(i));
  ModelShape result;
  std::set<std::size_t> seen;
  for (const std::int64_t place : order) {
    WEFT_TRY(at, axis(place, rank));
    if (!seen.insert(at).second) return user_error("perm: expected every dim once");
    node.order.push_back(at);
    result.push_back(shape(x)[at]);
  }
  if (result.size() != rank) return user_error("perm: expected every dim once");
  return push(std::move(node), std::move(result), "turned");
}

Status OnnxResolver::add_concat() {
  std::vector<std::uint32_t> operands;
  for (std::size_t i = 0; i < node_->inputs.size(); ++i) {
    WEFT_TRY(x, operand(i));
    operands.push_back(x);
  }
  if (operands.size() < 2 || operands.size() > 64)
    return user_error(fmt::format("expected 2 to 64 operands, found {}", operands.size()));
  ModelShape result = shape(operands[0]);
  WEFT_TRY(along, axis(whole("axis", 0), result.size()));
  for (std::size_t i = 1; i < operands.size(); ++i) {
    const ModelShape& other = shape(operands[i]);
    for (std::size_t d = 0; d < result.size(); ++d)
      if (other.size() != result.size() || (d != along && other[d] != result[d]))
        return user_error(fmt::format("shapes do not go together: {} and {}", formats::print_shape(result),
                                      formats::print_shape(other)));
    result[along] += other[along];
  }
  ModelNode node = made(Operation::concat, std::move(operands));
  node.axis = along;
  return push(std::move(node), std::move(result), "joined");
}

}  // namespace weft::imports
