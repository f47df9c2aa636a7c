#include "weft/plan/graph/operator.h"

#include "weft/plan/graph/graph.h"

namespace weft::plan {

Status ResultTypes::add(DType dtype, std::span<const Dim> dims) {
  WEFT_TRY(type, graph_.intern_type(dtype, dims));
  types_.push_back(type);
  return {};
}

OperatorSet::OperatorSet(std::span<const Operator* const> operators)
    : operators_(operators.begin(), operators.end()) {
  for (const Operator* op : operators_) {
    WEFT_CHECK(!index_.find(op->name()).valid(), op->name());
    names_.push_back(op->name());
    index_.intern(op->name());
  }
}

const Operator* OperatorSet::find(std::string_view name) const {
  const Symbol symbol = index_.find(name);
  return symbol.valid() ? operators_[symbol.value] : nullptr;
}

}  // namespace weft::plan
