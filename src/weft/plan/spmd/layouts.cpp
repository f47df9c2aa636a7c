#include "weft/plan/spmd/layouts.h"

#include <algorithm>
#include <optional>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "weft/plan/graph/verify.h"
#include "weft/plan/ops/codec.h"
#include "weft/plan/ops/codes.h"
#include "weft/plan/ops/communication.h"
#include "weft/plan/ops/exchanges.h"
#include "weft/plan/ops/sliding.h"
#include "weft/plan/ops/sources.h"
#include "weft/plan/spmd/carries.h"
#include "weft/plan/spmd/ring.h"

namespace weft::spmd {
namespace {

using plan::AxisLayout;
using plan::Layout;
using plan::Mesh;
using plan::NodeView;

// One node on one mesh axis: the layouts of its operands there, and error messages about them.
struct AtAxis {
  const NodeView& node;
  std::string_view axis;
  std::int32_t ranks;
  std::vector<AxisLayout> operands;

  std::string text(const AxisLayout& layout) const { return print(layout, node.graph().symbols()); }
  Error error(std::string_view why, std::string hint = {}) const {
    std::vector<std::string> found;
    for (const AxisLayout& layout : operands) found.push_back(text(layout));
    return user_error(fmt::format("node {} on mesh axis {}: {}; operands are {}",
                                  describe(node.graph(), node.id()), axis, why, fmt::join(found, ", ")),
                      std::move(hint));
  }
};

using Results = std::vector<AxisLayout>;

// Whether the layout `held` satisfies `needed`: with sliding windows, borders may be wider.
bool serves(const AxisLayout& held, const AxisLayout& needed, bool slides) {
  return held == needed || (slides && needed.is_sliced() && held.slices(needed.index) &&
                            held.before >= needed.before && held.after >= needed.after);
}

// Operand i is sliced, and no operand is partial or varying: the loop along its dim decides.
Result<Results> cut_along(const AtAxis& at, const plan::Signature& signature, std::size_t i) {
  const Symbol index = at.operands[i].index;
  const int dim = at.node.input_type(i).position(index);
  const auto cut = std::ranges::find_if(signature.loops, [&](const plan::Loop& loop) {
    return loop.operands[i] == dim && loop.role != plan::Role::whole;
  });
  if (cut == signature.loops.end())
    return at.error(fmt::format("{} needs index {} whole", at.node.op().name(), at.node.text(index)),
                    fmt::format("all-gather operand {} along {} first", i, at.node.text(index)));
  const auto loop = static_cast<std::size_t>(cut - signature.loops.begin());
  const std::vector<ops::Sliding> sliding = ops::sliding_loops(at.node);
  const bool slides = std::ranges::find(sliding, loop, &ops::Sliding::loop) != sliding.end();
  for (std::size_t j = 0; j < at.operands.size(); ++j) {
    const std::optional<AxisLayout> needed = ops::operand_layout(at.node, signature, loop, j, at.ranks);
    if (!needed)
      return at.error(fmt::format("windows along {} are too wide to slice it", at.node.text(index)),
                      fmt::format("all-gather operand {} along {} first", i, at.node.text(index)));
    if (serves(at.operands[j], *needed, slides)) continue;
    return at.error(fmt::format("with operand {} {}, operand {} must be {}", i, at.text(at.operands[i]), j,
                                at.text(*needed)),
                    needed->is_replicated() ? fmt::format("all-gather operand {} first", j)
                    : needed->has_borders()
                        ? fmt::format("fetch its borders by a halo on {} first", at.axis)
                        : fmt::format("slice operand {} across {}, or all-gather operand {}", j, at.axis, i));
  }
  Results results;
  for (std::size_t k = 0; k < at.node.result_count(); ++k) {
    const int kept = cut->results[k];
    results.push_back(
        cut->role == plan::Role::reduced || kept < 0
            ? AxisLayout::partial(cut->monoid)
            : AxisLayout::sliced(at.node.result_type(k).dims[static_cast<std::size_t>(kept)].index));
  }
  return results;
}

Result<Results> carry(const AtAxis& at, std::size_t i) {
  const plan::Monoid monoid = at.operands[i].monoid;
  std::vector<bool> addends;
  for (const AxisLayout& operand : at.operands) {
    if (!operand.is_replicated() && operand != at.operands[i])
      return at.error(
          "partial operands can only be combined with partial operands of the same kind and replicated ones");
    addends.push_back(operand.is_partial());
  }
  if (!carries(at.node, monoid, addends))
    return at.error(fmt::format("{} cannot be applied before {} is reduced", at.node.op().name(),
                                at.text(at.operands[i])),
                    fmt::format("all-reduce operand {} first", i));
  return Results(at.node.result_count(), at.operands[i]);
}

Result<Results> results_on(const AtAxis& at, const plan::Signature& signature) {
  const auto first = [&](AxisLayout::Kind kind) {
    return static_cast<std::size_t>(std::ranges::find(at.operands, kind, &AxisLayout::kind) -
                                    at.operands.begin());
  };
  using Kind = AxisLayout::Kind;
  if (const std::size_t i = first(Kind::partial); i < at.operands.size()) return carry(at, i);
  if (first(Kind::varying) < at.operands.size()) {
    if (first(Kind::sliced) < at.operands.size())
      return at.error("varying operands can only be combined with varying and replicated ones");
    return Results(at.node.result_count(), AxisLayout::varying());
  }
  if (supports_ring_attention(at.node) && at.operands == ring_operands(at.node)) return ring_results(at.node);
  if (const std::size_t i = first(Kind::sliced); i < at.operands.size()) return cut_along(at, signature, i);
  return Results(at.node.result_count());
}

// If an index is split or merged, a step of the loop is several elements of one side. The blocks of
// both sides must have the same elements: 12 = 4 x 3 in blocks of 6 is 4 in blocks of 2, but 3 x 4
// has no such blocks.
Status check_blocks(const NodeView& node, const plan::Signature& signature, const Mesh& mesh,
                    const Layout& operand, const Layout& result) {
  for (const plan::Loop& loop : signature.loops) {
    if (loop.role == plan::Role::whole || loop.operands[0] < 0 || loop.results[0] < 0) continue;
    const auto from = static_cast<std::size_t>(loop.operands[0]),
               to = static_cast<std::size_t>(loop.results[0]);
    const plan::Type x = node.input_type(0), y = node.result_type(0);
    if (x.dims[from].size == y.dims[to].size) continue;
    const bool split = x.dims[from].size > y.dims[to].size;
    const std::int64_t step =
        split ? x.dims[from].size / y.dims[to].size : y.dims[to].size / x.dims[from].size;
    for (std::int32_t rank = 0; rank < mesh.ranks(); ++rank) {
      const plan::Share before = shares_of(x, operand, mesh, rank)[from],
                        after = shares_of(y, result, mesh, rank)[to];
      const plan::Share &fine = split ? before : after, &coarse = split ? after : before;
      if (fine == plan::Share{coarse.begin * step, coarse.size * step}) continue;
      return user_error(
          fmt::format("node {}: blocks of {} do not match blocks of {}: {} and {} over {}",
                      describe(node.graph(), node.id()), node.text(x.dims[from].index),
                      node.text(y.dims[to].index), x.dims[from].size, y.dims[to].size, print(mesh)),
          "all-gather it first");
    }
  }
  return {};
}

// Codes must be sliced between segments, at the same places as the numbers.
Status check_segments(const NodeView& node, const Mesh& mesh, const Layout& operand, const Layout& result) {
  const bool encodes = &node.op() == &ops::encode();
  const plan::Type numbers = encodes ? node.input_type(0) : node.result_type(0),
                   codes = encodes ? node.result_type(0) : node.input_type(0);
  const ops::CodeSegments segments = ops::code_segments(node);
  const auto first = static_cast<std::size_t>(numbers.position(ops::coded_indices(node).front()));
  const std::int64_t steps =
      numbers.dims[first].size * segments.words / codes.dims.back().size;  // per segment
  for (std::int32_t rank = 0; rank < mesh.ranks(); ++rank) {
    const plan::Share held = shares_of(numbers, encodes ? operand : result, mesh, rank)[first],
                      coded = shares_of(codes, encodes ? result : operand, mesh, rank).back();
    if (held.begin % steps == 0 && held.size % steps == 0 &&
        coded.begin == held.begin / steps * segments.words &&
        coded.size == held.size / steps * segments.words)
      continue;
    return user_error(fmt::format("node {}: {} over {} is not sliced between segments of {}",
                                  describe(node.graph(), node.id()), node.text(numbers.dims[first].index),
                                  print(mesh), steps),
                      "all-gather it first");
  }
  return {};
}

// Ring attention uses one ring: keys may be sliced along one mesh axis only.
Status check_ring(const NodeView& node, const Mesh& mesh, std::span<const Layout> layouts) {
  const std::vector<std::size_t> axes = ring_axes(node, layouts);
  if (axes.size() < 2) return {};
  return user_error(
      fmt::format("node {}: ring attention needs keys sliced along one mesh axis, found {} and {}",
                  describe(node.graph(), node.id()), mesh.axes[axes[0]].name, mesh.axes[axes[1]].name),
      "all-gather keys and values on the inner axis first");
}

// Sliding windows read beyond a block's ends, so only one axis may slice their index.
Status check_sliding(const NodeView& node, const Mesh& mesh, std::span<const Layout> layouts) {
  for (const ops::Sliding& sliding : ops::sliding_loops(node))
    for (std::size_t i = 0; i < node.input_count(); ++i) {
      const int dim = node.op().signature(node).loops[sliding.loop].operands[i];
      if (dim < 0) continue;
      const Symbol index = node.input_type(i).dims[static_cast<std::size_t>(dim)].index;
      const Layout& held = layouts[node.input(i).value];
      if (std::ranges::count_if(held.axes, [&](const AxisLayout& axis) { return axis.slices(index); }) < 2)
        continue;
      return user_error(
          fmt::format("node {}: windows slide along {}, so only one mesh axis may slice it; it is {}",
                      describe(node.graph(), node.id()), node.text(index),
                      print(held, mesh, node.graph().symbols())),
          "all-gather it on the inner axis first");
    }
  return {};
}

Result<std::vector<Layout>> layouts_of_results(const NodeView& node, const Mesh& mesh,
                                               std::span<const Layout> layouts) {
  const plan::Signature signature = ops::signature_with_borders(node);
  std::vector<Layout> results(node.result_count());
  for (std::size_t axis = 0; axis < mesh.axes.size(); ++axis) {
    AtAxis at{node, mesh.axes[axis].name, mesh.axes[axis].ranks, {}};
    for (const plan::ValueId input : node.node().inputs)
      at.operands.push_back(layouts[input.value].axes[axis]);
    WEFT_TRY(on_axis, results_on(at, signature));
    for (std::size_t k = 0; k < results.size(); ++k) results[k].axes.push_back(on_axis[k]);
  }
  WEFT_TRY_STATUS(check_sliding(node, mesh, layouts));
  WEFT_TRY_STATUS(check_ring(node, mesh, layouts));
  if (&node.op() == &ops::encode() || &node.op() == &ops::decode())
    WEFT_TRY_STATUS(check_segments(node, mesh, layouts[node.input(0).value], results[0]));
  if (node.op().is_view())
    WEFT_TRY_STATUS(check_blocks(node, signature, mesh, layouts[node.input(0).value], results[0]));
  return results;
}

// Checks the layout that an exchange needs on its own axis, and returns the layout it gives there.
Result<AxisLayout> exchanged(const AtAxis& at, const ops::Exchange& exchange) {
  const AxisLayout& found = at.operands[0];
  const auto needs = [&](const AxisLayout& wanted, std::string hint = {}) {
    return at.error(fmt::format("{} needs {} or varying", at.node.op().name(), at.text(wanted)),
                    std::move(hint));
  };
  switch (exchange.take) {
    case ops::Exchange::Take::combined:
      if (const AxisLayout addends = AxisLayout::partial(exchange.monoid);
          found != addends && !found.is_varying())
        return needs(addends, found.is_sliced() ? "all-gather joins slices" : "");
      break;
    case ops::Exchange::Take::joined:
      if (const AxisLayout shares = AxisLayout::sliced(exchange.join); found != shares)
        return at.error(fmt::format("{} needs {}", at.node.op().name(), at.text(shares)),
                        found.is_partial() ? "all-reduce combines addends" : "");
      break;
    case ops::Exchange::Take::stacked:
      if (const AxisLayout addends = AxisLayout::partial(plan::Monoid::sum); found != addends)
        return at.error(fmt::format("{} needs {}", at.node.op().name(), at.text(addends)));
      if (exchange.rank != at.ranks)
        return at.error(
            fmt::format("{} has {} rows for {} ranks", at.node.op().name(), exchange.rank, at.ranks));
      break;
    case ops::Exchange::Take::own:
    case ops::Exchange::Take::root:
      if (!found.is_replicated() && !found.is_varying()) return needs(AxisLayout::replicated());
      break;
    case ops::Exchange::Take::shifted:
      if (found.is_sliced())
        return at.error(fmt::format("{} would put the slices out of order", at.node.op().name()));
      return found;
    case ops::Exchange::Take::bordered:
      if (const AxisLayout shares = AxisLayout::sliced(exchange.join); found != shares)
        return at.error(fmt::format("{} needs {}", at.node.op().name(), at.text(shares)));
      return AxisLayout::sliced(exchange.join, static_cast<std::uint16_t>(exchange.before),
                                static_cast<std::uint16_t>(exchange.after));
  }
  return exchange.keep.valid() ? AxisLayout::sliced(exchange.keep) : AxisLayout::replicated();
}

Result<Layout> layout_of_exchange(const NodeView& node, const ops::Communication& op, const Mesh& mesh,
                                  const Layout& operand) {
  const ops::Exchange exchange = op.exchange(node);
  const int found = mesh.find(op.axis(node));
  if (found < 0)
    return user_error(fmt::format("node {}: the mesh has no axis {}: it is {}",
                                  describe(node.graph(), node.id()), op.axis(node), print(mesh)));
  const auto axis = static_cast<std::size_t>(found);
  const AtAxis at{node, mesh.axes[axis].name, mesh.axes[axis].ranks, {operand.axes[axis]}};
  if (exchange.take == ops::Exchange::Take::root && exchange.rank >= mesh.axes[axis].ranks)
    return at.error(fmt::format("root must be below {}, found {}", mesh.axes[axis].ranks, exchange.rank));
  for (std::size_t other = 0; other < mesh.axes.size(); ++other) {
    if (other == axis) continue;
    const AxisLayout& there = operand.axes[other];
    if (there.is_partial() && exchange.take == ops::Exchange::Take::combined &&
        there.monoid != exchange.monoid)
      return at.error(fmt::format("the addends on {} are {} and must be combined first",
                                  mesh.axes[other].name, at.text(there)));
    if (exchange.take == ops::Exchange::Take::bordered && there.slices(exchange.join))
      return at.error(fmt::format("{} is also sliced on {}: its blocks' neighbours are not along one axis",
                                  node.text(there.index), mesh.axes[other].name));
    // An inner axis slices the blocks of the outer ones: slice outer first, and undo it last.
    if (other > axis && there.is_sliced() && (there.index == exchange.join || there.index == exchange.keep))
      return at.error(fmt::format("{} is also sliced on the inner axis {}", node.text(there.index),
                                  mesh.axes[other].name),
                      fmt::format("all-gather on {} first", mesh.axes[other].name));
  }
  Layout result = operand;
  WEFT_TRY(given, exchanged(at, exchange));
  result.axes[axis] = given;
  return result;
}

}  // namespace

Result<std::vector<Layout>> infer_layouts(const NodeView& node, const Mesh& mesh,
                                          std::span<const Layout> layouts) {
  const plan::Graph& graph = node.graph();
  if (ops::is_source(node.op())) {
    Result<Layout> layout = read_layout(ops::layout_of(node), mesh, node.result_type(0), graph.symbols());
    if (!layout.ok())
      return user_error(fmt::format("node {}: {}", describe(graph, node.id()), layout.error().message),
                        layout.error().hint);
    return std::vector{std::move(layout).value()};
  }
  if (const ops::Communication* op = ops::find_communication(node.op()); op != nullptr) {
    std::vector<Layout> results;
    for (const plan::ValueId input : node.node().inputs) {
      WEFT_TRY(layout, layout_of_exchange(node, *op, mesh, layouts[input.value]));
      results.push_back(std::move(layout));
    }
    return results;
  }
  if (&node.op() == &ops::local_exchange())
    return user_error(
        fmt::format("node {}: exchange belongs in the plan of one rank", describe(graph, node.id())));
  return layouts_of_results(node, mesh, layouts);
}

Result<std::vector<Layout>> infer_layouts(const plan::Graph& graph, const Mesh& mesh) {
  WEFT_TRY_STATUS(check(mesh));
  std::vector<Layout> layouts;
  layouts.reserve(graph.value_count());
  for (std::size_t n = 0; n < graph.node_count(); ++n) {
    WEFT_TRY(results, infer_layouts(graph.view(plan::NodeId(n)), mesh, layouts));
    for (Layout& layout : results) layouts.push_back(std::move(layout));
  }
  return layouts;
}

}  // namespace weft::spmd
