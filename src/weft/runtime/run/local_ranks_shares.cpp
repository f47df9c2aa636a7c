#include "weft/runtime/run/local_ranks_shares.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <set>
#include <string_view>
#include <utility>

#include "weft/parallel/pipeline/pipelined_plan.h"
#include "weft/parallel/pipeline/unroll.h"
#include "weft/plan/ops/operators.h"

namespace weft::run {
namespace {

using plan::NodeId;
using plan::Share;

// Calls visit(at_whole, at_part, elements) for each run of elements that is contiguous in both.
template <class Visit>
void walk(const plan::Type& type, std::span<const Share> shares, std::size_t dim, std::int64_t whole,
          std::int64_t& part, Visit& visit) {
  std::int64_t stride = 1;
  bool rest_is_whole = true;
  for (std::size_t d = dim + 1; d < shares.size(); ++d) {
    stride *= type.dims[d].size;
    rest_is_whole = rest_is_whole && shares[d].size == type.dims[d].size;
  }
  if (shares.empty() || rest_is_whole) {
    const std::int64_t begin = shares.empty() ? 0 : shares[dim].begin * stride;
    const std::int64_t elements = shares.empty() ? 1 : shares[dim].size * stride;
    visit(whole + begin, part, elements);
    part += elements;
    return;
  }
  for (std::int64_t i = 0; i < shares[dim].size; ++i)
    walk(type, shares, dim + 1, whole + (shares[dim].begin + i) * stride, part, visit);
}

template <class Visit>
void for_runs(const plan::Type& type, std::span<const Share> shares, Visit visit) {
  std::int64_t part = 0;
  if (elements_of(shares) > 0) walk(type, shares, 0, 0, part, visit);
}

std::vector<bool> what_outputs_read(const plan::Graph& graph) {
  std::vector<bool> read(graph.node_count());
  for (const plan::Output& output : graph.outputs()) read[graph.value(output.value).producer.value] = true;
  for (std::size_t n = graph.node_count(); n-- > 0;) {
    if (!read[n]) continue;
    for (const plan::ValueId input : graph.node(NodeId(n)).inputs)
      read[graph.value(input).producer.value] = true;
  }
  return read;
}

}  // namespace

std::int64_t elements_of(std::span<const Share> shares) {
  std::int64_t elements = 1;
  for (const Share& share : shares) elements *= share.size;
  return elements;
}

void cut_share(const plan::Type& type, std::span<const Share> shares, std::span<const std::byte> whole,
               std::span<std::byte> part) {
  const std::int64_t width = plan::size_in_bytes(type.dtype);
  for_runs(type, shares, [&](std::int64_t from, std::int64_t to, std::int64_t elements) {
    std::memcpy(part.data() + to * width, whole.data() + from * width,
                static_cast<std::size_t>(elements * width));
  });
}

void put_share(const plan::Type& type, std::span<const Share> shares, std::span<const std::byte> part,
               std::span<std::byte> whole) {
  const std::int64_t width = plan::size_in_bytes(type.dtype);
  for_runs(type, shares, [&](std::int64_t to, std::int64_t from, std::int64_t elements) {
    std::memcpy(whole.data() + to * width, part.data() + from * width,
                static_cast<std::size_t>(elements * width));
  });
}

bool SharedSource::is_whole(std::int32_t rank) const {
  return is_held(static_cast<std::size_t>(rank)) &&
         elements_of(shares[static_cast<std::size_t>(rank)]) == type.elements();
}

std::vector<SharedSource> shared_sources(const plan::Graph& graph, const plan::Mesh& mesh,
                                         std::span<const plan::Layout> layouts) {
  const std::vector<bool> read = what_outputs_read(graph);
  std::set<std::string_view, std::less<>>
      renewed;  // includes a STATE that UPDATE overwrites but no output reads
  for (const plan::Output& output : graph.outputs())
    if (output.updates.valid()) renewed.insert(graph.text(output.updates));
  std::vector<SharedSource> sources;
  for (std::size_t n = 0; n < graph.node_count(); ++n) {
    const plan::NodeView node = graph.view(NodeId(n));
    const bool is_input = &node.op() == &ops::input(), is_parameter = &node.op() == &ops::parameter();
    if (!is_input && !is_parameter && &node.op() != &ops::state()) continue;
    SharedSource source;
    source.kind = is_input       ? SharedSource::Kind::input
                  : is_parameter ? SharedSource::Kind::parameter
                                 : SharedSource::Kind::state;
    source.name = std::string(node.word(0));
    source.node = NodeId(n);
    source.type = node.result_type(0);
    source.is_read = read[n] || renewed.contains(source.name);
    const plan::Layout& layout = layouts[node.result(0).value];
    source.has_copies = std::ranges::all_of(layout.axes, [](const plan::AxisLayout& axis) {
      return axis.kind == plan::AxisLayout::Kind::replicated || axis.is_sliced();
    });
    for (std::int32_t rank = 0; rank < mesh.ranks(); ++rank)
      source.shares.push_back(plan::shares_of(source.type, layout, mesh, rank));
    sources.push_back(std::move(source));
  }
  return sources;
}

namespace {

// Extends the shares on one stage's mesh to the ranks of all stages that hold the source.
// Micro-batches are cut from a rank's rows within its plan.
Result<std::vector<SharedSource>> sources_in_time(const distribute::DistributedPlan& plan) {
  const distribute::Distribution& distribution = plan.time->distribution;
  const plan::Mesh inner = pipeline::inner_mesh(distribution);
  std::vector<plan::Layout> layouts = plan.layouts;
  for (plan::Layout& layout : layouts) layout = pipeline::layout_in_stage(plan, std::move(layout));
  WEFT_TRY(stages, pipeline::stages_of_sources(plan));
  std::vector<SharedSource> sources = shared_sources(plan.graph, inner, layouts);
  for (SharedSource& source : sources) {
    source.shares.clear();
    for (std::int32_t rank = 0; rank < distribution.mesh.ranks(); ++rank) {
      const bool held = (stages[source.node.value] >> pipeline::stage_of(distribution, rank) & 1) != 0;
      source.shares.push_back(pipeline::pipelined_shares(plan, source.node, rank));
      source.held.push_back(held);
    }
  }
  return sources;
}

}  // namespace

Result<std::vector<SharedSource>> shared_sources(const distribute::DistributedPlan& plan) {
  if (plan.time) return sources_in_time(plan);
  return shared_sources(plan.graph, plan.mesh, plan.layouts);
}

}  // namespace weft::run
