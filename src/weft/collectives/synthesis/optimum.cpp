#include "weft/collectives/synthesis/optimum.h"

#include <algorithm>
#include <numeric>

namespace weft::synthesis {
namespace {

Ratio lowest(Amount over, Amount under) {
  const Amount divisor = std::gcd(over, under);
  return {over / divisor, under / divisor};
}

// The bound from the cuts around single devices, where the search starts.
Optimum around_devices(const Wires& wires, const std::vector<std::int32_t>& roots) {
  std::vector<Amount> in(static_cast<std::size_t>(wires.nodes), 0);
  for (const Wire& wire : wires.wires) in[static_cast<std::size_t>(wire.to)] += wire.capacity;
  Optimum best;
  best.rate = {kNoLimit, 1};
  std::int32_t around = -1;
  for (std::int32_t v = 0; v < wires.gpus; ++v) {
    const bool own = std::binary_search(roots.begin(), roots.end(), v);
    const auto others = static_cast<Amount>(roots.size()) - (own ? 1 : 0);
    if (others == 0) continue;
    const Ratio here = lowest(in[static_cast<std::size_t>(v)], others);
    if (around >= 0 && here.value() >= best.rate.value()) continue;
    best.rate = here;
    around = v;
  }
  for (std::int32_t n = 0; n < wires.nodes; ++n)
    if (n != around) best.side.push_back(n);
  return best;
}

}  // namespace

Optimum find_optimum(const Wires& wires, const std::vector<std::int32_t>& roots, const Deadline& deadline,
                     bool alike) {
  Optimum best = around_devices(wires, roots);
  const std::int32_t source = wires.nodes;
  MaxFlow flow(wires.nodes + 1);
  std::vector<std::int32_t> gives;
  for (const Wire& wire : wires.wires) flow.add_arc(wire.from, wire.to, 0);
  for (const std::int32_t root : roots) gives.push_back(flow.add_arc(source, root, 0));
  const auto set_rate = [&] {
    for (std::size_t w = 0; w < wires.wires.size(); ++w)
      flow.set_capacity(2 * static_cast<std::int32_t>(w), wires.wires[w].capacity * best.rate.under);
    for (const std::int32_t arc : gives) flow.set_capacity(arc, best.rate.over);
  };
  set_rate();

  const auto count = static_cast<Amount>(roots.size());
  for (std::int32_t v = 0; v < (alike ? 1 : wires.gpus); ++v) {
    while (true) {
      if (deadline.over()) {
        best.exact = false;
        return best;
      }
      flow.reset();
      const Amount wanted = best.rate.over * count;
      if (flow.run(source, v, wanted) == wanted) break;
      Amount leaves = 0, inside = 0;
      for (const Wire& wire : wires.wires)
        if (flow.on_source_side(wire.from) && !flow.on_source_side(wire.to)) leaves += wire.capacity;
      for (const std::int32_t root : roots) inside += flow.on_source_side(root) ? 1 : 0;
      best.rate = lowest(leaves, inside);
      best.side.clear();
      for (std::int32_t n = 0; n < wires.nodes; ++n)
        if (flow.on_source_side(n)) best.side.push_back(n);
      set_rate();
    }
  }
  return best;
}

}  // namespace weft::synthesis
