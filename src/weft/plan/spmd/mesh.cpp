#include "weft/plan/spmd/mesh.h"

#include <algorithm>
#include <type_traits>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "weft/plan/graph/verify.h"
#include "weft/plan/ops/communication.h"
#include "weft/plan/ops/exchange.h"
#include "weft/plan/ops/exchanges.h"
#include "weft/plan/ops/local_exchange.h"
#include "weft/plan/ops/sources.h"
#include "weft/plan/ops/uses.h"
#include "weft/plan/spmd/layouts.h"
#include "weft/plan/spmd/localize.h"

namespace weft::spmd {
namespace {

using plan::NodeView;
using plan::ValueId;

std::vector<std::int64_t> local_sizes(const plan::Type& type, const plan::Layout& layout,
                                      const plan::Mesh& mesh, std::int32_t rank) {
  std::vector<std::int64_t> sizes;
  for (const plan::Share& share : plan::shares_of(type, layout, mesh, rank)) sizes.push_back(share.size);
  return sizes;
}

template <class T>
ops::Tensor<T> filled(std::vector<std::int64_t> sizes, T value) {
  std::int64_t elements = 1;
  for (const std::int64_t size : sizes) elements *= size;
  return {std::move(sizes), std::vector<T>(static_cast<std::size_t>(elements), value)};
}

// The neutral element for a rank with nothing to combine.
template <class T>
T neutral(const plan::Layout& layout, const ops::Numbers<T>& numbers) {
  for (const plan::AxisLayout& axis : layout.axes) {
    if (axis == plan::AxisLayout::partial(plan::Monoid::max)) return numbers.least();
    if (axis == plan::AxisLayout::partial(plan::Monoid::min)) return numbers.greatest();
  }
  return numbers.from(0);
}

template <class T>
class MeshRun {
 public:
  MeshRun(const plan::Graph& graph, const plan::Mesh& mesh, const MeshPlan& plan,
          const ops::Numbers<T>& numbers)
      : graph_(graph),
        mesh_(mesh),
        layouts_(plan.layouts),
        locals_(plan.ranks),
        numbers_(numbers),
        ranks_(static_cast<std::size_t>(mesh.ranks())),
        computed_(graph.value_count()),
        held_(graph.value_count()) {}

  Result<std::vector<MeshTensor<T>>> run(const MeshSources<T>& sources, std::int64_t max_elements) {
    const std::vector<std::size_t> last = ops::last_uses(graph_);
    for (std::size_t n = 0; n < graph_.node_count(); ++n) {
      const NodeView node = graph_.view(plan::NodeId(n));
      if (!ops::is_needed(node, last)) continue;
      WEFT_TRY_STATUS(check_elements(node, max_elements));
      if (ops::is_source(node.op())) {
        WEFT_TRY_STATUS(find_source(node, sources));
        continue;
      }
      for (std::size_t k = 0; k < node.result_count(); ++k) computed_[node.result(k).value].resize(ranks_);
      if (const ops::Communication* op = ops::find_communication(node.op()); op != nullptr)
        for (std::size_t k = 0; k < node.result_count(); ++k) communicate(node, *op, k);
      else
        compute(node);
      for (std::size_t k = 0; k < node.result_count(); ++k)
        hold(node.result(k), computed_[node.result(k).value]);
      for (const ValueId input : node.node().inputs)
        if (last[input.value] == n + 1) computed_[input.value] = {};
    }
    std::vector<MeshTensor<T>> outputs;
    for (const plan::Output& output : graph_.outputs()) {
      MeshTensor<T>& tensor = outputs.emplace_back(MeshTensor<T>{layouts_[output.value.value], {}});
      for (const ops::Tensor<T>* share : held_[output.value.value]) tensor.ranks.push_back(*share);
    }
    return outputs;
  }

 private:
  void hold(ValueId value, const std::vector<ops::Tensor<T>>& tensors) {
    held_[value.value].clear();
    for (const ops::Tensor<T>& tensor : tensors) held_[value.value].push_back(&tensor);
  }

  Status check_elements(const NodeView& node, std::int64_t most) const {
    for (std::size_t k = 0; k < node.result_count(); ++k) {
      const std::int64_t elements = node.result_type(k).elements();
      if (elements > most / static_cast<std::int64_t>(ranks_))
        return user_error(
            fmt::format("{} is too large to interpret on {} ranks: {} elements each, the limit is {}",
                        describe(graph_, node.id()), ranks_, elements, most));
    }
    return {};
  }

  Status find_source(const NodeView& node, const MeshSources<T>& sources) {
    const std::string_view name = node.word(0);
    const ValueId value = node.result(0);
    const MeshTensor<T>* tensor = sources(name);
    if (tensor == nullptr) return user_error(fmt::format("no value given for {} {}", node.op().name(), name));
    const plan::Layout& layout = layouts_[value.value];
    if (tensor->layout != layout || tensor->ranks.size() != ranks_)
      return user_error(fmt::format("{} {} must be given {}, one tensor for each of {} ranks",
                                    node.op().name(), name, print(layout, mesh_, graph_.symbols()), ranks_));
    for (std::size_t rank = 0; rank < ranks_; ++rank) {
      const ops::Tensor<T>& given = tensor->ranks[rank];
      const auto sizes = local_sizes(node.result_type(0), layout, mesh_, static_cast<std::int32_t>(rank));
      std::int64_t elements = 1;
      for (const std::int64_t size : sizes) elements *= size;
      if (given.sizes != sizes || given.elements() != elements)
        return user_error(fmt::format("{} {} has sizes [{}] on rank {} but the plan expects [{}]",
                                      node.op().name(), name, fmt::join(given.sizes, ", "), rank,
                                      fmt::join(sizes, ", ")));
    }
    hold(value, tensor->ranks);
    return {};
  }

  // Exchanges operand k of the node and stores result k.
  void communicate(const NodeView& node, const ops::Communication& op, std::size_t k) {
    const auto axis = static_cast<std::size_t>(mesh_.find(op.axis(node)));
    const ops::Exchange what = op.exchange(node);
    for (std::size_t rank = 0; rank < ranks_; ++rank) {
      if (mesh_.coordinate(static_cast<std::int32_t>(rank), axis) != 0) continue;  // once per group
      const std::vector<std::int32_t> members = mesh_.group(static_cast<std::int32_t>(rank), axis);
      std::vector<const ops::Tensor<T>*> group;
      for (const std::int32_t member : members) group.push_back(held_[node.input(k).value][member]);
      std::vector<ops::Tensor<T>> results = exchange<T>(what, node.input_type(k), group, numbers_);
      for (std::size_t i = 0; i < members.size(); ++i) {
        if constexpr (std::is_same_v<T, ops::Rounded>)
          for (T& element : results[i].data) element = numbers_.stored(element, node.result_type(k).dtype);
        computed_[node.result(k).value][members[i]] = std::move(results[i]);
      }
    }
  }

  // A rank's progress within one global node: its local values so far, and the range of local nodes
  // left.
  struct Making {
    std::vector<std::pair<ValueId, ops::Tensor<T>>> made;
    std::size_t at = 0, end = 0;
  };

  // Runs the ranks' local nodes for this one: the node itself, padding and slicing, and in ring
  // attention the exchanges, at which ranks wait for one another.
  void compute(const NodeView& node) {
    std::vector<Making> making(ranks_);
    for (std::size_t rank = 0; rank < ranks_; ++rank) {
      making[rank].at = node.id().value == 0 ? 0 : locals_[rank].ends[node.id().value - 1];
      making[rank].end = locals_[rank].ends[node.id().value];
    }
    for (bool passes = true; passes;) {
      passes = false;
      for (std::size_t rank = 0; rank < ranks_; ++rank)
        passes |= compute_until_exchange(node, rank, making[rank]);
      if (passes) pass_on(node, making);
    }
    for (std::size_t rank = 0; rank < ranks_; ++rank) keep(node, rank, making[rank].made);
  }

  const ops::Tensor<T>* find(const NodeView& node, std::size_t rank, const Making& making,
                             ValueId value) const {
    for (const auto& [id, tensor] : making.made)
      if (id == value) return &tensor;
    for (const ValueId input : node.node().inputs)
      if (locals_[rank].values[input.value] == value) return held_[input.value][rank];
    return nullptr;
  }

  // True if an exchange comes next.
  bool compute_until_exchange(const NodeView& node, std::size_t rank, Making& making) {
    for (; making.at < making.end; ++making.at) {
      const NodeView part = locals_[rank].graph.view(plan::NodeId(making.at));
      if (&part.op() == &ops::local_exchange()) return true;
      if (ops::is_source(part.op())) continue;  // a result to which this rank contributes nothing
      std::vector<const ops::Tensor<T>*> inputs;
      for (const ValueId input : part.node().inputs) inputs.push_back(find(node, rank, making, input));
      std::vector<ops::Tensor<T>> results = evaluate<T>(part, inputs, numbers_);
      for (std::size_t k = 0; k < results.size(); ++k)
        making.made.emplace_back(part.result(k), std::move(results[k]));
    }
    return false;
  }

  void pass_on(const NodeView& node, std::vector<Making>& making) {
    for (std::size_t rank = 0; rank < ranks_; ++rank) {
      const NodeView first = locals_[rank].graph.view(plan::NodeId(making[rank].at));
      const ops::LocalExchange what = ops::read_local_exchange(first);
      WEFT_CHECK(what.kind == ops::ExchangeKind::permute_ranks,
                 "only permute-ranks exchanges may occur within a node");
      const auto axis = static_cast<std::size_t>(mesh_.find(what.axis));
      if (mesh_.coordinate(static_cast<std::int32_t>(rank), axis) != 0) continue;  // once per group
      const std::vector<std::int32_t> members = mesh_.group(static_cast<std::int32_t>(rank), axis);
      std::vector<const ops::Tensor<T>*> group;
      for (const std::int32_t member : members) {
        const NodeView there = locals_[member].graph.view(plan::NodeId(making[member].at));
        if (there.input_count() == 1) group.push_back(find(node, member, making[member], there.input(0)));
      }
      if (group.empty()) continue;
      std::vector<ops::Tensor<T>> taken = exchange<T>({.take = ops::Exchange::Take::shifted, .rank = what.by},
                                                      first.result_type(0), group, numbers_);
      for (std::size_t i = 0; i < members.size(); ++i) {
        const NodeView there = locals_[members[i]].graph.view(plan::NodeId(making[members[i]].at));
        making[members[i]].made.emplace_back(there.result(0), std::move(taken[i]));
      }
    }
    for (Making& rank : making) ++rank.at;
  }

  void keep(const NodeView& node, std::size_t rank, std::vector<std::pair<ValueId, ops::Tensor<T>>>& made) {
    for (std::size_t k = 0; k < node.result_count(); ++k) {
      const ValueId result = node.result(k);
      ops::Tensor<T>& to = computed_[result.value][rank];
      const auto found = std::ranges::find(made, locals_[rank].values[result.value],
                                           &std::pair<ValueId, ops::Tensor<T>>::first);
      if (found != made.end())
        to = std::move(found->second);
      else
        to = filled(
            local_sizes(node.result_type(k), layouts_[result.value], mesh_, static_cast<std::int32_t>(rank)),
            neutral(layouts_[result.value], numbers_));
    }
  }

  const plan::Graph& graph_;
  const plan::Mesh& mesh_;
  const std::vector<plan::Layout>& layouts_;
  const std::vector<LocalPlan>& locals_;
  const ops::Numbers<T>& numbers_;
  std::size_t ranks_;
  std::vector<std::vector<ops::Tensor<T>>> computed_;     // by value, then rank
  std::vector<std::vector<const ops::Tensor<T>*>> held_;  // likewise: computed, or supplied by the caller
};

}  // namespace

Result<MeshPlan> plan_of_ranks(const plan::Graph& graph, const plan::Mesh& mesh) {
  MeshPlan plan;
  WEFT_TRY(layouts, infer_layouts(graph, mesh));
  plan.layouts = std::move(layouts);
  if (mesh.ranks() > kMaxVirtualRanks)
    return user_error(
        fmt::format("a virtual mesh has at most {} ranks, found {}", kMaxVirtualRanks, mesh.ranks()));
  for (std::int32_t rank = 0; rank < mesh.ranks(); ++rank) {
    WEFT_TRY(local, localize(graph, mesh, plan.layouts, rank));
    plan.ranks.push_back(std::move(local));
  }
  return plan;
}

template <class T>
Result<std::vector<MeshTensor<T>>> interpret_on_mesh(const plan::Graph& graph, const plan::Mesh& mesh,
                                                     const MeshPlan& ranks, const MeshSources<T>& sources,
                                                     const ops::Numbers<T>& numbers,
                                                     std::int64_t max_elements) {
  return MeshRun<T>(graph, mesh, ranks, numbers).run(sources, max_elements);
}

template <class T>
Result<std::vector<MeshTensor<T>>> interpret_on_mesh(const plan::Graph& graph, const plan::Mesh& mesh,
                                                     const MeshSources<T>& sources,
                                                     const ops::Numbers<T>& numbers,
                                                     std::int64_t max_elements) {
  WEFT_TRY(ranks, plan_of_ranks(graph, mesh));
  return interpret_on_mesh<T>(graph, mesh, ranks, sources, numbers, max_elements);
}

#define WEFT_INTERPRET_ON_MESH(T)                                                                       \
  template Result<std::vector<MeshTensor<T>>> interpret_on_mesh(const plan::Graph&, const plan::Mesh&,  \
                                                                const MeshPlan&, const MeshSources<T>&, \
                                                                const ops::Numbers<T>&, std::int64_t);  \
  template Result<std::vector<MeshTensor<T>>> interpret_on_mesh(                                        \
      const plan::Graph&, const plan::Mesh&, const MeshSources<T>&, const ops::Numbers<T>&, std::int64_t);
WEFT_INTERPRET_ON_MESH(float)
WEFT_INTERPRET_ON_MESH(double)
WEFT_INTERPRET_ON_MESH(ops::Field)
WEFT_INTERPRET_ON_MESH(ops::Rounded)
#undef WEFT_INTERPRET_ON_MESH

}  // namespace weft::spmd
