#include <algorithm>

#include "weft/plan/layout.h"
#include "weft/program/exchange.h"
#include "weft/program/grouper.h"

namespace weft::program {

using plan::Dim;
using plan::NodeView;

// Ranks with other shares must lay out the same elements in the same order, so the order follows from the
// type alone, never from what would suit this rank. Exchanges go in the plan's order on every rank, so each
// one waits for the one before it as if it read its result.
void Grouper::add_exchange(const NodeView& node) {
  const ops::LocalExchange what = ops::read_local_exchange(node);
  Group group{.kind = GroupKind::exchange, .nodes = {node.id()}};
  if (what.kind == ops::ExchangeKind::all_to_all) {
    if (what.gives) group.operands = {staged(node, what)};
  } else if (what.gives) {
    group.operands = {ordered(node.input(0), exchange_order(node.input_type(0), what))};
  }
  const plan::Type to = node.result_type(0);
  group.results = {place_in_order(BufferId(node.result(0).value), to, exchange_order(to, what))};
  finish(std::move(group), node);
  Group& made = made_.groups.back();
  if (last_exchange_ != kNoGroup) {
    made.depth = std::max(made.depth, made_.groups[last_exchange_].depth + 1);
    made_.groups[last_exchange_].is_read = true;
  }
  last_exchange_ = static_cast<std::uint32_t>(made_.groups.size() - 1);
}

// What goes to one rank of an all-to-all lies together, in the order in which that rank keeps it. Blocks of
// an even size move as one copy, with the ranks for an index; the shorter last one moves by itself.
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
