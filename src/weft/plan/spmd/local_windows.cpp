#include "weft/plan/spmd/local_windows.h"

#include <algorithm>

#include <fmt/format.h>

#include "weft/base/check.h"
#include "weft/plan/ops/build.h"

namespace weft::spmd {
namespace {

using plan::NodeView;
using plan::Share;

// Into how many parts an axis slices the loop, and the number of this rank's part; 1 and 0 if none
// does.
struct Part {
  std::int32_t parts = 1, number = 0;
};

Part part_of(const NodeView& node, const plan::Loop& loop, const plan::Mesh& mesh,
             std::span<const plan::Layout> layouts, std::int32_t rank) {
  for (std::size_t i = 0; i < node.input_count(); ++i) {
    if (loop.operands[i] < 0) continue;
    const Symbol index = node.input_type(i).dims[static_cast<std::size_t>(loop.operands[i])].index;
    const plan::Layout& held = layouts[node.input(i).value];
    for (std::size_t axis = 0; axis < mesh.axes.size(); ++axis)
      if (held.axes[axis].slices(index)) return {mesh.axes[axis].ranks, mesh.coordinate(rank, axis)};
  }
  return {};
}

void cut(LocalWindows& local, Share steps) {
  const ops::Sliding& sliding = local.sliding;
  Share windows = steps, elements = steps;
  local.is_idle = steps.size == 0;
  for (const ops::Sees sees : sliding.operands) {
    const Share seen = local.operands.emplace_back(sliding.seen(sees, steps));
    local.is_idle |= seen.size == 0;
    if (sees == ops::Sees::elements || sees == ops::Sees::neighbours) elements = seen;
    if (sees == ops::Sees::windows) windows = seen;
  }
  local.kept = steps;
  local.computed = sliding.by_window ? windows : elements;
  local.padding = sliding.padding + elements.begin - windows.begin * sliding.stride;
  local.count = windows.size;
  WEFT_CHECK(local.is_idle || local.padding >= 0);
}

}  // namespace

std::vector<LocalWindows> local_windows(const NodeView& node, const plan::Signature& signature,
                                        const plan::Mesh& mesh, std::span<const plan::Layout> layouts,
                                        std::int32_t rank) {
  std::vector<LocalWindows> found;
  for (ops::Sliding& sliding : ops::sliding_loops(node)) {
    const Part part = part_of(node, signature.loops[sliding.loop], mesh, layouts, rank);
    LocalWindows& local = found.emplace_back();
    local.sliding = std::move(sliding);
    local.is_cut = part.parts > 1;
    if (local.is_cut) cut(local, plan::share_of(local.sliding.steps(), part.parts, part.number));
  }
  return found;
}

void set_window_attributes(const plan::NodeView& node, std::span<const LocalWindows> windows,
                           std::vector<plan::AttributeValue>& attributes) {
  if (std::ranges::none_of(windows, &LocalWindows::is_cut)) return;
  // Columns whose windows are counted are not in `windows` and would get the padding of the rows'
  // block.
  const std::span<const plan::AttributeSpec> specs = node.op().attributes();
  const auto at = [&](std::string_view name) {
    return static_cast<std::size_t>(std::ranges::find(specs, name, &plan::AttributeSpec::name) -
                                    specs.begin());
  };
  if (const std::size_t columns = at("padding_w"); columns < specs.size() && node.integer(columns) < 0)
    attributes[columns] = node.integer(at("padding"));
  for (const LocalWindows& local : windows) {
    const ops::Sliding& sliding = local.sliding;
    attributes[sliding.padding_attribute] = local.is_cut ? local.padding : sliding.padding;
    if (local.is_cut) attributes[sliding.count_attribute] = local.count;
  }
}

Result<plan::ValueId> add_part(plan::Graph& graph, plan::ValueId value, Symbol along, Share held,
                               Share part) {
  if (part == held) return value;
  if (part.begin < held.begin || part.end() > held.end())
    return user_error(fmt::format("its windows read elements {} to {} along {}, but it holds {} to {}",
                                  part.begin, part.end(), graph.text(along), held.begin, held.end()));
  return ops::add_slice(graph, value, along, part.begin - held.begin, part.end() - held.begin);
}

}  // namespace weft::spmd
