#include "weft/collectives/synthesis/coarser_rate.h"

#include <cmath>

namespace weft::synthesis {
namespace {

constexpr double kGoodEnough = 0.99;

Wires scaled(const Wires& wires, double factor) {
  Wires made = wires;
  made.wires.clear();
  made.unit = wires.unit / factor;
  for (Wire wire : wires.wires) {
    // The slack keeps products that should be integers from rounding down.
    wire.capacity =
        static_cast<Amount>(std::floor(static_cast<double>(wire.capacity) * factor * (1 + 1e-12)));
    if (wire.capacity > 0) made.wires.push_back(wire);
  }
  return made;
}

bool carries(const Wires& wires, const std::vector<std::int32_t>& roots, Amount trees,
             const Deadline& deadline) {
  if (wires.wires.empty()) return false;
  const Optimum found = find_optimum(wires, roots, deadline);
  return found.exact && found.rate.over >= trees * found.rate.under;
}

}  // namespace

CoarserRate coarser_rate(const Wires& wires, const std::vector<std::int32_t>& roots, Ratio rate, Amount most,
                         const Deadline& deadline) {
  CoarserRate best{wires, rate, 1};
  if (rate.over <= most) return best;
  best.efficiency = 0;
  for (Amount trees = 1; trees <= most && best.efficiency < kGoodEnough && !deadline.over(); ++trees) {
    // The least factor by which the links could carry this many trees.
    const double least = static_cast<double>(trees) / rate.value();
    double low = least, high = 1.5 * least;
    if (best.efficiency > 0) high = std::min(high, least / best.efficiency);
    if (!carries(scaled(wires, high), roots, trees, deadline)) continue;
    for (int round = 0; round < 10; ++round) {
      const double middle = (low + high) / 2;
      (carries(scaled(wires, middle), roots, trees, deadline) ? high : low) = middle;
    }
    if (least / high > best.efficiency) best = {scaled(wires, high), {trees, 1}, least / high};
  }
  if (best.efficiency == 0) return {wires, rate, 1};
  return best;
}

}  // namespace weft::synthesis
