#include "weft/parallel/distribute/size_classes.h"

#include <numeric>

#include "weft/plan/graph/operator.h"

namespace weft::distribute {

SizeClasses::SizeClasses(const plan::Graph& graph) {
  std::size_t dims = 0;
  for (std::size_t v = 0; v < graph.value_count(); ++v) {
    first_.push_back(dims);
    dims += graph.type(plan::ValueId(v)).rank();
  }
  parent_.resize(dims);
  std::iota(parent_.begin(), parent_.end(), std::size_t{0});
  for (std::size_t n = 0; n < graph.node_count(); ++n) {
    const plan::NodeView node = graph.view(plan::NodeId(n));
    for (const plan::Loop& loop : node.op().signature(node).loops) {
      std::size_t first = parent_.size();
      // Sizes differ where windows slide, or where one side is a part of the other.
      const auto walk = [&](plan::ValueId value, std::int8_t dim) {
        if (dim < 0 || graph.type(value).dims[static_cast<std::size_t>(dim)].size != loop.size) return;
        const std::size_t found = of(value, static_cast<std::size_t>(dim));
        if (first < parent_.size()) tie(first, found);
        first = found;
      };
      for (std::size_t i = 0; i < loop.operands.size(); ++i) walk(node.input(i), loop.operands[i]);
      for (std::size_t k = 0; k < loop.results.size(); ++k) walk(node.result(k), loop.results[k]);
    }
  }
}

std::size_t SizeClasses::of(plan::ValueId value, std::size_t dim) const {
  return root(first_[value.value] + dim);
}

void SizeClasses::tie(std::size_t one, std::size_t other) { parent_[root(one)] = root(other); }

std::size_t SizeClasses::root(std::size_t dim) const {
  while (parent_[dim] != dim) dim = parent_[dim] = parent_[parent_[dim]];
  return dim;
}

}  // namespace weft::distribute
