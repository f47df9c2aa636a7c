#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "weft/plan/ops/build.h"
#include "weft/plan/ops/global_offset.h"
#include "weft/plan/spmd/localizer.h"
#include "weft/plan/spmd/position_attributes.h"

namespace weft::spmd {

using plan::AttributeKind;
using plan::AttributeValue;
using plan::Dim;
using plan::NodeView;
using plan::Share;
using plan::ValueId;

Status Localizer::compute(const NodeView& node) {
  lists_.clear();
  plan::Signature signature = node.op().signature(node);
  const std::vector<LocalWindows> windows = local_windows(node, signature, mesh_, layouts_, rank_);
  if (std::ranges::any_of(windows, &LocalWindows::is_idle)) return add_neutrals(node);
  std::optional<plan::Loop> told;  // the positional loop
  for (plan::Loop& loop : signature.loops) {
    if (!loop.positional || find_position_attributes(node.op()).begin < 0) continue;
    told = loop;
    loop.positional = false;
  }
  std::vector<ValueId> operands;
  for (std::size_t i = 0; i < node.input_count(); ++i) {
    WEFT_TRY(operand, placed(node, signature, i));
    WEFT_TRY(seen, within_windows(node, signature, windows, i, operand));
    operands.push_back(seen);
  }
  std::vector<std::vector<std::int64_t>> sizes;  // of each result, as this rank computes it
  for (std::size_t k = 0; k < node.result_count(); ++k) {
    const std::vector<Share> shares = shares_of(node.result(k));
    sizes.emplace_back();
    for (std::size_t d = 0; d < shares.size(); ++d)
      sizes.back().push_back(is_positional(signature, &plan::Loop::results, k, d)
                                 ? node.result_type(k).dims[d].size
                                 : shares[d].size);
    for (const LocalWindows& local : windows)
      if (const int dim = signature.loops[local.sliding.loop].results[k]; local.is_cut && dim >= 0)
        sizes.back()[static_cast<std::size_t>(dim)] = local.computed.size;
  }
  WEFT_TRY(attributes, attributes_of(node, sizes));
  if (told) WEFT_TRY_STATUS(set_position_attributes(node, *told, attributes));
  set_window_attributes(node, windows, attributes);
  WEFT_TRY(made, local_.graph.add(node.op(), operands, attributes));
  for (std::size_t k = 0; k < node.result_count(); ++k) {
    WEFT_TRY(expected, sized(node.result_type(k), sizes[k]));
    if (local_.graph.value(local_.graph.result(made, k)).type != expected)
      return user_error(fmt::format(
          "its share would be {}, it computes {}", print(local_.graph.type(expected), local_.graph.symbols()),
          print(local_.graph.type(local_.graph.result(made, k)), local_.graph.symbols())));
    WEFT_TRY(result, trimmed(node, signature, k, local_.graph.result(made, k)));
    WEFT_TRY(kept, without_neighbours(node, signature, windows, k, result));
    local_.values[node.result(k).value] = kept;
  }
  return {};
}

Result<ValueId> Localizer::within_windows(const NodeView& node, const plan::Signature& signature,
                                          std::span<const LocalWindows> windows, std::size_t i,
                                          ValueId value) {
  for (const LocalWindows& local : windows) {
    const int dim = signature.loops[local.sliding.loop].operands[i];
    if (!local.is_cut || dim < 0) continue;
    const auto at = static_cast<std::size_t>(dim);
    WEFT_TRY(seen, add_part(local_.graph, value, here(node.input_type(i).dims[at].index),
                            shares_of(node.input(i))[at], local.operands[i]));
    value = seen;
  }
  return value;
}

Result<ValueId> Localizer::without_neighbours(const NodeView& node, const plan::Signature& signature,
                                              std::span<const LocalWindows> windows, std::size_t k,
                                              ValueId value) {
  for (const LocalWindows& local : windows) {
    const int dim = signature.loops[local.sliding.loop].results[k];
    if (!local.is_cut || dim < 0) continue;
    const Symbol along = here(node.result_type(k).dims[static_cast<std::size_t>(dim)].index);
    WEFT_TRY(kept, add_part(local_.graph, value, along, local.computed, local.kept));
    value = kept;
  }
  return value;
}

Status Localizer::set_position_attributes(const NodeView& node, const plan::Loop& loop,
                                          std::vector<AttributeValue>& attributes) {
  const PositionAttributes placing = find_position_attributes(node.op());
  const auto at = [](int attribute) { return static_cast<std::size_t>(attribute); };
  if (placing.whole >= 0) {
    const std::vector<Share> shares = shares_of(node.result(0));
    WEFT_TRY(place, ops::read_global_offset(node.result_type(0), node.integer(at(placing.begin)),
                                            node.word(at(placing.whole))));
    if (std::ranges::equal(shares, node.result_type(0).dims, {}, &Share::size, &Dim::size)) return {};
    attributes[at(placing.begin)] = begin_of_block(place, shares);
    attributes[at(placing.whole)] = local_.graph.symbol(print_sizes(place));
    return {};
  }
  std::optional<Share> share;
  for (std::size_t i = 0; i < node.input_count(); ++i)
    if (loop.operands[i] >= 0) share = shares_of(node.input(i))[at(loop.operands[i])];
  for (std::size_t k = 0; k < node.result_count(); ++k)
    if (loop.results[k] >= 0) share = shares_of(node.result(k))[at(loop.results[k])];
  WEFT_CHECK(share.has_value());
  attributes[at(placing.begin)] = node.integer(at(placing.begin)) + share->begin;
  if (placing.size >= 0) attributes[at(placing.size)] = share->size;
  return {};
}

bool Localizer::is_positional(const plan::Signature& signature, std::vector<std::int8_t> plan::Loop::*side,
                              std::size_t which, std::size_t dim) {
  return std::ranges::any_of(signature.loops, [&](const plan::Loop& loop) {
    return loop.positional && (loop.*side)[which] == static_cast<int>(dim);
  });
}

Result<ValueId> Localizer::placed(const NodeView& node, const plan::Signature& signature, std::size_t i) {
  ValueId value = local_.values[node.input(i).value];
  const std::vector<Share> shares = shares_of(node.input(i));
  for (std::size_t d = 0; d < shares.size(); ++d) {
    if (!is_positional(signature, &plan::Loop::operands, i, d)) continue;
    const Dim& dim = node.input_type(i).dims[d];
    WEFT_TRY(padded, ops::add_pad(local_.graph, value, here(dim.index), shares[d].begin,
                                  dim.size - shares[d].begin - shares[d].size));
    value = padded;
  }
  return value;
}

Result<ValueId> Localizer::trimmed(const NodeView& node, const plan::Signature& signature, std::size_t k,
                                   ValueId value) {
  const std::vector<Share> shares = shares_of(node.result(k));
  for (std::size_t d = 0; d < shares.size(); ++d) {
    if (!is_positional(signature, &plan::Loop::results, k, d)) continue;
    WEFT_TRY(cut, ops::add_slice(local_.graph, value, here(node.result_type(k).dims[d].index),
                                 shares[d].begin, shares[d].begin + shares[d].size));
    value = cut;
  }
  return value;
}

Result<std::vector<AttributeValue>> Localizer::attributes_of(
    const NodeView& node, const std::vector<std::vector<std::int64_t>>& sizes) {
  std::vector<AttributeValue> values;
  const std::span<const plan::AttributeSpec> specs = node.op().attributes();
  for (std::size_t k = 0; k < specs.size(); ++k) {
    switch (specs[k].kind) {
      case AttributeKind::integer: values.emplace_back(node.integer(k)); break;
      case AttributeKind::real: values.emplace_back(node.real(k)); break;
      case AttributeKind::word:
      case AttributeKind::index: values.emplace_back(here(node.symbol(k))); break;
      case AttributeKind::indices: values.emplace_back(indices_here(node.indices(k))); break;
      case AttributeKind::dtype: values.emplace_back(node.dtype(k)); break;
      case AttributeKind::type: {
        std::vector<std::int64_t> local;
        for (const Dim& dim : node.type(k).dims) {
          const int at = node.result_type(0).position(dim.index);
          local.push_back(at < 0 ? dim.size : sizes[0][static_cast<std::size_t>(at)]);
        }
        WEFT_TRY(type, sized(node.type(k), local));
        values.emplace_back(type);
        break;
      }
    }
  }
  if (ops::is_source(node.op())) values.back() = std::monostate();
  return values;
}

std::span<const Symbol> Localizer::indices_here(std::span<const Symbol> indices) {
  std::vector<Symbol>& list = lists_.emplace_back();
  for (const Symbol index : indices) list.push_back(here(index));
  return list;
}

}  // namespace weft::spmd
