#include "weft/rule/transplant.h"

namespace weft::rule {

using plan::AttributeKind;

Symbol Transplant::symbol(Symbol symbol) {
  if (!symbol.valid()) return symbol;
  if (symbol.value >= symbols_.size()) symbols_.resize(from_->symbols().size());
  Symbol& known = symbols_[symbol.value];
  if (!known.valid()) known = to_->symbol(from_->text(symbol));
  return known;
}

plan::TypeId Transplant::type(plan::TypeId type) {
  if (type.value >= types_.size()) types_.resize(type.value + 1);
  if (types_[type.value].valid()) return types_[type.value];
  const plan::Type source = from_->type(type);
  std::vector<plan::Dim> dims;
  for (const plan::Dim& dim : source.dims) dims.push_back({symbol(dim.index), dim.size});
  return types_[type.value] = to_->intern_type(source.dtype, dims).value();
}

plan::AttributeValue Transplant::attribute(AttributeKind kind, const plan::Attribute& attribute,
                                           std::vector<Symbol>& list) {
  switch (kind) {
    case AttributeKind::integer: return attribute.integer;
    case AttributeKind::real: return attribute.real;
    case AttributeKind::word:
    case AttributeKind::index: return symbol(Symbol(attribute.id));
    case AttributeKind::indices:
      for (std::uint32_t i = 0; i < attribute.count; ++i) list.push_back(symbol(attribute.indices[i]));
      return std::span<const Symbol>(list);
    case AttributeKind::dtype: return static_cast<plan::DType>(attribute.id);
    case AttributeKind::type: return type(plan::TypeId(attribute.id));
  }
  return {};
}

Result<plan::NodeId> Transplant::node(plan::NodeId node, std::span<const plan::ValueId> inputs) {
  const plan::Node& source = from_->node(node);
  const std::span<const plan::AttributeSpec> specs = source.op->attributes();
  std::vector<std::vector<Symbol>> lists(specs.size());
  std::vector<plan::AttributeValue> values;
  for (std::size_t k = 0; k < specs.size(); ++k)
    values.push_back(attribute(specs[k].kind, source.attributes[k], lists[k]));
  return to_->add(*source.op, inputs, values);
}

}  // namespace weft::rule
