#include "weft/planner/search/pipeline/stack_cuts.h"

namespace weft::search {

std::optional<std::vector<std::size_t>> cuts_of_stack(const cluster::Stack& stack, const PartCosts& costs,
                                                      std::size_t positions) {
  if (stack.equal_layers == 0 || positions == 0) return std::nullopt;
  // Parts of one layer are adjacent, and their shares of it add up to 1.
  constexpr double kWhole = 1 - 1e-6;
  std::vector<std::size_t> ends;  // of layers
  double share = 0;
  for (std::size_t p = 0; p < costs.size(); ++p) {
    share += costs[p].layers;
    if (share < kWhole) continue;
    ends.push_back(p + 1);
    share = 0;
  }
  if (ends.empty() || ends.size() % positions != 0) return std::nullopt;
  std::vector<std::size_t> cuts;
  const std::size_t each = ends.size() / positions;
  for (std::size_t layer = each; layer <= ends.size(); layer += each) cuts.push_back(ends[layer - 1]);
  cuts.back() = costs.size();  // and what follows the last layer
  return cuts;
}

}  // namespace weft::search
