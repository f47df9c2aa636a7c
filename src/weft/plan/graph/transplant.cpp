#include "weft/plan/graph/transplant.h"

namespace weft::plan {

Symbol Transplant::symbol(Symbol symbol) {
  if (!symbol.valid()) return symbol;
  if (symbol.value >= symbols_.size()) symbols_.resize(from_->symbols().size());
  Symbol& known = symbols_[symbol.value];
  if (!known.valid()) known = to_->symbol(from_->text(symbol));
  return known;
}

Symbol Transplant::index(Symbol index) {
  if (!name_index_) return symbol(index);
  if (index.value >= indices_.size()) indices_.resize(from_->symbols().size());
  Symbol& known = indices_[index.value];
  if (!known.valid()) known = name_index_(index);
  return known;
}

TypeId Transplant::type(TypeId type) {
  if (type.value >= types_.size()) types_.resize(type.value + 1);
  if (types_[type.value].valid()) return types_[type.value];
  const Type source = from_->type(type);
  std::vector<Dim> dims;
  for (const Dim& dim : source.dims) dims.push_back({index(dim.index), dim.size});
  return types_[type.value] = to_->intern_type(source.dtype, dims).value();
}

void Transplant::output(const Output& output, ValueId value) {
  to_->add_output({symbol(output.name), {}, symbol(output.updates)}, value);
}

AttributeValue Transplant::attribute(AttributeKind kind, const Attribute& attribute,
                                     std::vector<Symbol>& list) {
  switch (kind) {
    case AttributeKind::integer: return attribute.integer;
    case AttributeKind::real: return attribute.real;
    case AttributeKind::word: return symbol(Symbol(attribute.id));
    case AttributeKind::index: return index(Symbol(attribute.id));
    case AttributeKind::indices:
      list.clear();
      for (std::uint32_t i = 0; i < attribute.count; ++i) list.push_back(index(attribute.indices[i]));
      return std::span<const Symbol>(list);
    case AttributeKind::dtype: return static_cast<DType>(attribute.id);
    case AttributeKind::type: return type(TypeId(attribute.id));
  }
  return {};
}

Result<NodeId> Transplant::node(NodeId node, std::span<const ValueId> inputs, const AttributeValue* last) {
  return node_at(from_->node(node).when, node, inputs, last);
}

Result<NodeId> Transplant::node_at(const When& when, NodeId node, std::span<const ValueId> inputs,
                                   const AttributeValue* last) {
  const Node& source = from_->node(node);
  const std::span<const AttributeSpec> specs = source.op->attributes();
  if (lists_.size() < specs.size()) lists_.resize(specs.size());
  values_.clear();
  for (std::size_t k = 0; k < specs.size(); ++k)
    values_.push_back(attribute(specs[k].kind, source.attributes[k], lists_[k]));
  if (last != nullptr) values_.back() = *last;
  const When before = to_->when();
  to_->set_when(when);
  Result<NodeId> made = to_->add(*source.op, inputs, values_);
  to_->set_when(before);
  return made;
}

}  // namespace weft::plan
