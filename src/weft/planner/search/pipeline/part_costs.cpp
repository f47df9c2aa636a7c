#include "weft/planner/search/pipeline/part_costs.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "weft/base/check.h"
#include "weft/parallel/train/passes.h"
#include "weft/plan/ops/attention_geometry.h"
#include "weft/plan/ops/build.h"
#include "weft/plan/ops/local_exchange.h"
#include "weft/plan/ops/operators.h"
#include "weft/plan/spmd/localize.h"
#include "weft/plan/spmd/ring.h"
#include "weft/planner/search/codec/add_codec.h"
#include "weft/planner/search/codec/encode_boundaries.h"
#include "weft/planner/search/distribution/fold.h"
#include "weft/predict/cost/plan_cost.h"
#include "weft/predict/sim/step/rank_classes.h"
#include "weft/program/tasks/program.h"

namespace weft::search {
namespace {

using distribute::Distribution;
using plan::Graph;
using plan::NodeId;
using plan::NodeView;
using plan::ValueId;
using train::Pass;

using EntryParts = std::map<std::string, std::size_t, std::less<>>;

// The plan of a rank, with the part and the pass of every node.
struct LocalParts {
  Graph graph;
  std::vector<std::size_t> part;  // sources belong to the part of their first reader
  std::vector<Pass> pass;
  std::vector<bool> late;                // runs at the end of a step
  std::vector<bool> copy;                // recomputes forward work
  std::vector<std::vector<bool>> alike;  // by value and axis: replicated, and could be sliced instead
};

// By mesh axis: whether the value is replicated along it and could be sliced instead.
std::vector<bool> sliceable_along(const distribute::DistributedPlan& plan, ValueId value) {
  const plan::Layout& layout = plan.layouts[value.value];
  std::vector<bool> along(layout.axes.size());
  for (std::size_t axis = 0; axis < layout.axes.size(); ++axis) {
    const std::int32_t ranks = plan.mesh.axes[axis].ranks;
    along[axis] = ranks > 1 && layout.axes[axis].is_replicated() &&
                  std::ranges::any_of(plan.graph.type(value).dims, [&](const plan::Dim& dim) {
                    return dim.size % ranks == 0 &&
                           std::ranges::none_of(layout.axes, [&](const plan::AxisLayout& other) {
                             return other.slices(dim.index);
                           });
                  });
  }
  return along;
}

// The part of each node: that of its entry, else of its operands, else of its readers.
std::vector<std::size_t> homes_of(const Graph& graph, const EntryParts& entries) {
  constexpr std::size_t kNowhere = ~std::size_t{0};
  std::vector<std::size_t> part(graph.node_count(), kNowhere);
  for (std::size_t n = 0; n < graph.node_count(); ++n) {
    const plan::Node& node = graph.node(NodeId(n));
    if (node.inputs.empty()) continue;
    if (node.label.valid())
      if (const auto found = entries.find(graph.path(node.scope, node.label)); found != entries.end())
        part[n] = found->second;
    for (const ValueId value : node.inputs)
      if (part[n] == kNowhere) part[n] = part[graph.value(value).producer.value];
  }
  for (std::size_t n = graph.node_count(); n-- > 0;)
    for (const ValueId value : graph.node(NodeId(n)).inputs)
      if (std::size_t& home = part[graph.value(value).producer.value]; home == kNowhere) home = part[n];
  for (std::size_t& home : part)
    if (home == kNowhere) home = 0;
  return part;
}

bool shards_parameters(const Distribution& within, std::string_view axis) {
  for (std::size_t a = 0; a < within.axes.size(); ++a)
    if (within.mesh.axes[a].name == axis) return within.axes[a].shard == distribute::Shard::parameters;
  return false;
}

// By node: the axis along which the codes it makes are sent; empty if it makes none.
std::vector<std::string> axes_of_codes(const Graph& graph) {
  std::vector<std::string> axes(graph.node_count());
  for (std::size_t n = 0; n < graph.node_count(); ++n) {
    const NodeView node = graph.view(NodeId(n));
    if (&node.op() != &ops::local_exchange() || node.input_count() == 0) continue;
    const NodeId maker = graph.value(node.input(0)).producer;
    if (graph.node(maker).op == &ops::encode()) axes[maker.value] = ops::read_local_exchange(node).axis;
  }
  return axes;
}

// Nodes that run once per step: the update, and before it the sums of gradients over ranks.
std::vector<bool> late_nodes(const Graph& graph, const std::vector<Pass>& pass, const Distribution& within) {
  std::vector<bool> late(graph.node_count());
  const std::vector<std::string> codes_go_along = axes_of_codes(graph);
  for (std::size_t n = 0; n < graph.node_count(); ++n) {
    const NodeView node = graph.view(NodeId(n));
    late[n] = pass[n] == Pass::update;
    if (pass[n] != Pass::weight) continue;
    if (const std::string& axis = codes_go_along[n]; !axis.empty())
      late[n] = !shards_parameters(within, axis);
    if (&node.op() == &ops::local_exchange()) {
      const ops::LocalExchange what = ops::read_local_exchange(node);
      const bool sums =
          what.kind == plan::ExchangeKind::all_reduce || what.kind == plan::ExchangeKind::reduce_scatter;
      late[n] = sums && !shards_parameters(within, what.axis);
    }
    for (const ValueId value : node.node().inputs)
      late[n] = late[n] || late[graph.value(value).producer.value];
  }
  return late;
}

// All ranks wait for the one with the most work. That is the first, which has the largest shares.
// If later ranks attend to more keys, it is the last rank with equally large shares.
std::int32_t busiest_rank(const distribute::DistributedPlan& plan) {
  if (!spmd::later_ranks_attend_more(plan.graph, plan.layouts)) return 0;
  const sim::Numbering kinds = sim::rank_kinds(plan.graph, plan.mesh, plan.layouts);
  return static_cast<std::int32_t>(kinds.rend() -
                                   std::ranges::find(kinds.rbegin(), kinds.rend(), kinds.front())) -
         1;
}

Result<LocalParts> local_parts(const Graph& graph, const Distribution& within, const Machine& machine,
                               const EntryParts& entries, const CodedParts& coded) {
  WEFT_TRY(prices, machine.prices(within.mesh));
  WEFT_TRY(plan, distribute::distribute(graph, within, {.prices = std::move(prices)}));
  if (coded.use != nullptr && coded.use->any()) {
    WEFT_TRY(made, place_codecs(plan, *coded.use));
    plan = std::move(made.plan);
  }
  WEFT_TRY(local,
           spmd::localize(plan.graph, plan.mesh, plan.layouts, busiest_rank(plan), spmd::Exchanges::stay));
  LocalParts made;
  made.alike.resize(local.graph.value_count());
  for (std::size_t v = 0; v < local.values.size(); ++v)
    if (local.values[v].valid()) made.alike[local.values[v].value] = sliceable_along(plan, ValueId(v));
  made.graph = std::move(local.graph);
  made.part = homes_of(made.graph, entries);
  made.pass = train::passes_of(made.graph);
  made.late = late_nodes(made.graph, made.pass, within);
  made.copy = train::find_copies(made.graph);
  return made;
}

// Half of a rank's plan, compiled, and the node of the rank's plan for each of its nodes.
struct Half {
  std::shared_ptr<const program::Program> program;
  program::Timeline timeline;
  double seconds = 0;
  std::vector<std::size_t> origin;  // by node; sources: none
};
constexpr std::size_t kNoNode = ~std::size_t{0};

Result<Half> run_half(const LocalParts& local, bool late, const Distribution& within,
                      const Machine& machine) {
  train::Chain chain;
  train::Part& part = chain.parts.emplace_back();
  for (std::size_t n = 0; n < local.graph.node_count(); ++n)
    if (!local.graph.node(NodeId(n)).inputs.empty() && local.late[n] == late) part.nodes.push_back(NodeId(n));
  Half half;
  if (part.nodes.empty()) {
    half.program = std::make_shared<const program::Program>();
    return half;
  }
  WEFT_TRY(graph, train::extract(local.graph, chain, 0, 1));
  std::size_t next = 0;
  for (std::size_t n = 0; n < graph.node_count(); ++n)
    half.origin.push_back(graph.node(NodeId(n)).inputs.empty() ? kNoNode : part.nodes[next++].value);
  WEFT_TRY(costs, machine.costs(within.mesh));
  program::CompileOptions compile = costs.compile;
  compile.workers = std::max(1, machine.workers);
  compile.pack = false;
  compile.tiles = compile.workers > 1;
  WEFT_TRY(compiled, program::compile(std::make_shared<const Graph>(std::move(graph)), compile));
  half.program = std::make_shared<const program::Program>(std::move(compiled));
  const std::vector<std::int32_t> alike(static_cast<std::size_t>(within.mesh.ranks()), 0);
  WEFT_TRY(prediction, sim::predict(within.mesh, {&half.program, 1}, alike, costs,
                                    {.overlap = machine.overlap, .workers = machine.workers}));
  half.timeline = std::move(prediction.classes.front().timeline);
  half.seconds = prediction.seconds;
  return half;
}

// The node of the rank's plan that a unit computes. Copies and combines have none.
std::size_t node_of(const Half& half, const program::Unit& unit) {
  for (const NodeId node : unit.nodes)
    if (half.origin[node.value] != kNoNode) return half.origin[node.value];
  return kNoNode;
}

// By unit: the node it computes. Copies and combines count with the unit before them.
std::vector<std::size_t> nodes_of_units(const Half& half) {
  std::vector<std::size_t> nodes;
  std::size_t last = kNoNode;
  for (const program::Unit& unit : half.program->units) {
    if (const std::size_t node = node_of(half, unit); node != kNoNode) last = node;
    nodes.push_back(last);
  }
  for (std::size_t u = nodes.size(); u-- > 1;)
    if (nodes[u - 1] == kNoNode) nodes[u - 1] = nodes[u];
  return nodes;
}

bool is_product(const program::Program& program, const program::Unit& unit) {
  const auto* const call = std::get_if<program::OperatorCall>(&unit.kernel);
  return std::holds_alternative<program::MatrixProduct>(unit.kernel) ||
         (call != nullptr && &program.graph->view(call->node).op() == &ops::contract());
}

bool is_attention(const program::Program& program, const program::Unit& unit) {
  const auto* const call = std::get_if<program::OperatorCall>(&unit.kernel);
  return call != nullptr && ops::is_attention_operator(program.graph->view(call->node).op());
}

// Units run one after another, so each is charged from the end of the previous one, waits included.
void add_seconds(const LocalParts& local, const Half& half, PartCosts& costs) {
  const program::Program& program = *half.program;
  const std::vector<std::size_t> nodes = nodes_of_units(half);
  std::vector<std::size_t> computing;
  for (std::size_t t = 0; t < program.tasks.size(); ++t)
    if (program.units[program.tasks[t].unit].stream == 0) computing.push_back(t);
  std::ranges::stable_sort(computing, {}, [&](std::size_t t) { return half.timeline.tasks[t].begin; });
  double now = 0;
  double* last = nullptr;
  for (const std::size_t t : computing) {
    const std::size_t node = nodes[program.tasks[t].unit];
    if (node == kNoNode) continue;
    PartCost& cost = costs[local.part[node]];
    double& spent = local.pass[node] == Pass::forward    ? cost.forward
                    : local.pass[node] == Pass::backward ? cost.backward
                                                         : cost.weight;
    const program::TaskTime& time = half.timeline.tasks[t];
    const double busy = std::max(0.0, time.end - std::max(now, time.begin));
    cost.computing += busy;
    if (is_product(program, program.units[program.tasks[t].unit])) cost.products += busy;
    if (is_attention(program, program.units[program.tasks[t].unit])) cost.attention += busy;
    spent += std::max(0.0, time.end - now);
    if (local.copy[node]) cost.repeated += std::max(0.0, time.end - now);
    now = std::max(now, time.end);
    last = &spent;
  }
  if (last != nullptr) *last += std::max(0.0, half.seconds - now);
}

// What a forward product multiplies: bytes of parameters, read directly or after gathers and casts, and an activation.
struct Multiplied {
  double bytes = 0;
  ValueId by;
};

Multiplied multiplied_by(const Graph& graph, const NodeView& product) {
  Multiplied made;
  for (std::size_t k = 0; k < product.input_count(); ++k) {
    NodeId producer = graph.value(product.input(k)).producer;
    constexpr int kMostSteps = 4;
    for (int step = 0; step < kMostSteps && graph.node(producer).inputs.size() == 1; ++step)
      producer = graph.value(graph.node(producer).inputs.front()).producer;
    const NodeView source = graph.view(producer);
    if (&source.op() == &ops::parameter())
      made.bytes += static_cast<double>(source.result_type(0).bytes());
    else
      made.by = product.input(k);
  }
  return made;
}

// Weights that multiply one activation, such as those of queries, keys and values, make their gradients at once.
void add_largest(const LocalParts& local, PartCosts& costs) {
  const Graph& graph = local.graph;
  std::map<std::pair<std::size_t, std::uint32_t>, double> at_once;  // by part and activation
  for (std::size_t n = 0; n < graph.node_count(); ++n) {
    const NodeView node = graph.view(NodeId(n));
    if (local.pass[n] != Pass::forward || local.copy[n] || &node.op() != &ops::contract()) continue;
    const Multiplied what = multiplied_by(graph, node);
    PartCost& cost = costs[local.part[n]];
    if (what.by.valid())
      cost.largest = std::max(cost.largest, at_once[{local.part[n], what.by.value}] += what.bytes);
  }
}

void add_memory(const LocalParts& local, const Half& half, PartCosts& costs) {
  const program::Program& program = *half.program;
  if (program.units.empty()) return;
  const std::vector<std::size_t> nodes = nodes_of_units(half);
  std::vector<double> begins(program.units.size() + 1), ends(program.units.size() + 1);
  for (const program::Buffer& buffer : program.buffers) {
    if (program::is_persistent(buffer.role) || buffer.born >= program.units.size()) continue;
    const std::size_t last = std::clamp<std::size_t>(buffer.dies, buffer.born + 1, program.units.size()) - 1;
    const std::size_t from = nodes[buffer.born], to = nodes[last];
    const auto bytes = static_cast<double>(buffer.bytes);
    if (from != kNoNode && to != kNoNode && local.pass[from] == Pass::forward &&
        local.pass[to] != Pass::forward) {
      costs[local.part[from]].kept += bytes;
    } else {
      begins[buffer.born] += bytes;
      ends[last + 1] += bytes;
    }
  }
  for (std::size_t n = 0; n < local.graph.node_count(); ++n) {
    const NodeView node = local.graph.view(NodeId(n));
    if (&node.op() != &ops::cross_entropy() || local.pass[n] != Pass::forward) continue;
    double& logits = costs[local.part[n]].logits;
    logits = std::max(logits, static_cast<double>(node.input_type(0).elements()));
  }
  double alive = 0;
  for (std::size_t u = 0; u < program.units.size(); ++u) {
    alive += begins[u] - ends[u];
    if (nodes[u] == kNoNode) continue;
    double& most = costs[local.part[nodes[u]]].working;
    most = std::max(most, alive);
  }
}

// Bytes saved by sending a value compressed, and the seconds that its codec takes at both ends.
struct SentAsCodes {
  double spared = 0, seconds = 0;
};

Result<SentAsCodes> as_codes(const Graph& graph, ValueId value, const CodedParts& coded) {
  const plan::Type type = graph.type(value);
  const SentAsCodes as_it_is;
  if (coded.use == nullptr || !coded.use->activations || type.rank() < 2 || !is_real(type.dtype))
    return as_it_is;
  const CodecUse::From& from = *coded.use->activations;
  const AllowedCodec& codec = coded.use->allowed.activations.codecs[from.codec];
  const std::int64_t rows = type.dims[0].size, numbers = type.elements() / rows;
  const auto bytes = coded_bytes(codec, rows, numbers, plan::size_in_bytes(type.dtype));
  if (!bytes || type.bytes() < from.bytes) return as_it_is;
  Graph both;
  std::vector<plan::Dim> dims;
  for (const plan::Dim& dim : type.dims) dims.push_back({both.symbol(graph.text(dim.index)), dim.size});
  WEFT_TRY(typed, both.intern_type(type.dtype, dims));
  WEFT_TRY(x, ops::add_input(both, "x", typed));
  const ops::Codec of = codec.of(ops::Codec().block, numbers, numbers / dims[1].size);
  WEFT_TRY(codes, add_encode(both, x, {dims[0].index}, dims[1].size, of));
  WEFT_TRY_STATUS(add_decode(both, codes, both.type(x), type.dtype, dims[1].size, of));
  return SentAsCodes{static_cast<double>(type.bytes() - *bytes), cost::plan_seconds(both, *coded.device)};
}

// Activations passed from part to part. A value that is read two parts later is passed on by both.
Status add_sent(const LocalParts& local, const CodedParts& coded, PartCosts& costs) {
  const Graph& graph = local.graph;
  std::vector<std::size_t> last(graph.value_count(), 0);
  for (std::size_t n = 0; n < graph.node_count(); ++n)
    if (local.pass[n] == Pass::forward)
      for (const ValueId value : graph.node(NodeId(n)).inputs)
        last[value.value] = std::max(last[value.value], local.part[n]);
  for (std::size_t n = 0; n < graph.node_count(); ++n) {
    const NodeView node = graph.view(NodeId(n));
    if (node.input_count() == 0 || local.pass[n] != Pass::forward) continue;
    for (std::size_t k = 0; k < node.result_count(); ++k) {
      if (local.part[n] >= last[node.result(k).value]) continue;
      WEFT_TRY(codes, as_codes(graph, node.result(k), coded));
      const std::vector<bool>& alike = local.alike[node.result(k).value];
      for (std::size_t p = local.part[n]; p < last[node.result(k).value]; ++p) {
        const auto bytes = static_cast<double>(node.result_type(k).bytes());
        costs[p].sent += bytes;
        costs[p].alike.resize(std::max(costs[p].alike.size(), alike.size()));
        for (std::size_t axis = 0; axis < alike.size(); ++axis)
          if (alike[axis]) costs[p].alike[axis] += bytes;
        costs[p].spared += codes.spared;
        costs[p].coding += codes.seconds;
      }
    }
  }
  return {};
}

// Parameters and optimizer states are stored with every part that reads them, tied ones with
// several.
void add_persistent(const LocalParts& local, bool accumulates, PartCosts& costs) {
  const Graph& graph = local.graph;
  std::vector<std::set<std::size_t>> readers(graph.node_count());
  for (std::size_t n = 0; n < graph.node_count(); ++n)
    for (const ValueId value : graph.node(NodeId(n)).inputs) {
      const std::size_t source = graph.value(value).producer.value;
      if (graph.node(NodeId(source)).op == &ops::parameter() && local.pass[n] == Pass::forward)
        readers[source].insert(local.part[n]);
    }
  std::vector<bool> counted(graph.node_count());
  for (std::size_t n = 0; n < graph.node_count(); ++n) {
    const NodeView node = graph.view(NodeId(n));
    if (&node.op() == &ops::parameter()) {
      if (readers[n].empty()) readers[n].insert(local.part[n]);
      const auto bytes = static_cast<double>(node.result_type(0).bytes());
      const double single = static_cast<double>(node.result_type(0).elements()) * sizeof(float);
      for (const std::size_t part : readers[n]) {
        costs[part].parameters += bytes;
        costs[part].gradients += accumulates ? std::max(single, bytes) : bytes;
        if (readers[n].size() > 1)
          costs[part].tied.push_back(
              {static_cast<std::uint32_t>(n), accumulates ? std::max(single, bytes) : bytes, bytes});
      }
    }
    std::set<std::size_t> parts;
    for (const ValueId value : node.node().inputs)
      parts.merge(std::set<std::size_t>(readers[graph.value(value).producer.value]));
    if (parts.empty()) parts.insert(local.part[n]);
    for (const ValueId value : node.node().inputs) {
      const NodeId source = graph.value(value).producer;
      if (graph.node(source).op != &ops::state() || counted[source.value]) continue;
      counted[source.value] = true;
      for (const std::size_t part : parts)
        costs[part].optimizer += static_cast<double>(graph.type(value).bytes());
    }
  }
}

double moved_by(std::span<const program::Place> places) {
  double bytes = 0;
  for (const program::Place& place : places) {
    const program::Extent all = extent(place);
    bytes += static_cast<double>(all.end - all.begin);
  }
  return bytes;
}

// Share of a unit's time per part. One launch may update tensors of several parts; the time is
// divided by the bytes that each part's tensors move.
std::map<std::size_t, double> shares_of_parts(const LocalParts& local, const Half& half,
                                              const program::Unit& unit, std::size_t node) {
  const auto* const updates = std::get_if<program::Updates>(&unit.kernel);
  if (updates == nullptr) return {{local.part[node], 1}};
  std::map<std::size_t, double> bytes;
  double all = 0;
  for (const program::OperatorCall& call : updates->calls) {
    const std::size_t origin = half.origin[call.node.value];
    const double moved = moved_by(call.operands) + moved_by(call.results);
    bytes[local.part[origin == kNoNode ? node : origin]] += moved;
    all += moved;
  }
  for (auto& [part, share] : bytes) share = all > 0 ? share / all : 1 / static_cast<double>(bytes.size());
  return bytes;
}

// Sums and updates of many parameters overlap in any order, so busy time is added up per stream.
void add_update(const LocalParts& local, const Half& half, PartCosts& costs) {
  const program::Program& program = *half.program;
  const std::vector<std::size_t> nodes = nodes_of_units(half);
  for (std::size_t t = 0; t < program.tasks.size(); ++t) {
    const std::uint32_t unit = program.tasks[t].unit;
    if (nodes[unit] == kNoNode) continue;
    const double seconds = half.timeline.tasks[t].end - half.timeline.tasks[t].begin;
    const auto* const exchange = std::get_if<program::Exchange>(&program.units[unit].kernel);
    const bool gathers = exchange != nullptr && exchange->kind == program::Exchange::Kind::all_gather;
    for (const auto& [part, share] : shares_of_parts(local, half, program.units[unit], nodes[unit])) {
      (program.units[unit].stream == 0 ? costs[part].update : costs[part].reducing) += share * seconds;
      if (gathers) costs[part].gathering += share * seconds;
    }
  }
}

// "12" of "mlp.12"; empty if the part is in no REPEAT.
std::string_view iteration_number(std::string_view layer_name) {
  return layer_name.substr(std::min(layer_name.rfind('.'), layer_name.size() - 1) + 1);
}

// A layer is a run of parts of one iteration: attention.3 and mlp.3 are one layer. Its parts share its time on
// the host equally.
void add_layers(const std::vector<std::string>& layer_names, PartCosts& costs) {
  for (std::size_t first = 0, end = 0; first < costs.size(); first = end) {
    const auto is_same = [&](std::size_t p) {
      return layer_names[p].empty() == layer_names[first].empty() &&
             (layer_names[p].empty() ||
              iteration_number(layer_names[p]) == iteration_number(layer_names[first]));
    };
    for (end = first; end < costs.size() && is_same(end);) ++end;
    for (std::size_t p = first; p < end && !layer_names[first].empty(); ++p)
      costs[p].layers = 1 / static_cast<double>(end - first);
  }
}

std::string part_name(const Graph& graph, const train::Part& part) {
  if (part.entries.empty()) return "-";
  return graph.path(part.entries.front().scope, part.entries.front().label);
}

}  // namespace

namespace {

std::optional<Graph> with_copies(const Graph& plan, const train::Recompute& again) {
  if (again.is_nothing()) return std::nullopt;
  Result<train::Recomputed> made = train::recompute(plan, again);
  if (!made.ok()) return std::nullopt;  // a name that is not in the plan: nothing to recompute
  return std::move(made->graph);
}

// "block.3": the REPEAT iteration of a scope; empty if it is in none.
std::string layer_name(const Graph& graph, plan::ScopeId scope) {
  const plan::ScopeId layer = train::iteration_of(graph, scope);
  return layer.valid() ? graph.path(layer, {}) : std::string();
}

// The same recomputation in all layers, if the names are layers of a plan with more than `few`.
std::optional<train::Recompute> in_all_layers(const Graph& plan, const train::Recompute& again,
                                              std::int64_t few) {
  if (again.names.empty() || again.layers || repeated_layers(plan) <= few) return std::nullopt;
  std::set<std::string> layers;
  for (std::size_t s = 0; s < plan.scope_count(); ++s) layers.insert(layer_name(plan, plan::ScopeId(s)));
  for (const std::string& name : again.names)
    if (!layers.contains(name)) return std::nullopt;
  return train::Recompute{.layers = true, .selective = again.selective, .names = {}};
}

}  // namespace

PartEstimator::PartEstimator(const plan::Graph& whole, const train::Recompute& again)
    : in_all_layers_(in_all_layers(whole, again, kFolded)),
      again_(with_copies(whole, in_all_layers_.value_or(again))),
      plan_(again_ ? *again_ : whole) {
  const plan::Graph& plan = plan_;
  const train::Chain chain = train::chain_of(plan, train::Skips::allowed);
  for (const train::Part& part : chain.parts) {
    names_.push_back(part_name(plan, part));
    layer_names_.push_back(part.entries.empty() ? std::string()
                                                : layer_name(plan, part.entries.front().scope));
  }
  if (in_all_layers_) {
    others_ = std::make_unique<PartEstimator>(
        whole, train::Recompute{.layers = false, .selective = again.selective, .names = {}});
    for (const std::string& layer : layer_names_)
      repeats_.push_back(std::ranges::find(again.names, layer) != again.names.end());
  }
  for (std::size_t p = 0; p < chain.parts.size(); ++p) place_.push_back(p);
  train::Chain looked = chain;
  const auto longest = std::ranges::max_element(chain.stretches, {}, &train::Stretch::times);
  const std::int64_t alike = repeated_layers(plan);
  if (chain.why_not.empty() && longest != chain.stretches.end() && alike > kFolded &&
      static_cast<std::int64_t>(longest->times) == alike) {
    folded_ = fold(plan, kFolded);
    if (folded_) looked = train::chain_of(*folded_, train::Skips::allowed);
    const std::size_t less = longest->length * static_cast<std::size_t>(alike - kFolded);
    if (folded_ && looked.parts.size() + less == chain.parts.size()) {
      layers_ = alike;
      // The first and last layers are kept; the middle one stands for those between.
      const std::size_t middle = longest->first + 2 * longest->length, after = middle + longest->length;
      for (std::size_t p = middle; p < place_.size(); ++p)
        place_[p] = p >= after + less ? p - less : middle + (p - middle) % longest->length;
    } else {
      folded_.reset();
      looked = chain;
    }
  }
  looked_parts_ = looked.parts.size();
  for (std::size_t p = 0; p < looked.parts.size(); ++p)
    for (const train::Entry& entry : looked.parts[p].entries)
      part_of_entry_.emplace(looked_at().path(entry.scope, entry.label), p);
}

PartCosts PartEstimator::unfolded(const PartCosts& costs) const {
  PartCosts all;
  std::vector<std::size_t> times(costs.size());
  for (const std::size_t place : place_) ++times[place];
  for (const std::size_t place : place_) {
    all.push_back(costs[place]);
    if (times[place] > 1) all.back().tied.clear();  // each layer has its own parameters
  }
  return all;
}

Result<PartCosts> PartEstimator::micro_batch(const Distribution& within, const Machine& machine,
                                             const CodedParts& coded) const {
  WEFT_TRY(local, local_parts(looked_at(), within, machine, part_of_entry_, coded));
  WEFT_TRY(half, run_half(local, /*late=*/false, within, machine));
  PartCosts costs(looked_parts_);
  add_seconds(local, half, costs);
  add_memory(local, half, costs);
  WEFT_TRY_STATUS(add_sent(local, coded, costs));
  costs = unfolded(costs);
  add_layers(layer_names_, costs);
  if (others_ == nullptr) return costs;
  WEFT_TRY(other, others_->micro_batch(within, machine, coded));
  WEFT_CHECK(other.size() == costs.size());
  for (std::size_t p = 0; p < costs.size(); ++p)
    if (!repeats_[p]) costs[p] = std::move(other[p]);
  return costs;
}

Result<PartCosts> PartEstimator::end_of_step(const Distribution& within, const Machine& machine,
                                             bool accumulates, const CodedParts& coded) const {
  WEFT_TRY(local, local_parts(looked_at(), within, machine, part_of_entry_, coded));
  WEFT_TRY(half, run_half(local, /*late=*/true, within, machine));
  PartCosts costs(looked_parts_);
  add_update(local, half, costs);
  add_persistent(local, accumulates, costs);
  add_largest(local, costs);
  return unfolded(costs);
}

}  // namespace weft::search
