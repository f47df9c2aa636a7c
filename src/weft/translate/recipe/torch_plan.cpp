// Derives mesh dims, tensor-parallel styles and stages from a distributed plan.
#include "weft/translate/recipe/torch_plan.h"

#include <algorithm>
#include <optional>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "weft/parallel/pipeline/pipelined_plan.h"
#include "weft/parallel/pipeline/torch_csv.h"
#include "weft/plan/ops/moves.h"
#include "weft/plan/ops/routing.h"
#include "weft/plan/ops/sources.h"
#include "weft/plan/ops/sums.h"
#include "weft/planner/search/distribution/fold.h"
#include "weft/translate/recipe/spread.h"

namespace weft::recipe {
namespace {

using distribute::AxisUse;
using plan::NodeId;
using plan::NodeView;

enum class Dim : std::uint8_t { stage, replicate, shard, context, tensor };
constexpr std::string_view kDimNames[] = {"pp", "dp_replicate", "dp_shard", "cp", "tp"};

bool has_any(const std::vector<std::string>& list, const std::vector<std::string>& others) {
  return std::ranges::any_of(list,
                             [&](const std::string& one) { return std::ranges::count(others, one) > 0; });
}

Dim dim_of(const AxisUse& use, const distribute::IndexRoles& roles) {
  if (use.stage) return Dim::stage;
  const auto is_first_of = [&](const std::vector<std::string>& list) {
    return !use.slice.empty() && std::ranges::count(list, use.slice.front()) > 0;
  };
  if (use.slice.empty() || is_first_of(roles.batch))
    return use.shard == distribute::Shard::nothing ? Dim::replicate : Dim::shard;
  return is_first_of(roles.sequence) ? Dim::context : Dim::tensor;
}

// A parameter of the model.
struct Tensor {
  std::string name;                   // "*.wq" in a repeated layer
  std::int64_t layer = -1;            // of those
  std::optional<std::string> sliced;  // the index that tensor-parallel ranks slice
  std::size_t dims = 0;
};

// "block.3.wq" of layer 3: "*.wq".
std::string name_in_layer(std::string_view name, std::int64_t layer) {
  const std::string number = fmt::format(".{}.", layer);
  const std::size_t at = name.find(number);
  return at == std::string_view::npos ? std::string(name)
                                      : fmt::format("*.{}", name.substr(at + number.size()));
}

class Reader {
 public:
  Reader(const plan::Graph& model, const distribute::DistributedPlan& plan,
         const distribute::Distribution& distribution)
      : model_(model), plan_(plan), distribution_(distribution), roles_(distribute::index_roles(model)) {}

  Result<TorchPlan> read(Precision precision) {
    made_.model = model_.name;
    made_.distribution = print(distribution_);
    made_.precision = precision;
    read_mesh();
    read_memory();
    read_tensors();
    WEFT_TRY_STATUS(read_stages());
    return std::move(made_);
  }

 private:
  void lose(std::string what) {
    if (std::ranges::find(made_.lost, what) == made_.lost.end()) made_.lost.push_back(std::move(what));
  }

  void read_mesh() {
    std::vector<std::pair<Dim, std::int64_t>> dims;
    for (std::size_t a = 0; a < distribution_.axes.size(); ++a) {
      const AxisUse& use = distribution_.axes[a];
      const std::int64_t ranks = distribution_.mesh.axes[a].ranks;
      const Dim dim = dim_of(use, roles_);
      kinds_.push_back(dim);
      const std::string axis = fmt::format("{}={}", distribution_.mesh.axes[a].name, ranks);
      if (!use.in_stages.empty()) lose(fmt::format("{}: separate meshes for some stages", axis));
      if (!use.takes.empty()) lose(fmt::format("{}: unequal numbers of micro-batches", axis));
      if (use.ring || dim == Dim::context)
        lose(fmt::format("{}: context parallelism; the script enters context_parallel()", axis));
      if (dim == Dim::tensor && use.shard != distribute::Shard::nothing)
        lose(fmt::format("{}: shards what tensor parallelism replicates", axis));
      if (dim == Dim::tensor && has_any(use.slice, roles_.expert))
        lose(fmt::format("{}: expert parallelism", axis));
      if (use.shard == distribute::Shard::optimizer)
        lose("ZeRO-1: parameters are sharded too, and gathered once per step");
      if (use.shard != distribute::Shard::parameters && dim == Dim::shard)
        made_.reshard_after_forward = false;
      if (dim == Dim::tensor)
        made_.sequence_parallel = made_.sequence_parallel || has_any(use.slice, roles_.sequence);
      const auto known = std::ranges::find(dims, dim, &std::pair<Dim, std::int64_t>::first);
      if (known == dims.end()) {
        dims.emplace_back(dim, ranks);
      } else {
        if (known != dims.end() - 1) lose(fmt::format("the order of axes in {}", print(distribution_.mesh)));
        known->second *= ranks;
      }
    }
    // fully_shard takes the replicas first. Replicas alone are shards of one rank.
    const auto find = [&](Dim dim) {
      return std::ranges::find(dims, dim, &std::pair<Dim, std::int64_t>::first);
    };
    if (find(Dim::replicate) != dims.end()) {
      if (const auto shard = find(Dim::shard); shard == dims.end()) {
        dims.insert(find(Dim::replicate) + 1, {Dim::shard, 1});
      } else if (shard < find(Dim::replicate)) {
        std::iter_swap(shard, find(Dim::replicate));
        lose(fmt::format("the order of axes in {}", print(distribution_.mesh)));
      }
    }
    for (const auto& [dim, ranks] : dims)
      made_.mesh.emplace_back(kDimNames[static_cast<std::size_t>(dim)], ranks);
  }

  void read_memory() {
    Recipe like;
    const GatheredRecipe gathered = gather(distribution_, roles_, like);
    made_.recompute = gathered.recipe.recompute;
    for (const std::string& lost : gathered.lost)
      if (lost.find("recompute") != std::string::npos) lose(lost);
    if (distribution_.offload) lose("optimizer states in host memory");
    if (!distribution_.exceptions.empty())
      lose(fmt::format("{} tensors with another sharding, such as {}", distribution_.exceptions.size(),
                       distribution_.exceptions.front().tensor));
    const bool shards =
        std::ranges::any_of(made_.mesh, [](const auto& dim) { return dim.first == "dp_shard"; });
    if (!shards && made_.precision != Precision::f32)
      lose(fmt::format("{}: train under torch.autocast", name(made_.precision)));
    if (shards && made_.precision == Precision::f16) lose("f16: needs a gradient scaler");
  }

  // The index along which tensor-parallel ranks slice a source of the distributed plan.
  std::optional<std::string> sliced_by_tensor(plan::ValueId value) {
    std::optional<std::string> found;
    const plan::Layout& layout = plan_.layouts[value.value];
    for (std::size_t a = 0; a < plan_.mesh.axes.size(); ++a) {
      const int whole = distribution_.mesh.find(plan_.mesh.axes[a].name);
      if (whole < 0 || kinds_[static_cast<std::size_t>(whole)] != Dim::tensor || !layout.axes[a].is_sliced())
        continue;
      found = std::string(plan_.graph.text(layout.axes[a].index));
    }
    return found;
  }

  void read_tensors() {
    const std::vector<std::int64_t> of_nodes = search::layers_of_nodes(model_);
    made_.layers = of_nodes.empty() ? 0 : std::ranges::max(of_nodes) + 1;
    std::map<std::string, std::optional<std::string>, std::less<>> slices;
    for (std::size_t n = 0; n < plan_.graph.node_count(); ++n) {
      const NodeView node = plan_.graph.view(NodeId(n));
      if (&node.op() == &ops::parameter()) slices.emplace(node.word(0), sliced_by_tensor(node.result(0)));
    }
    for (std::size_t n = 0; n < model_.node_count(); ++n) {
      const NodeView node = model_.view(NodeId(n));
      if (&node.op() != &ops::parameter()) continue;
      Tensor tensor{std::string(node.word(0)), layer_of(node, of_nodes), {}, node.result_type(0).dims.size()};
      if (const auto found = slices.find(tensor.name); found != slices.end()) tensor.sliced = found->second;
      if (tensor.layer >= 0) tensor.name = name_in_layer(tensor.name, tensor.layer);
      nodes_.emplace_back(NodeId(n), std::move(tensor));
    }
    std::map<std::string, std::string> styles;
    std::vector<std::string> order;
    for (const auto& [node, tensor] : nodes_) {
      const std::string style = style_of(node, tensor);
      if (const auto [known, is_new] = styles.emplace(tensor.name, style); is_new)
        order.push_back(tensor.name);
      else if (known->second != style)
        lose(fmt::format("{}: sliced differently in some layers", tensor.name));
    }
    // Column-wise slices need a row-wise one behind them; without it their outputs are gathered.
    const auto has_rows = [&](bool inside) {
      return std::ranges::any_of(styles, [&](const auto& one) {
        return one.first.starts_with("*.") == inside && one.second == "rowwise";
      });
    };
    for (const std::string& tensor : order) {
      std::string style = styles[tensor];
      if (style.empty()) continue;
      if (style == "colwise" && !has_rows(tensor.starts_with("*."))) style = "colwise, gathered";
      made_.tensors.emplace_back(tensor, style);
    }
  }

  // A parameter belongs to the layer that reads it first.
  std::int64_t layer_of(const NodeView& node, const std::vector<std::int64_t>& of_nodes) const {
    if (of_nodes.empty()) return -1;
    if (of_nodes[node.id().value] >= 0) return of_nodes[node.id().value];
    return -1;
  }

  // How tensor-parallel ranks slice the module that holds a tensor; empty: not at all. Biases follow
  // their weights.
  std::string style_of(NodeId node, const Tensor& tensor) {
    if (!tensor.sliced || tensor.dims < 2) return {};
    bool columns = false, rows = false, table_rows = false, table_columns = false;
    std::vector<plan::ValueId> values = {model_.result(node)};
    for (std::size_t n = node.value + 1; n < model_.node_count(); ++n) {
      const NodeView reader = model_.view(NodeId(n));
      if (reader.phase() != plan::Phase::forward) continue;
      for (std::size_t i = 0; i < reader.input_count(); ++i) {
        if (std::ranges::find(values, reader.input(i)) == values.end()) continue;
        if (&reader.op() == &ops::cast()) {
          values.push_back(reader.result(0));
        } else if (&reader.op() == &ops::gather()) {
          (reader.word(0) == *tensor.sliced ? table_rows : table_columns) = true;
        } else if (&reader.op() == &ops::contract()) {
          const auto& dims = reader.result_type(0).dims;
          const bool stays = std::ranges::any_of(
              dims, [&](const plan::Dim& dim) { return model_.text(dim.index) == *tensor.sliced; });
          (stays ? columns : rows) = true;
        }
      }
    }
    if (columns + rows + table_rows + table_columns > 1) {
      lose(fmt::format("{}: tied weights stay whole on tensor-parallel ranks", tensor.name));
      return {};
    }
    if (columns) return "colwise";
    if (rows) return "rowwise";
    if (table_rows) return "embedding rows";
    if (table_columns) return "embedding columns";
    lose(fmt::format("{}: sliced by {}, whole in this file", tensor.name, *tensor.sliced));
    return {};
  }

  Status read_stages() {
    made_.micro_batches = distribution_.micro_batches;
    if (!distribute::stage_axis(distribution_)) {
      if (made_.micro_batches > 1)
        lose(fmt::format("{} micro-batches: the script accumulates gradients", made_.micro_batches));
      return {};
    }
    WEFT_TRY(schedule, pipeline::schedule_of(distribution_));
    WEFT_TRY(csv, pipeline::print_torch_csv(schedule, pipeline::TorchFormat::compute_only));
    made_.schedule = std::move(csv);
    made_.route = schedule.route;
    WEFT_CHECK(plan_.time.has_value());
    const auto stages = static_cast<std::size_t>(schedule.positions());
    const std::vector<std::int64_t> of_nodes = search::layers_of_nodes(plan_.graph);
    // The positions of a layer's forward nodes, by how many there are.
    std::vector<std::map<std::int32_t, std::int64_t>> counts(static_cast<std::size_t>(made_.layers));
    for (std::size_t n = 0; n < of_nodes.size(); ++n) {
      const std::int32_t position = plan_.time->position[n];
      if (of_nodes[n] < 0 || position < 0 || plan_.graph.phase(NodeId(n)) != plan::Phase::forward) continue;
      ++counts[static_cast<std::size_t>(of_nodes[n])][position];
    }
    made_.stage_layers.assign(stages, 0);
    bool is_between_layers = true;
    for (const auto& count : counts) {
      if (count.empty()) continue;
      const auto most = std::ranges::max_element(count, {}, [](const auto& one) { return one.second; });
      ++made_.stage_layers[static_cast<std::size_t>(most->first)];
      if (count.size() > 1) is_between_layers = false;
    }
    if (!is_between_layers)
      made_.stages_lost.emplace_back("stage boundaries within layers: moved to the nearest layer");
    if (std::ranges::count(made_.stage_layers, 0) > 0)
      return user_error(fmt::format("expected a repeated layer in each of {} stages, found {} layers", stages,
                                    made_.layers),
                        "use fewer stages");
    for (std::size_t n = 0; n < plan_.graph.node_count(); ++n) {
      const NodeView node = plan_.graph.view(NodeId(n));
      if (&node.op() != &ops::parameter() || of_nodes[n] >= 0) continue;
      const std::set<std::int32_t> readers = positions_of_readers(node.result(0));
      if (readers.empty()) continue;
      std::string tensor(node.word(0));
      std::ranges::replace(tensor, '.', '_');
      if (readers.size() > 1)
        made_.stages_lost.push_back(
            fmt::format("{}: read by stages {}, but tied weights cannot be on two stages", tensor,
                        fmt::join(readers, " and ")));
      made_.stage_of.emplace_back(std::move(tensor), *readers.begin());
    }
    return {};
  }

  // A parameter's own node is at no position: it is held wherever it is read, perhaps after a gather.
  std::set<std::int32_t> positions_of_readers(plan::ValueId value) const {
    std::set<std::int32_t> found;
    std::vector<plan::ValueId> values = {value};
    for (std::size_t n = 0; n < plan_.graph.node_count(); ++n) {
      const NodeView reader = plan_.graph.view(NodeId(n));
      if (reader.phase() != plan::Phase::forward) continue;
      for (std::size_t i = 0; i < reader.input_count(); ++i) {
        if (std::ranges::find(values, reader.input(i)) == values.end()) continue;
        if (const std::int32_t position = plan_.time->position[n]; position >= 0)
          found.insert(position);
        else if (reader.result_count() == 1)
          values.push_back(reader.result(0));
      }
    }
    return found;
  }

  const plan::Graph& model_;
  const distribute::DistributedPlan& plan_;
  const distribute::Distribution& distribution_;
  distribute::IndexRoles roles_;
  std::vector<Dim> kinds_;  // by axis of the whole mesh
  std::vector<std::pair<NodeId, Tensor>> nodes_;
  TorchPlan made_;
};

}  // namespace

Result<TorchPlan> torch_plan(const plan::Graph& model, const distribute::DistributedPlan& plan,
                             const distribute::Distribution& distribution, Precision precision) {
  return Reader(model, plan, distribution).read(precision);
}

}  // namespace weft::recipe
