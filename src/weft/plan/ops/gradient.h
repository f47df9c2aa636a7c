// weft/plan/ops/gradient.h -- the interface through which an operator adds its gradient.
//
// Differentiation runs from the loss backwards. For each node the driver (train/) calls its
// operator to add, to the same graph, nodes that compute the gradients of its inputs from those of
// its results. There is no tape: the gradient of a plan is more plan.
#pragma once
#include <span>
#include <vector>

#include "weft/base/result.h"
#include "weft/plan/graph/graph.h"

namespace weft::ops {

class Gradient {
 public:
  // `of_results[k]` is the gradient of result k; invalid if the loss does not depend on it.
  Gradient(plan::Graph& where, plan::NodeId node, std::span<const plan::ValueId> of_results,
           std::span<const char> wanted)
      : graph(where),
        node_(where, node),
        of_results_(of_results),
        wanted_(wanted),
        of_inputs_(wanted.size()) {}

  plan::Graph& graph;

  const plan::NodeView& node() const { return node_; }
  plan::ValueId of_result(std::size_t k = 0) const { return of_results_[k]; }
  bool wants(std::size_t input) const { return wanted_[input] != 0; }

  // Sets the gradient of an input, which has the input's type. Call at most once per input.
  void set(std::size_t input, plan::ValueId value) { of_inputs_[input] = value; }
  std::span<const plan::ValueId> of_inputs() const { return of_inputs_; }

 private:
  plan::NodeView node_;
  std::span<const plan::ValueId> of_results_;
  std::span<const char> wanted_;
  std::vector<plan::ValueId> of_inputs_;
};

}  // namespace weft::ops
