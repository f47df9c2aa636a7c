// weft/plan/ops/formula.h -- adds an equation to a plan as nodes; used by gradients.
//
//   Formula f(graph);                                   // d sin(x) = dy * cos(x)
//   g.set(0, f(mul(), {dy, f(cos(), {x})}));
//   return f.status();
//
// The first failure is kept: later calls add nothing and return an invalid id, so terms need no
// individual checks. The caller must return status().
#pragma once
#include <initializer_list>
#include <string_view>
#include <utility>

#include "weft/base/result.h"
#include "weft/plan/ops/build.h"

namespace weft::ops {

class Formula {
 public:
  explicit Formula(plan::Graph& graph) : graph_(graph) {}

  // Applies a pointwise operator.
  plan::ValueId operator()(const Operator& op, std::initializer_list<plan::ValueId> operands) {
    return keep([&] { return add_pointwise(graph_, op, operands); });
  }
  // A constant with the dtype of `like`.
  plan::ValueId number(double value, plan::ValueId like) {
    return keep([&] { return add_constant(graph_, value, graph_.type(like).dtype); });
  }
  // x with exactly the dims `to`: other indices are summed, missing ones broadcast.
  plan::ValueId sum(plan::ValueId x, Dims to) { return product({x}, to); }
  plan::ValueId product(std::initializer_list<plan::ValueId> operands, Dims to) {
    return keep([&] { return add_contract_spread(graph_, operands, to); });
  }
  plan::ValueId reduce(std::string_view kind, plan::ValueId x, Indices to) {
    return keep([&] { return add_reduce(graph_, kind, x, to); });
  }
  plan::ValueId cast(plan::ValueId x, plan::DType to) {
    return keep([&] { return add_cast(graph_, x, to); });
  }
  // Any other way to add a value: make() returns Result<ValueId>.
  template <class Make>
  plan::ValueId keep(Make make) {
    if (!status_.ok()) return {};
    Result<plan::ValueId> made = make();
    if (made.ok()) return *made;
    status_ = std::move(made).error();
    return {};
  }

  const Status& status() const { return status_; }

 private:
  plan::Graph& graph_;
  Status status_;
};

}  // namespace weft::ops
