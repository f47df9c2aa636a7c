#include <algorithm>

#include "weft/plan/graph/layout.h"
#include "weft/plan/ops/operators.h"
#include "weft/program/tasks/exchange.h"
#include "weft/program/tasks/grouper.h"

namespace weft::program {

using plan::Dim;
using plan::NodeView;

// Ranks with different shards must use the same element order, so it depends only on the type and
// not on the rank. Exchanges run in plan order on every rank, so each waits for the previous one as
// if it read its result.
void Grouper::add_exchange(const NodeView& node) {
  const ops::LocalExchange what = ops::read_local_exchange(node);
  Group group{.kind = GroupKind::exchange, .nodes = {node.id()}};
  const BufferId fresh(made_.buffer_count);
  if (what.kind == ops::ExchangeKind::all_to_all) {
    if (what.gives) group.operands = {staged(node, what)};
  } else {
    for (std::size_t i = 0; i < node.input_count(); ++i)
      group.operands.push_back(ordered(node.input(i), exchange_order(node.input_type(i), what)));
  }
  for (std::size_t k = 0; k < node.result_count(); ++k) {
    const plan::Type to = node.result_type(k);
    group.results.push_back(place_in_order(BufferId(node.result(k).value), to, exchange_order(to, what)));
  }
  if (node.input_count() > 1) add_bucket(node, what, group, fresh);
  finish(std::move(group), node);
  Group& made = made_.groups.back();
  if (last_exchange_ != kNoGroup) {
    made.depth = std::max(made.depth, made_.groups[last_exchange_].depth + 1);
    made_.groups[last_exchange_].is_read = true;
  }
  last_exchange_ = static_cast<std::uint32_t>(made_.groups.size() - 1);
}

// Members of a bucket are adjacent, so one call moves them all without copies: each producer writes
// its member there, and each reader reads it there. Members that others also read, or that do not
// own their memory, are copied. Each member begins on a cache line; the padding between them is
// sent too.
void Grouper::add_bucket(const NodeView& node, const ops::LocalExchange& what, Group& group, BufferId fresh) {
  constexpr std::int64_t kLine = 64;
  const std::int64_t line = kLine / plan::size_in_bytes(node.input_type(0).dtype);
  std::vector<std::int64_t> offsets;
  std::int64_t next = 0;
  for (const Place& place : group.operands) {
    offsets.push_back(next);
    next += (place.elements() + line - 1) / line * line;
  }
  const BufferId results(made_.buffer_count++);
  for (std::size_t k = 0; k < group.results.size(); ++k)
    moves_[group.results[k].buffer.value] = {results, offsets[k]};
  // The result of another bucket is used directly if it has the same values in the same layout.
  const BufferId first = moved(group.operands[0]).buffer;
  bool as_it_is = first.value >= graph_.value_count();
  for (std::size_t k = 0; k < group.operands.size() && as_it_is; ++k) {
    const Place lies = moved(group.operands[k]);
    as_it_is = lies.buffer == first && lies.offset == offsets[k];
  }
  if (as_it_is) return;
  const BufferId operands(made_.buffer_count++);
  for (std::size_t k = 0; k < group.operands.size(); ++k) {
    Place& place = group.operands[k];
    const plan::Type type = node.input_type(k);
    if (place.buffer.value < fresh.value && !is_movable(node.input(k), place))
      place = copied(node.input(k), place_in_order({}, type, exchange_order(type, what)));
    moves_[place.buffer.value] = {operands, offsets[k]};
  }
}

bool Grouper::is_movable(plan::ValueId value, const Place& place) const {
  if (place.offset != 0 || moves_.contains(place.buffer.value) || joined_.contains(place.buffer.value))
    return false;
  while (true) {
    if (readers_.of(value).size() != 1) return false;
    for (const plan::Output& output : graph_.outputs())
      if (output.value == value) return false;
    const NodeView maker = graph_.view(graph_.value(value).producer);
    if (BufferId(value.value) == place.buffer)
      return !ops::is_source(maker.op()) && place.elements() == graph_.type(value).elements();
    if (!is_placed_view(maker.op())) return false;
    value = maker.input(0);
  }
}

Place Grouper::moved(Place place) const {
  const auto found = moves_.find(place.buffer.value);
  if (found == moves_.end()) return place;
  place.buffer = found->second.first;
  place.offset += found->second.second;
  return place;
}

// The data for one rank of an all-to-all is contiguous, in the order in which that rank keeps it.
// Blocks of equal size move in one copy, with the rank as an index; a shorter last block moves
// separately.
Place Grouper::staged(const NodeView& node, const ops::LocalExchange& what) {
  const plan::Type type = node.input_type(0);
  const std::int64_t whole = type.size_of(what.parts);
  const std::int64_t block = plan::share_of(whole, what.ranks, 0).size, even = whole / block;
  const std::int64_t step = type.elements() / whole;
  const BufferId buffer(made_.buffer_count++);
  for (const bool rest : {false, true}) {
    const std::int64_t count = rest ? 1 : even, size = rest ? whole % block : block;
    if (size == 0) continue;
    Place from = stored(node.input(0));
    const Axis parted = *from.find(what.parts);
    std::vector<Dim> dims(type.dims.begin(), type.dims.end());
    dims[static_cast<std::size_t>(type.position(what.parts))].size = size;
    const plan::Type one{type.dtype, dims};
    Place to = place_in_order(buffer, one, exchange_order(one, what));
    for (Axis& axis : from.axes)
      if (axis.index == what.parts) axis.size = size;
    from.offset += rest ? even * block * parted.stride : 0;
    to.offset = rest ? even * block * step : 0;
    from.axes.push_back({Symbol(), count, block * parted.stride});
    to.axes.push_back({Symbol(), count, block * step});
    add_copy(node.input(0), from, to);
  }
  Place all{buffer, 0, type.dtype, {}};
  all.axes.push_back({Symbol(), type.elements(), 1});
  return all;
}

}  // namespace weft::program
