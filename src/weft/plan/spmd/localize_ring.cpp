#include <algorithm>
#include <array>

#include "weft/plan/ops/attention_geometry.h"
#include "weft/plan/ops/build.h"
#include "weft/plan/ops/local_exchange.h"
#include "weft/plan/spmd/localizer.h"

namespace weft::spmd {

using plan::NodeView;
using plan::Share;
using plan::ValueId;

namespace {

// The blocks that circulate in the ring. All are padded to the widest, so that ranks can forward
// them.
class Around {
 public:
  Around(plan::Graph& graph, const ops::LocalExchange& what, plan::Dim over)
      : graph_(graph), what_(what), over_(over), widest_(plan::share_of(over.size, what.ranks, 0).size) {}

  Share block(std::int32_t number) const { return plan::share_of(over_.size, what_.ranks, number); }

  // Sends the value to the next rank. Invalid if this rank and its group have nothing.
  Result<ValueId> pass(ValueId value, plan::DType dtype) {
    ops::LocalExchange what = what_;
    what.dtype = dtype;
    const plan::TypeId type = value.valid() ? graph_.value(value).type : plan::TypeId();
    WEFT_TRY(passed, add_local_exchange(graph_, what, value, type));
    return value.valid() ? passed : ValueId();
  }

  Result<ValueId> widened(ValueId value) {
    const std::int64_t size = graph_.type(value).size_of(over_.index);
    return size == widest_ ? Result<ValueId>(value)
                           : ops::add_pad(graph_, value, over_.index, 0, widest_ - size);
  }
  Result<ValueId> narrowed(ValueId value, Share block) {
    return block.size == widest_ ? Result<ValueId>(value)
                                 : ops::add_slice(graph_, value, over_.index, 0, block.size);
  }
  // A block of zeros for a value with these local dims.
  Result<ValueId> nothing(plan::DType dtype, std::vector<plan::Dim> dims) {
    for (plan::Dim& dim : dims)
      if (dim.index == over_.index) dim.size = widest_;
    WEFT_TRY(zero, ops::add_constant(graph_, 0, dtype));
    return ops::add_broadcast(graph_, zero, dims);
  }

  Result<ValueId> sum(ValueId a, ValueId b) {
    if (!a.valid() || !b.valid()) return a.valid() ? a : b;
    return ops::add_pointwise(graph_, ops::add(), {a, b});
  }

 private:
  plan::Graph& graph_;
  const ops::LocalExchange what_;
  const plan::Dim over_;
  const std::int64_t widest_;
};

}  // namespace

Status Localizer::add_ring_attention(const NodeView& node, std::size_t axis) {
  lists_.clear();
  const bool is_gradient = &node.op() == &ops::attention_gradient();
  const ops::AttentionGeometry of = ops::attending(node);
  const std::int32_t ranks = mesh_.axes[axis].ranks, own = mesh_.coordinate(rank_, axis);
  const ops::LocalExchange what{.kind = ops::ExchangeKind::permute_ranks,
                                .axis = mesh_.axes[axis].name,
                                .ranks = ranks,
                                .joins = {},
                                .parts = {},
                                .by = 1};
  Around around(local_.graph, what, {here(of.over.index), of.over.size});
  const auto dims_of = [&](std::size_t i) {
    std::vector<plan::Dim> dims;
    const std::vector<Share> shares = shares_of(node.input(i));
    for (std::size_t d = 0; d < shares.size(); ++d)
      dims.push_back({here(node.input_type(i).dims[d].index), shares[d].size});
    return dims;
  };
  // Whether the share is empty along other indices, as it is then on all ranks of the group.
  const auto lacks_others = [&](std::size_t i) {
    std::vector<Share> shares = shares_of(node.input(i));
    shares[static_cast<std::size_t>(node.input_type(i).position(of.over.index))].size = 1;
    return is_empty(shares);
  };
  std::vector<std::size_t> travelling;
  std::vector<ValueId> operands;
  for (std::size_t i = 0; i < node.input_count(); ++i) {
    ValueId value = local_.values[node.input(i).value];
    if (node.input_type(i).has(of.over.index)) {
      travelling.push_back(i);
      if (value.valid()) {
        WEFT_TRY(wide, around.widened(value));
        value = wide;
      } else if (!lacks_others(i)) {
        WEFT_TRY(empty, around.nothing(node.input_type(i).dtype, dims_of(i)));
        value = empty;
      }
    }
    operands.push_back(value);
  }
  WEFT_TRY(attributes, attributes_of(node, {}));
  const auto first_query =
      shares_of(node.input(0))[static_cast<std::size_t>(node.input_type(0).position(of.along.index))].begin;
  attributes[ops::kAttentionBegin] = node.integer(ops::kAttentionBegin) + first_query;

  std::vector<ValueId> results(node.result_count());  // accumulated; gradients of keys and values circulate
  for (std::int32_t step = 0; step < ranks; ++step) {
    const Share block = around.block((own - step + ranks) % ranks);
    std::vector<ValueId> here_now = operands;
    if (step + 1 < ranks)
      for (const std::size_t i : travelling) {
        WEFT_TRY(next, around.pass(operands[i], node.input_type(i).dtype));
        operands[i] = next;
      }
    std::vector<ValueId> made(node.result_count());
    const bool attends = block.size > 0 && std::ranges::all_of(here_now, &ValueId::valid);
    if (attends) {
      for (const std::size_t i : travelling) {
        WEFT_TRY(narrow, around.narrowed(here_now[i], block));
        here_now[i] = narrow;
      }
      attributes[ops::kAttentionKeys] = node.integer(ops::kAttentionKeys) + block.begin;
      WEFT_TRY(part, local_.graph.add(node.op(), here_now, attributes));
      for (std::size_t k = 0; k < made.size(); ++k) made[k] = local_.graph.result(part, k);
    }
    if (!is_gradient) {
      if (!attends) continue;
      if (results[0].valid()) {
        const std::array<ValueId, 4> both = {results[0], results[1], made[0], made[1]};
        WEFT_TRY(merged, local_.graph.add(ops::attention_merge(), both, {}));
        for (std::size_t k = 0; k < made.size(); ++k) made[k] = local_.graph.result(merged, k);
      }
      results = made;
      continue;
    }
    WEFT_TRY(queries, around.sum(results[0], made[0]));
    results[0] = queries;
    for (const std::size_t k : {ops::kAttentionK, ops::kAttentionV}) {
      const plan::DType dtype = node.result_type(k).dtype;
      if (step > 0) {
        WEFT_TRY(passed, around.pass(results[k], dtype));
        results[k] = passed;
      }
      if (made[k].valid()) {
        WEFT_TRY(wide, around.widened(made[k]));
        WEFT_TRY(added, around.sum(results[k], wide));
        results[k] = added;
      } else if (!results[k].valid() && !lacks_others(k)) {
        WEFT_TRY(zeros, around.nothing(dtype, dims_of(k)));
        results[k] = zeros;
      }
    }
  }
  for (const std::size_t k : {ops::kAttentionK, ops::kAttentionV}) {
    if (!is_gradient) break;
    WEFT_TRY(home, around.pass(results[k], node.result_type(k).dtype));
    results[k] = {};
    if (!home.valid() || around.block(own).size == 0) continue;
    WEFT_TRY(kept, around.narrowed(home, around.block(own)));
    results[k] = kept;
  }
  for (std::size_t k = 0; k < results.size(); ++k) local_.values[node.result(k).value] = results[k];
  return {};
}

}  // namespace weft::spmd
