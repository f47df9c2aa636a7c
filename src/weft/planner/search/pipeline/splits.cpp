#include "weft/planner/search/pipeline/splits.h"

#include <algorithm>

namespace weft::search {
namespace {

constexpr std::int64_t kMostOutside = 8;  // model-parallel ranks of an outer axis, once inner axes are full

bool names_axis(const std::vector<std::string>& names, const cluster::Axis& axis) {
  return std::ranges::find(names, axis.name) != names.end();
}

void cut_model(const SplitQuestion& question, const Split& split, std::size_t below,
               std::vector<Split>& found) {
  if (below == 0) return found.push_back(split);
  const Split::Axis here = split.axes[below - 1];
  const cluster::Axis& axis = question.cluster->axes[below - 1];
  const bool is_fixed = names_axis(question.fixed, axis);
  if (is_fixed && !names_axis(question.batches, axis)) {
    Split cut = split;
    cut.axes[below - 1] = {here.stages, 1, here.data};
    return cut_model(question, cut, below - 1, found);
  }
  const std::int64_t most = below == split.axes.size() ? here.data : std::min(here.data, kMostOutside);
  const std::int64_t all = !question.cuts_model || is_fixed ? 1 : most;
  for (std::int64_t model = 1; model <= all; ++model) {
    if (here.data % model != 0) continue;
    Split cut = split;
    cut.axes[below - 1] = {here.stages, here.data / model, model};
    if (model == here.data)
      cut_model(question, cut, below - 1, found);
    else
      found.push_back(cut);
  }
}

}  // namespace

std::vector<Split> find_splits(const SplitQuestion& question) {
  std::vector<Split> staged, found;
  Split plain;
  const std::vector<cluster::Axis>& axes = question.cluster->axes;
  for (const cluster::Axis& axis : axes) plain.axes.push_back({1, axis.size, 1});
  staged.push_back(plain);
  for (std::size_t a = 0; a < axes.size(); ++a) {
    if (names_axis(question.fixed, axes[a])) continue;
    for (std::int64_t stages = 2; stages <= axes[a].size && stages <= question.parts; ++stages) {
      if (axes[a].size % stages != 0) continue;
      staged.push_back(plain);
      staged.back().axes[a] = {stages, axes[a].size / stages, 1};
    }
  }
  for (const Split& split : staged) cut_model(question, split, split.axes.size(), found);
  return found;
}

}  // namespace weft::search
