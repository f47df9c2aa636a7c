#include "weft/planner/search/pipeline/split_uses.h"

#include <algorithm>

#include <fmt/format.h>

namespace weft::search {

using distribute::AxisUse;
using distribute::Distribution;
using distribute::Shard;

namespace {

std::vector<std::string> joined_names(std::vector<std::string> a, const std::vector<std::string>& b) {
  for (const std::string& index : b)
    if (std::ranges::find(a, index) == a.end()) a.push_back(index);
  return a;
}

}  // namespace

Split without_stages(Split split) {
  for (Split::Axis& axis : split.axes) axis = {1, axis.stages * axis.data, axis.model};
  return split;
}

SplitUses::SplitUses(const PipelineProblem& problem, const distribute::IndexRoles& roles)
    : problem_(problem) {
  lists_.push_back(joined_names(roles.model, roles.sequence));
  if (!roles.sequence.empty() && !roles.model.empty()) lists_.push_back(roles.model);
}

// Indices that hints slice on this axis come first.
SplitUses::Names SplitUses::hinted(const std::string& axis) const {
  Names list;
  for (const FixedPart::Slice& slice : problem_.fixed.slices)
    if (slice.axis == axis) list.push_back(slice.index);
  return list;
}

SplitUses::Names SplitUses::batch_axes() const {
  Names axes;
  for (const cluster::Axis& axis : problem_.cluster->axes)
    if (const Names list = hinted(axis.name); !list.empty() && list.front() == problem_.batch)
      axes.push_back(axis.name);
  return axes;
}

Distribution SplitUses::distribution_of(const Split& split, std::size_t list, Shard shard) const {
  Distribution made;
  for (std::size_t a = 0; a < split.axes.size(); ++a) {
    const Split::Axis& axis = split.axes[a];
    const std::string& name = problem_.cluster->axes[a].name;
    const std::int64_t sizes[] = {axis.stages, axis.data, axis.model};
    const AxisUse uses[] = {{.slice = {}, .stage = true},
                            {joined_names(hinted(name), {problem_.batch}), shard},
                            {joined_names(hinted(name), lists_[list]), Shard::nothing}};
    const auto factors = std::ranges::count_if(sizes, [](std::int64_t size) { return size > 1; });
    char letter = 'a';
    for (std::size_t f = 0; f < 3; ++f) {
      if (sizes[f] == 1) continue;
      made.mesh.axes.push_back(
          {factors > 1 ? fmt::format("{}_{}", name, letter++) : name, static_cast<std::int32_t>(sizes[f])});
      made.axes.push_back(uses[f]);
    }
  }
  made.exceptions = problem_.fixed.exceptions;
  return made;
}

Distribution SplitUses::model_of(const Distribution& whole) const {
  Distribution made;
  for (std::size_t a = 0; a < whole.axes.size(); ++a) {
    const std::vector<std::string>& slice = whole.axes[a].slice;
    if (!slice.empty() && slice.front() == problem_.batch) continue;
    made.mesh.axes.push_back(whole.mesh.axes[a]);
    made.axes.push_back(whole.axes[a]);
  }
  made.exceptions = whole.exceptions;
  return made;
}

}  // namespace weft::search
