#include "weft/parallel/distribute/concat_boundaries.h"

#include <algorithm>

#include <fmt/format.h>

#include "weft/plan/graph/verify.h"
#include "weft/plan/ops/operators.h"

namespace weft::distribute {
namespace {

constexpr int kMostNodesBack = 64;

// The name of the index before the rename.
Symbol name_before(const plan::NodeView& rename, Symbol index) {
  const auto from = rename.indices(0), to = rename.indices(1);
  for (std::size_t i = 0; i < to.size(); ++i)
    if (to[i] == index) return from[i];
  return index;
}

std::vector<std::int64_t> seams_within(const plan::Graph& graph, plan::ValueId value, Symbol index,
                                       int left) {
  const std::int64_t size = graph.type(value).size_of(index);
  const std::vector<std::int64_t> whole = {0, size};
  if (left == 0) return whole;
  const plan::NodeView node = graph.view(graph.value(value).producer);
  if (&node.op() == &ops::concat() && node.symbol(0) == index) {
    std::vector<std::int64_t> found = {0};
    for (const plan::ValueId part : node.node().inputs) {
      const std::int64_t offset = found.back();
      const std::vector<std::int64_t> inner = seams_within(graph, part, index, left - 1);
      for (std::size_t s = 1; s < inner.size(); ++s) found.push_back(offset + inner[s]);
    }
    return found;
  }
  const Symbol before = &node.op() == &ops::rename() ? name_before(node, index) : index;
  for (const plan::ValueId input : node.node().inputs) {
    if (!graph.type(input).has(before) || graph.type(input).size_of(before) != size) continue;
    if (auto found = seams_within(graph, input, before, left - 1); found.size() > 2) return found;
  }
  return whole;
}

}  // namespace

std::vector<std::int64_t> concat_boundaries(const plan::Graph& graph, plan::ValueId value, Symbol index) {
  return seams_within(graph, value, index, kMostNodesBack);
}

Result<Stretch> resized_slice(const plan::NodeView& slice, const plan::Graph& other, plan::ValueId input,
                              Symbol along) {
  const std::vector<std::int64_t> here = concat_boundaries(slice.graph(), slice.input(0), slice.symbol(0)),
                                  there = concat_boundaries(other, input, along);
  const auto begin = std::ranges::find(here, slice.integer(1)),
             end = std::ranges::find(here, slice.integer(2));
  if (begin == here.end() || end == here.end() || here.size() != there.size())
    return user_error(fmt::format(
        "{} does not begin and end at concatenation boundaries, so it is undefined at other sizes",
        plan::describe(slice.graph(), slice.id())));
  return Stretch{there[static_cast<std::size_t>(begin - here.begin())],
                 there[static_cast<std::size_t>(end - here.begin())]};
}

}  // namespace weft::distribute
