#include "weft/plan/spmd/local_halo.h"

#include <vector>

#include "weft/plan/ops/build.h"

namespace weft::spmd {
namespace {

using plan::Share;
using plan::ValueId;

Result<ValueId> end_to_end(plan::Graph& graph, const std::vector<ValueId>& parts, Symbol along) {
  if (parts.size() == 1) return parts[0];
  return ops::add_concat(graph, parts, along);
}

// The elements of this rank's block that other ranks need, in rank order; invalid if there are
// none.
Result<ValueId> add_given(plan::Graph& graph, const ops::LocalExchange& what, ValueId operand) {
  const std::int64_t begin = plan::share_of(what.size, what.ranks, static_cast<std::int32_t>(what.by)).begin;
  std::vector<ValueId> parts;
  for (std::int64_t rank = 0; rank < what.ranks; ++rank) {
    const Share part = halo_between(what, what.by, rank);
    if (part.size == 0) continue;
    WEFT_TRY(cut, ops::add_slice(graph, operand, what.joins, part.begin - begin, part.end() - begin));
    parts.push_back(cut);
  }
  if (parts.empty()) return ValueId();
  return end_to_end(graph, parts, what.joins);
}

// The bordered type with `size` elements along the halo's index.
Result<plan::TypeId> resized(plan::Graph& graph, plan::TypeId bordered, Symbol along, std::int64_t size) {
  const plan::Type type = graph.type(bordered);
  std::vector<plan::Dim> dims(type.dims.begin(), type.dims.end());
  dims[static_cast<std::size_t>(type.position(along))].size = size;
  return graph.intern_type(type.dtype, dims);
}

}  // namespace

Result<ValueId> add_local_halo(plan::Graph& graph, const ops::LocalExchange& what, ValueId operand,
                               plan::TypeId bordered) {
  ValueId given;
  if (operand.valid()) {
    WEFT_TRY(parts, add_given(graph, what, operand));
    given = parts;
  }
  std::int64_t before = 0, after = 0;
  for (std::int64_t rank = 0; rank < what.ranks; ++rank)
    (rank < what.by ? before : after) += halo_between(what, rank, what.by).size;
  plan::TypeId type;
  if (before + after > 0) {
    WEFT_TRY(taken, resized(graph, bordered, what.joins, before + after));
    type = taken;
  }
  WEFT_TRY(borders, add_local_exchange(graph, what, given, type));
  if (before + after == 0) return operand;
  if (!operand.valid()) return borders;

  std::vector<ValueId> parts = {operand};
  if (before > 0) {
    WEFT_TRY(first, ops::add_slice(graph, borders, what.joins, 0, before));
    parts.insert(parts.begin(), first);
  }
  if (after > 0) {
    WEFT_TRY(last, ops::add_slice(graph, borders, what.joins, before, before + after));
    parts.push_back(last);
  }
  return end_to_end(graph, parts, what.joins);
}

}  // namespace weft::spmd
