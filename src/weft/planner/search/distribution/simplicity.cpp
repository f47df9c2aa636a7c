#include "weft/planner/search/distribution/simplicity.h"

#include <algorithm>
#include <string>
#include <vector>

namespace weft::search {
namespace {

int complexity_of_axis(const distribute::AxisUse& use, const distribute::IndexRoles& roles) {
  const auto is_batch = [&](const std::string& index) {
    return std::ranges::find(roles.batch, index) != roles.batch.end();
  };
  const auto batches = std::ranges::count_if(use.slice, is_batch);
  const bool slices_model = static_cast<std::size_t>(batches) < use.slice.size();
  int parts = use.shard == distribute::Shard::nothing ? 0 : use.shard == distribute::Shard::optimizer ? 1 : 2;
  if (slices_model) parts += 3;
  if (slices_model && batches > 0) parts += 1;      // some tensors one way and some the other
  if (use.slice.empty() && !use.stage) parts += 1;  // ranks that do the same
  if (use.ring) parts += 1;
  if (use.stage) parts += use.chunks > 1 ? 5 : 4;
  return parts + static_cast<int>(use.in_stages.size());
}

}  // namespace

int complexity_of(const distribute::Distribution& distribution, const distribute::IndexRoles& roles) {
  int parts = static_cast<int>(distribution.exceptions.size());
  std::vector<distribute::AxisUse> counted;
  for (std::size_t a = 0; a < distribution.axes.size(); ++a) {
    const distribute::AxisUse& use = distribution.axes[a];
    if (distribution.mesh.axes[a].ranks < 2 || std::ranges::find(counted, use) != counted.end()) continue;
    parts += complexity_of_axis(use, roles);
    counted.push_back(use);
  }
  return parts;
}

}  // namespace weft::search
