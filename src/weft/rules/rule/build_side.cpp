#include "weft/rules/rule/build_side.h"

#include <algorithm>
#include <array>
#include <deque>

#include <fmt/format.h>

#include "weft/plan/ops/operators.h"
#include "weft/rules/rule/evaluate_number.h"

namespace weft::rule {
namespace {

using plan::AttributeKind;
using plan::AttributeValue;
using plan::ValueId;

// The value transposed to the index order of `like`; unchanged if its indices differ.
Result<ValueId> in_order_of(Site& site, ValueId value, const plan::Type& like) {
  const plan::Type type = site.graph.type(value);
  if (std::ranges::equal(type.dims, like.dims, {}, &plan::Dim::index, &plan::Dim::index)) return value;
  if (!std::ranges::is_permutation(type.dims, like.dims, {}, &plan::Dim::index, &plan::Dim::index))
    return value;
  std::vector<Symbol> order;
  for (const plan::Dim& dim : like.dims) order.push_back(dim.index);
  const std::array<AttributeValue, 1> attributes = {std::span<const Symbol>(order)};
  const std::array<ValueId, 1> operands = {value};
  WEFT_TRY(node, site.add ? site.add(ops::transpose(), operands, attributes)
                          : site.graph.add(ops::transpose(), operands, attributes));
  return site.graph.result(node);
}

class Builder {
 public:
  Builder(Site& site, const Side& side, std::span<const ValueId> inputs)
      : site_(site), side_(side), values_(inputs.begin(), inputs.end()) {}

  // If `left` is null, builds the left side, and numbers refer to the values built so far.
  Result<std::vector<ValueId>> build(const std::vector<ValueId>* left) {
    is_left_ = left == nullptr;
    left_ = is_left_ ? &values_ : left;
    for (const PatternNode& node : side_.nodes) {
      operands_.clear();
      for (const std::uint16_t operand : node.operands) operands_.push_back(values_[operand]);
      const plan::Operator& op =
          node.op != nullptr ? *node.op : *site_.bindings.operators[node.operator_variable];
      if (!is_left_ && &op == &ops::concat()) WEFT_TRY_STATUS(bring_in_order());
      WEFT_TRY_STATUS(attributes(node, op));
      if (!is_left_ && changes_nothing(op)) {
        values_.push_back(operands_[0]);
        continue;
      }
      WEFT_TRY(made, add(op));
      for (std::uint16_t k = 0; k < node.results; ++k) values_.push_back(site_.graph.result(made, k));
    }
    return std::move(values_);
  }

 private:
  Result<plan::NodeId> add(const plan::Operator& op) {
    return site_.add ? site_.add(op, operands_, attributes_) : site_.graph.add(op, operands_, attributes_);
  }

  // Operands of a concat must have the same index order: use the first one's.
  Status bring_in_order() {
    for (ValueId& operand : operands_) {
      WEFT_TRY(ordered, in_order_of(site_, operand, site_.graph.type(operands_[0])));
      operand = ordered;
    }
    return {};
  }

  Place place() const { return {site_.graph, site_.rule, site_.bindings, *left_, site_.mesh}; }

  Status attributes(const PatternNode& node, const plan::Operator& op) {
    const auto specs = op.attributes();
    attributes_.clear();
    lists_.clear();
    for (std::size_t k = 0; k < node.attributes.size(); ++k) {
      WEFT_TRY(value, attribute(node.attributes[k], specs[k]));
      attributes_.push_back(value);
    }
    return {};
  }

  Result<AttributeValue> attribute(const AttributeTerm& term, const plan::AttributeSpec& spec) {
    switch (term.kind) {
      case AttributeTerm::Kind::standard: return AttributeValue();
      case AttributeTerm::Kind::number: {
        WEFT_TRY(number, whole(term.number, spec.name));
        return AttributeValue(number);
      }
      case AttributeTerm::Kind::real: return AttributeValue(term.real);
      case AttributeTerm::Kind::word: return AttributeValue(site_.graph.symbol(term.word));
      case AttributeTerm::Kind::dtype: return AttributeValue(term.dtype);
      case AttributeTerm::Kind::variable: return bound(site_.bindings.attributes[term.variable], spec.kind);
      case AttributeTerm::Kind::indices: break;
    }
    if (spec.kind == AttributeKind::type) return type(term, spec);
    std::vector<Symbol>& list = lists_.emplace_back();
    for (const std::uint16_t index : term.indices)
      for (const Symbol symbol : site_.bindings.indices[index]) list.push_back(symbol);
    if (spec.kind == AttributeKind::indices) return AttributeValue(std::span<const Symbol>(list));
    if (list.size() != 1)
      return user_error(fmt::format("{} needs one index, found {}", spec.name, list.size()));
    return AttributeValue(list[0]);
  }

  static AttributeValue bound(const plan::Attribute& value, AttributeKind kind) {
    switch (kind) {
      case AttributeKind::integer: return value.integer;
      case AttributeKind::real: return value.real;
      case AttributeKind::dtype: return static_cast<plan::DType>(value.id);
      case AttributeKind::type: return plan::TypeId(value.id);
      case AttributeKind::indices: return std::span<const Symbol>(value.indices, value.count);
      default: return Symbol(value.id);
    }
  }

  Result<std::int64_t> whole(const Number& number, std::string_view what) const {
    if (const auto value = evaluate(number, place())) return *value;
    return user_error(fmt::format("{} has no value here", what));
  }

  Result<AttributeValue> type(const AttributeTerm& term, const plan::AttributeSpec& spec) {
    std::vector<plan::Dim> dims;
    for (std::size_t k = 0; k < term.indices.size(); ++k) {
      for (const Symbol index : site_.bindings.indices[term.indices[k]]) {
        WEFT_TRY(size, term.sizes[k].kind == Number::Kind::open ? open_size(index, term.indices[k])
                                                                : whole(term.sizes[k], spec.name));
        dims.push_back({index, size});
      }
    }
    const plan::DType dtype = operands_.empty() ? plan::DType::f32 : site_.graph.type(operands_[0]).dtype;
    WEFT_TRY(made, site_.graph.intern_type(dtype, dims));
    return AttributeValue(made);
  }

  Result<std::int64_t> open_size(Symbol index, std::uint16_t variable) const {
    if (!operands_.empty() && site_.graph.type(operands_[0]).has(index))
      return site_.graph.type(operands_[0]).size_of(index);
    const Side& left = site_.rule.left;
    for (std::size_t v = 0; v < left_->size(); ++v) {
      const bool has =
          v < left.lists.size() && std::ranges::find(left.lists[v], variable) != left.lists[v].end();
      const plan::Type found = site_.graph.type((*left_)[v]);
      if (has && found.has(index)) return found.size_of(index);
    }
    // Only when making an instance: an index that the left side itself introduces.
    if (const auto size = site_.fresh_sizes.find(index.value); size != site_.fresh_sizes.end())
      return size->second;
    return user_error(fmt::format("index {} has no size here", site_.graph.text(index)));
  }

  bool changes_nothing(const plan::Operator& op) const {
    if (operands_.size() != 1) return false;
    const plan::Type x = site_.graph.type(operands_[0]);
    const auto list = [&](std::size_t k) { return std::get<std::span<const Symbol>>(attributes_[k]); };
    const auto integer = [&](std::size_t k) {
      const auto* value = std::get_if<std::int64_t>(&attributes_[k]);
      return value != nullptr ? *value : 0;
    };
    if (&op == &ops::rename()) return std::ranges::equal(list(0), list(1));
    if (&op == &ops::transpose()) return std::ranges::equal(x.dims, list(0), {}, &plan::Dim::index);
    if (&op == &ops::slice()) {
      const Symbol along = std::get<Symbol>(attributes_[0]);
      return x.has(along) && integer(1) == 0 && integer(2) == x.size_of(along);
    }
    if (&op == &ops::pad()) return integer(1) == 0 && integer(2) == 0;
    if (&op == &ops::concat()) return true;
    if (&op == &ops::cast()) return std::get<plan::DType>(attributes_[0]) == x.dtype;
    return false;
  }

  Site& site_;
  const Side& side_;
  std::vector<ValueId> values_;
  const std::vector<ValueId>* left_ = nullptr;
  bool is_left_ = false;
  std::vector<ValueId> operands_;
  std::vector<AttributeValue> attributes_;
  std::deque<std::vector<Symbol>> lists_;  // storage for spans in attributes_
};

}  // namespace

Result<std::vector<ValueId>> build_left(Site& site, std::span<const ValueId> inputs) {
  return Builder(site, site.rule.left, inputs).build(nullptr);
}

Result<std::vector<ValueId>> build_right(Site& site, std::span<const ValueId> left) {
  const std::vector<ValueId> values(left.begin(), left.end());
  WEFT_TRY(built, Builder(site, site.rule.right, left.first(site.rule.inputs.size())).build(&values));
  std::vector<ValueId> outputs;
  for (const Rule::Output& output : site.rule.outputs) {
    const plan::Type wanted = site.graph.type(left[output.left]);
    WEFT_TRY(ordered, in_order_of(site, built[output.right], wanted));
    if (site.graph.value(ordered).type != site.graph.value(left[output.left]).type)
      return user_error(fmt::format("{} is {} on the left but {} on the right", output.name,
                                    print(wanted, site.graph.symbols()),
                                    print(site.graph.type(ordered), site.graph.symbols())));
    outputs.push_back(ordered);
  }
  return outputs;
}

}  // namespace weft::rule
