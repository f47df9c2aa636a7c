#include "weft/parallel/pipeline/interpret_ranks.h"

#include <algorithm>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <tuple>

#include <fmt/format.h>

#include "weft/plan/graph/verify.h"
#include "weft/plan/ops/exchange.h"
#include "weft/plan/ops/interpret.h"
#include "weft/plan/ops/local_exchange.h"
#include "weft/plan/ops/loops.h"
#include "weft/plan/ops/operators.h"

namespace weft::pipeline {
namespace {

using ops::Tensor;
using plan::ExchangeKind;
using plan::Graph;
using plan::NodeId;
using plan::NodeView;
using plan::ValueId;

ops::Exchange as_among_all(const ops::LocalExchange& what) {
  using Take = ops::Exchange::Take;
  ops::Exchange exchange{
      .take = Take::shifted, .monoid = what.monoid, .join = what.joins, .keep = what.parts};
  switch (what.kind) {
    case ExchangeKind::all_reduce:
    case ExchangeKind::reduce_scatter: exchange.take = Take::combined; break;
    case ExchangeKind::all_gather:
    case ExchangeKind::all_to_all: exchange.take = Take::joined; break;
    case ExchangeKind::broadcast_from: exchange.take = Take::root; break;
    default: break;
  }
  exchange.rank = what.by;
  return exchange;
}

template <class T>
class Ranks {
 public:
  Ranks(std::span<const Graph* const> ranks, const plan::Mesh& mesh, const RankSources<T>& sources,
        const ops::Numbers<T>& numbers, std::int64_t most)
      : graphs_(ranks), mesh_(mesh), sources_(sources), numbers_(numbers), most_(most), at_(ranks.size()) {
    for (const Graph* const graph : ranks) values_.emplace_back(graph->value_count());
  }

  Result<std::vector<std::vector<Tensor<T>>>> run() {
    for (bool moved = true; moved;) {
      moved = false;
      for (std::int32_t rank = 0; rank < mesh_.ranks(); ++rank)
        while (!is_done(rank)) {
          WEFT_TRY(went, step(rank));
          if (!went) break;
          moved = true;
        }
    }
    WEFT_TRY_STATUS(check_end());
    std::vector<std::vector<Tensor<T>>> outputs(graphs_.size());
    for (std::size_t rank = 0; rank < graphs_.size(); ++rank)
      for (const plan::Output& output : graphs_[rank]->outputs())
        outputs[rank].push_back(values_[rank][output.value.value]);
    return outputs;
  }

 private:
  const Graph& graph(std::int32_t rank) const { return *graphs_[static_cast<std::size_t>(rank)]; }
  std::size_t& at(std::int32_t rank) { return at_[static_cast<std::size_t>(rank)]; }
  NodeView node_of(std::int32_t rank) const {
    return graph(rank).view(NodeId(at_[static_cast<std::size_t>(rank)]));
  }
  Tensor<T>& value(std::int32_t rank, ValueId id) {
    return values_[static_cast<std::size_t>(rank)][id.value];
  }
  bool is_done(std::int32_t rank) const {
    return at_[static_cast<std::size_t>(rank)] == graph(rank).node_count();
  }
  std::string describe_place(std::int32_t rank) const {
    return fmt::format("rank {} at {}", rank, describe(graph(rank), node_of(rank).id()));
  }

  // Whether the rank made progress.
  Result<bool> step(std::int32_t rank) {
    const NodeView node = node_of(rank);
    for (std::size_t k = 0; k < node.result_count(); ++k)
      if (node.result_type(k).elements() > most_)
        return user_error(fmt::format("{} is too large to interpret", describe(graph(rank), node.id())));
    if (&node.op() == &ops::local_exchange()) {
      WEFT_TRY(went, exchange(rank, node));
      return went;
    }
    if (ops::is_source(node.op())) {
      const Tensor<T>* const given = sources_(rank, node.word(0));
      if (given == nullptr || given->sizes != ops::sizes_of(node.result_type(0).dims))
        return user_error(
            fmt::format("rank {} has no value for {}, or one of another size", rank, node.word(0)));
      value(rank, node.result(0)) = *given;
    } else {
      std::vector<const Tensor<T>*> inputs;
      for (const ValueId input : node.node().inputs) inputs.push_back(&value(rank, input));
      std::vector<Tensor<T>> results = ops::evaluate<T>(node, inputs, numbers_);
      for (std::size_t k = 0; k < results.size(); ++k) value(rank, node.result(k)) = std::move(results[k]);
    }
    ++at(rank);
    return true;
  }

  Result<bool> exchange(std::int32_t rank, const NodeView& node) {
    const ops::LocalExchange what = ops::read_local_exchange(node);
    const int axis = mesh_.find(what.axis);
    if (axis < 0) return user_error(fmt::format("{} uses an axis that does not exist", describe_place(rank)));
    const std::vector<std::int32_t> group = mesh_.group(rank, static_cast<std::size_t>(axis));
    if (plan::is_message(what.kind))
      return message(rank, node, what, group.at(static_cast<std::size_t>(what.by)));
    if (!what.gives || !what.takes || what.kind == ExchangeKind::halo)
      return user_error(fmt::format("{} cannot be interpreted rank by rank", describe_place(rank)));
    for (const std::int32_t other : group) {
      if (is_done(other))
        return user_error(
            fmt::format("{} waits for rank {}, which has finished", describe_place(rank), other));
      const NodeView there = node_of(other);
      if (&there.op() != &ops::local_exchange()) return false;
      const ops::LocalExchange its = ops::read_local_exchange(there);
      if (plan::is_message(its.kind) || its.axis != what.axis) return false;
      if (its.kind != what.kind || there.input_count() != node.input_count())
        return user_error(fmt::format("{} does {}, {} another collective", describe_place(rank),
                                      name(what.kind), describe_place(other)));
    }
    for (std::size_t k = 0; k < node.input_count(); ++k) {
      std::vector<const Tensor<T>*> given;
      for (const std::int32_t other : group) given.push_back(&value(other, node_of(other).input(k)));
      std::vector<Tensor<T>> taken =
          ops::exchange<T>(as_among_all(what), node.input_type(k), given, numbers_);
      for (std::size_t i = 0; i < group.size(); ++i)
        value(group[i], node_of(group[i]).result(k)) = std::move(taken[i]);
    }
    for (const std::int32_t member : group) ++at(member);
    return true;
  }

  Result<bool> message(std::int32_t rank, const NodeView& node, const ops::LocalExchange& what,
                       std::int32_t other) {
    if (what.kind == ExchangeKind::send) {
      messages_[{rank, other, what.tag}].push_back(value(rank, node.input(0)));
    } else {
      const auto found = messages_.find({other, rank, what.tag});
      if (found == messages_.end()) return false;
      if (found->second.front().sizes != ops::sizes_of(node.result_type(0).dims))
        return user_error(
            fmt::format("{} expects another size than rank {} sent", describe_place(rank), other));
      value(rank, node.result(0)) = std::move(found->second.front());
      found->second.pop_front();
      if (found->second.empty()) messages_.erase(found);
    }
    ++at(rank);
    return true;
  }

  Status check_end() const {
    std::string waiting;
    for (std::int32_t rank = 0; rank < mesh_.ranks(); ++rank)
      if (!is_done(rank)) waiting += (waiting.empty() ? "" : ", ") + describe_place(rank);
    if (!waiting.empty()) return user_error(fmt::format("ranks wait for each other: {}", waiting));
    if (messages_.empty()) return {};
    const auto& [from, to, tag] = messages_.begin()->first;
    return user_error(
        fmt::format("rank {} sends {} a message that it does not receive: tag {}", from, to, tag));
  }

  const std::span<const Graph* const> graphs_;
  const plan::Mesh& mesh_;
  const RankSources<T>& sources_;
  const ops::Numbers<T>& numbers_;
  const std::int64_t most_;
  std::vector<std::size_t> at_;                 // by rank: its next node
  std::vector<std::vector<Tensor<T>>> values_;  // by rank
  std::map<std::tuple<std::int32_t, std::int32_t, std::int64_t>, std::deque<Tensor<T>>> messages_;
};

}  // namespace

Status check_interpretable(std::span<const Graph* const> ranks) {
  for (std::size_t rank = 0; rank < ranks.size(); ++rank)
    for (std::size_t n = 0; n < ranks[rank]->node_count(); ++n) {
      const NodeView node = ranks[rank]->view(NodeId(n));
      if (&node.op() != &ops::local_exchange()) continue;
      const ops::LocalExchange what = ops::read_local_exchange(node);
      if (plan::is_message(what.kind) || (what.gives && what.takes && what.kind != ExchangeKind::halo))
        continue;
      return user_error(fmt::format("rank {} at {}: {} is not supported by the rank interpreter", rank,
                                    describe(*ranks[rank], node.id()),
                                    what.kind == ExchangeKind::halo ? "a halo" : "an empty shard"));
    }
  return {};
}

template <class T>
Result<std::vector<std::vector<Tensor<T>>>> interpret_ranks(std::span<const Graph* const> ranks,
                                                            const plan::Mesh& mesh,
                                                            const RankSources<T>& sources,
                                                            const ops::Numbers<T>& numbers,
                                                            std::int64_t max_elements) {
  WEFT_CHECK(ranks.size() == static_cast<std::size_t>(mesh.ranks()));
  return Ranks<T>(ranks, mesh, sources, numbers, max_elements).run();
}

template Result<std::vector<std::vector<Tensor<ops::Field>>>> interpret_ranks(std::span<const Graph* const>,
                                                                              const plan::Mesh&,
                                                                              const RankSources<ops::Field>&,
                                                                              const ops::Numbers<ops::Field>&,
                                                                              std::int64_t);
template Result<std::vector<std::vector<Tensor<double>>>> interpret_ranks(std::span<const Graph* const>,
                                                                          const plan::Mesh&,
                                                                          const RankSources<double>&,
                                                                          const ops::Numbers<double>&,
                                                                          std::int64_t);

}  // namespace weft::pipeline
