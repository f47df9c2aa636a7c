#include "weft/program/tasks/exchange.h"

#include <array>

#include "weft/plan/graph/layout.h"

namespace weft::program {
namespace {

// The elements of each rank's block along one index of a side's type; zero if the side is empty.
std::vector<std::int64_t> blocks_along(bool any, const plan::Type& type, Symbol index, std::int32_t ranks) {
  std::vector<std::int64_t> counts(static_cast<std::size_t>(ranks));
  if (!any) return counts;
  const std::int64_t size = type.size_of(index), step = type.elements() / size;
  for (std::int32_t rank = 0; rank < ranks; ++rank)
    counts[static_cast<std::size_t>(rank)] = plan::share_of(size, ranks, rank).size * step;
  return counts;
}

// The range from the first place to the end of the last; a single place is returned unchanged.
Place stretch(std::span<const Place> places) {
  if (places.size() == 1) return places[0];
  Place all{places[0].buffer, places[0].offset, places[0].dtype, {}};
  all.axes.push_back({Symbol(), places.back().offset + places.back().elements() - all.offset, 1});
  return all;
}

// The halo elements exchanged between this rank and each rank of the group, if any.
std::vector<std::int64_t> halo_counts(const ops::LocalExchange& what, const plan::Type& type, bool gives) {
  std::vector<std::int64_t> counts(static_cast<std::size_t>(what.ranks));
  if (!(gives ? what.gives : what.takes)) return counts;
  const std::int64_t step = type.elements() / type.size_of(what.joins);
  for (std::int32_t rank = 0; rank < what.ranks; ++rank)
    counts[static_cast<std::size_t>(rank)] =
        (gives ? halo_between(what, what.by, rank) : halo_between(what, rank, what.by)).size * step;
  return counts;
}

}  // namespace

Order exchange_order(const plan::Type& type, const ops::LocalExchange& what) {
  return order_with_first(type, std::array{what.joins, what.parts});
}

Exchange as_exchange(const plan::NodeView& node, std::span<const Place> reads,
                     std::span<const Place> writes) {
  const ops::LocalExchange what = ops::read_local_exchange(node);
  const plan::Type from = what.gives ? node.input_type(0) : plan::Type{}, to = node.result_type(0);
  Exchange exchange;
  exchange.node = node.id();
  exchange.axis = what.axis;
  exchange.monoid = what.monoid;
  exchange.dtype = to.dtype;
  exchange.shift = what.by;
  if (!reads.empty()) exchange.operand = stretch(reads);
  if (!writes.empty()) exchange.result = stretch(writes);
  exchange.kind = what.kind;
  if (what.priority == ops::kLowPriority) exchange.algorithm.priority = collective::Priority::low;
  using Kind = plan::ExchangeKind;
  switch (what.kind) {
    case Kind::all_gather: exchange.counts = blocks_along(what.takes, to, what.joins, what.ranks); break;
    case Kind::reduce_scatter:
      exchange.counts = blocks_along(what.gives, from, what.parts, what.ranks);
      break;
    case Kind::all_to_all:
      exchange.counts = blocks_along(what.gives, from, what.parts, what.ranks);
      exchange.takes = blocks_along(what.takes, to, what.joins, what.ranks);
      break;
    case Kind::halo:
      exchange.counts = halo_counts(what, from, true);
      exchange.takes = halo_counts(what, to, false);
      break;
    case Kind::all_reduce: exchange.counts = {what.gives ? exchange.operand.elements() : 0}; break;
    case Kind::broadcast_from:
    case Kind::permute_ranks: exchange.counts = {what.gives ? from.elements() : 0}; break;
    case Kind::send:
    case Kind::receive:
      exchange.counts = {what.gives ? from.elements() : to.elements()};
      exchange.tag = what.tag;
      break;
  }
  return exchange;
}

}  // namespace weft::program
