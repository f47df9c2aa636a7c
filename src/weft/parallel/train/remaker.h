// weft/parallel/train/remaker.h -- base class for copying a plan with replacements.
#pragma once
#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include "weft/base/result.h"
#include "weft/plan/graph/graph.h"
#include "weft/plan/graph/transplant.h"

namespace weft::train {

class Remaker {
 public:
  explicit Remaker(const plan::Graph& from)
      : from_(from), transplant_(from, made_), values_(from.value_count()) {
    made_.name = from.name;
    for (std::size_t s = 0; s < from.symbols().size(); ++s) made_.symbol(from.text(Symbol(s)));
    for (std::size_t s = 0; s < from.scope_count(); ++s) made_.add_scope(from.scope(plan::ScopeId(s)));
  }

 protected:
  void set_place(const plan::NodeView& node) {
    made_.set_label(node.node().label);
    made_.set_scope(node.node().scope);
    made_.set_when(node.node().when);
  }

  Status copy(const plan::NodeView& node, std::span<const plan::ValueId> inputs) {
    WEFT_TRY(copied, transplant_.node(node.id(), inputs));
    for (std::size_t k = 0; k < node.result_count(); ++k)
      values_[node.result(k).value] = made_.result(copied, k);
    return {};
  }

  plan::Graph finish() {
    made_.set_label({});
    made_.set_scope({});
    made_.set_when({});
    for (const plan::Output& output : from_.outputs()) made_.add_output(output, values_[output.value.value]);
    return std::move(made_);
  }

  const plan::Graph& from_;
  plan::Graph made_;
  plan::Transplant transplant_;
  std::vector<plan::ValueId> values_;  // by value of `from_`
};

}  // namespace weft::train
