// Operators that only move, slice or broadcast data.
#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "weft/translate/imports/onnx_resolver.h"

namespace weft::imports {

Status OnnxResolver::reshape_to(ModelShape result) {
  WEFT_TRY(x, operand(0));
  if (shape(x).empty() && result.empty()) return alias();
  if (shape(x).empty() || result.empty())
    return user_error(fmt::format("expected tensors of one dim or more, found a reshape of {} to {}",
                                  formats::print_shape(shape(x)), formats::print_shape(result)));
  WEFT_TRY_STATUS(push(made(Operation::reshape, {x}), std::move(result), "shaped"));
  if (whole_.contains(x)) whole_.insert(model_.file.result(model_.file.nodes.size() - 1));
  return {};
}

Status OnnxResolver::add_reshape() {
  WEFT_TRY(x, operand(0));
  const Folded* sizes = known(1);
  if (sizes == nullptr) return user_error("expected a constant shape, found a computed one");
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
      return user_error(fmt::format("expected sizes of at least 1, found {}", result[i]));
  }
  if (open) {
    if (elements % rest != 0)
      return user_error(fmt::format("{} elements is not a multiple of {}", elements, rest));
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
  if (axes == nullptr) return user_error("expected constant axes");
  ModelShape result = shape(x);
  std::vector<std::int64_t> places = axes->wholes;
  const auto rank = static_cast<std::int64_t>(result.size() + places.size());
  for (std::int64_t& place : places) {
    if (place < -rank || place >= rank)
      return user_error(fmt::format("expected an axis of {} dims, found {}", rank, place));
    if (place < 0) place += rank;
  }
  std::ranges::sort(places);
  if (std::ranges::adjacent_find(places) != places.end()) return user_error("expected every axis once");
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
  if (given(1) && axes == nullptr) return user_error("expected constant axes");
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
  if (!node_->attributes.contains("axis")) return user_error("expected an axis, found none");
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
        return user_error(fmt::format("shapes cannot be broadcast: {} and {}", formats::print_shape(result),
                                      formats::print_shape(other)));
    result[along] += other[along];
  }
  ModelNode node = made(Operation::concat, std::move(operands));
  node.axis = along;
  return push(std::move(node), std::move(result), "joined");
}

Result<std::uint32_t> OnnxResolver::cut(std::uint32_t x, std::size_t along, std::int64_t begin,
                                        std::int64_t end, std::optional<std::size_t> output) {
  ModelShape result = shape(x);
  if (begin < 0 || end > result[along] || begin >= end)
    return user_error(
        fmt::format("expected positions of 0 to {}, found {} to {}", result[along], begin, end));
  result[along] = end - begin;
  ModelNode node = made(Operation::slice, {x});
  node.axis = along;
  node.begin = begin;
  node.end = end;
  if (!output) return push_inner(std::move(node), std::move(result), "cut");
  WEFT_TRY_STATUS(push(std::move(node), std::move(result), "cut", *output));
  return model_.file.result(model_.file.nodes.size() - 1);
}

Status OnnxResolver::add_slice() {
  WEFT_TRY(x, operand(0));
  const Folded *begins = known(1), *ends = known(2);
  if (begins == nullptr || ends == nullptr || (given(3) && known(3) == nullptr) ||
      (given(4) && known(4) == nullptr))
    return user_error("expected constant starts, ends, axes and steps");
  const std::size_t count = begins->wholes.size();
  if (count == 0 || ends->wholes.size() != count || (given(3) && known(3)->wholes.size() != count) ||
      (given(4) && known(4)->wholes.size() != count))
    return user_error("expected as many starts as ends, axes and steps");
  struct Cut {
    std::size_t along;
    std::int64_t begin, end;
  };
  std::vector<Cut> cuts;
  std::set<std::size_t> seen;
  for (std::size_t i = 0; i < count; ++i) {
    if (given(4) && known(4)->wholes[i] != 1)
      return user_error(fmt::format("steps: expected 1, found {}", known(4)->wholes[i]));
    WEFT_TRY(along, axis(given(3) ? known(3)->wholes[i] : static_cast<std::int64_t>(i), shape(x).size()));
    if (!seen.insert(along).second) return user_error("expected every axis once");
    const std::int64_t size = shape(x)[along];
    const auto place = [&](std::int64_t at) {  // the largest integers mean the end
      return std::clamp<std::int64_t>(at < 0 ? std::max(at, -size) + size : at, 0, size);
    };
    const Cut made{along, place(begins->wholes[i]), place(ends->wholes[i])};
    if (made.begin != 0 || made.end != size) cuts.push_back(made);
  }
  if (cuts.empty()) return alias();
  for (std::size_t i = 0; i < cuts.size(); ++i) {
    const bool last = i + 1 == cuts.size();
    WEFT_TRY(part, cut(x, cuts[i].along, cuts[i].begin, cuts[i].end,
                       last ? std::optional<std::size_t>(0) : std::nullopt));
    x = part;
  }
  return {};
}

Status OnnxResolver::add_split() {
  WEFT_TRY(x, operand(0));
  WEFT_TRY(along, axis(whole("axis", 0), shape(x).size()));
  const std::int64_t size = shape(x)[along];
  const auto outputs = static_cast<std::int64_t>(node_->outputs.size());
  std::vector<std::int64_t> sizes;
  if (given(1)) {
    if (known(1) == nullptr) return user_error("expected constant sizes");
    sizes = known(1)->wholes;
  } else {  // equal sizes; the last is smaller if they do not divide the dim
    if (whole("num_outputs", outputs) != outputs)
      return user_error(
          fmt::format("num_outputs: expected {}, found {}", outputs, whole("num_outputs", outputs)));
    const std::int64_t each = (size + outputs - 1) / outputs;
    for (std::int64_t i = 0; i < outputs; ++i) sizes.push_back(std::min(each, size - i * each));
  }
  std::int64_t sum = 0;
  for (const std::int64_t part : sizes)
    if (part < 1 || __builtin_add_overflow(sum, part, &sum))
      return user_error(fmt::format("expected sizes of at least 1, found {}", part));
  if (sum != size || static_cast<std::int64_t>(sizes.size()) != outputs)
    return user_error(fmt::format("expected {} sizes that add up to {}, found {} that add up to {}", outputs,
                                  size, sizes.size(), sum));
  if (outputs == 1) return alias();
  for (std::size_t i = 0, begin = 0; i < sizes.size(); begin += static_cast<std::size_t>(sizes[i++])) {
    if (node_->outputs[i].empty()) continue;
    const auto from = static_cast<std::int64_t>(begin);
    WEFT_TRY_STATUS(cut(x, along, from, from + sizes[i], i));
  }
  return {};
}

Status OnnxResolver::add_expand() {
  WEFT_TRY(x, operand(0));
  const Folded* sizes = known(1);
  if (sizes == nullptr) return user_error("expected a constant shape, found a computed one");
  WEFT_TRY(result, joined_shape(shape(x), sizes->wholes));
  if (result == shape(x)) return alias();
  return push(made(Operation::broadcast, {x}), std::move(result), "spread");
}

}  // namespace weft::imports
