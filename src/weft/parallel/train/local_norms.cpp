#include "weft/parallel/train/local_norms.h"

#include <algorithm>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "weft/plan/graph/transplant.h"
#include "weft/plan/ops/build.h"
#include "weft/plan/ops/loops.h"
#include "weft/plan/ops/operators.h"

namespace weft::train {
namespace {

using plan::Dim;
using plan::NodeId;
using plan::NodeView;
using plan::ValueId;

constexpr std::size_t kOver = 0, kEpsilon = 1, kMomentum = 2, kMode = 3;  // attributes

bool learns_statistics(const NodeView& node) {
  return &node.op() == &ops::batch_norm() && node.word(kMode) == "train";
}

class LocalNorms {
 public:
  LocalNorms(const plan::Graph& forward, std::int64_t shares) : from_(forward), shares_(shares) {
    for (std::size_t n = 0; n < forward.node_count(); ++n)
      if (const NodeView node = forward.view(NodeId(n));
          &node.op() == &ops::input() && node.result_type(0).rank() > 0)
        batch_.push_back(node.result_type(0).dims[0].index);
  }

  Result<plan::Graph> run() && {
    made_.name = from_.name;
    for (std::size_t s = 0; s < from_.symbols().size(); ++s) made_.symbol(from_.text(Symbol(s)));
    for (std::size_t s = 0; s < from_.scope_count(); ++s) made_.add_scope(from_.scope(plan::ScopeId(s)));
    plan::Transplant transplant(from_, made_);
    std::vector<ValueId> values(from_.value_count());
    for (std::size_t n = 0; n < from_.node_count(); ++n) {
      const NodeView node = from_.view(NodeId(n));
      made_.set_label(node.node().label);
      made_.set_scope(node.node().scope);
      made_.set_when(node.node().when);
      std::vector<ValueId> inputs;
      for (const ValueId input : node.node().inputs) inputs.push_back(values[input.value]);
      const Symbol batch = learns_statistics(node) ? batch_of(node) : Symbol();
      if (batch.valid()) {
        WEFT_TRY(norm, add_shared(node, inputs, batch));
        const ValueId results[] = {norm.y, norm.next_mean, norm.next_variance, norm.rstd};
        for (std::size_t k = 0; k < node.result_count(); ++k) values[node.result(k).value] = results[k];
        continue;
      }
      WEFT_TRY(copied, transplant.node(node.id(), inputs));
      for (std::size_t k = 0; k < node.result_count(); ++k)
        values[node.result(k).value] = made_.result(copied, k);
    }
    for (const plan::Output& output : from_.outputs()) made_.add_output(output, values[output.value.value]);
    return std::move(made_);
  }

 private:
  Symbol batch_of(const NodeView& norm) const {
    for (const Symbol index : norm.indices(kOver))
      if (std::ranges::find(batch_, index) != batch_.end()) return index;
    return {};
  }

  Result<ops::BatchNormalized> add_shared(const NodeView& norm, const std::vector<ValueId>& inputs,
                                          Symbol batch) {
    const plan::Type x = made_.type(inputs[0]);
    const std::int64_t size = x.size_of(batch);
    if (size % shares_ != 0)
      return user_error(fmt::format("{} of {} cannot be split into {} equal shares, one per device, for the "
                                    "statistics of each batch norm",
                                    made_.text(batch), size, shares_),
                        fmt::format("{} = {}, or batch_norm = global", made_.text(batch),
                                    std::max<std::int64_t>((size + shares_ / 2) / shares_, 1) * shares_));
    std::string name = std::string(made_.text(batch)) + "_share";
    while (x.has(made_.symbol(name))) name += "_";
    const Dim parts[] = {{batch, shares_}, {made_.symbol(name), size / shares_}};
    std::vector<Symbol> over;
    for (const Symbol index : norm.indices(kOver)) over.push_back(index == batch ? parts[1].index : index);
    const auto of_shares = [&](ValueId running) {
      std::vector<Dim> dims = {parts[0]};
      for (const Dim& dim : made_.type(running).dims) dims.push_back(dim);
      return ops::add_broadcast(made_, running, dims);
    };
    const auto mean_of_shares = [&](ValueId statistic, ValueId like) {
      return ops::add_reduce(made_, "mean", statistic, ops::indices_of(made_.type(like).dims));
    };
    WEFT_TRY(split, ops::add_split(made_, inputs[0], batch, parts));
    WEFT_TRY(mean, of_shares(inputs[1]));
    WEFT_TRY(variance, of_shares(inputs[2]));
    WEFT_TRY(made, ops::add_batch_norm(made_, split, mean, variance, over, ops::BatchNormMode::train,
                                       norm.real(kEpsilon), norm.real(kMomentum)));
    const Symbol both[] = {parts[0].index, parts[1].index};
    WEFT_TRY(y, ops::add_merge(made_, made.y, both, batch));
    WEFT_TRY(next_mean, mean_of_shares(made.next_mean, inputs[1]));
    WEFT_TRY(next_variance, mean_of_shares(made.next_variance, inputs[2]));
    return ops::BatchNormalized{y, next_mean, next_variance, made.rstd};
  }

  const plan::Graph& from_;
  const std::int64_t shares_;
  std::vector<Symbol> batch_;  // the first index of each input
  plan::Graph made_;
};

}  // namespace

std::int64_t count_batch_norms(const plan::Graph& forward) {
  std::int64_t count = 0;
  for (std::size_t n = 0; n < forward.node_count(); ++n)
    count += learns_statistics(forward.view(NodeId(n))) ? 1 : 0;
  return count;
}

Result<plan::Graph> with_local_norms(const plan::Graph& forward, std::int64_t shares) {
  return LocalNorms(forward, shares).run();
}

}  // namespace weft::train
