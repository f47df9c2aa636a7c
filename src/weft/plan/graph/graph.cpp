#include "weft/plan/graph/graph.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "weft/base/hash.h"
#include "weft/plan/graph/words.h"

namespace weft::plan {
namespace {

constexpr std::uint32_t kFree = TypeId::kNone;

std::uint64_t hash_type(DType dtype, std::span<const Dim> dims) {
  std::uint64_t state = static_cast<std::uint64_t>(dtype) + 1;
  for (const Dim& dim : dims) {
    state = multiply_fold(state ^ dim.index.value, 0x9e3779b97f4a7c15u);
    state = multiply_fold(state ^ static_cast<std::uint64_t>(dim.size), 0xc2b2ae3d27d4eb4fu);
  }
  return state;
}

bool same_dims(std::span<const Dim> a, std::span<const Dim> b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end());
}

Status check_dims(DType dtype, std::span<const Dim> dims, const Symbols& symbols) {
  if (dims.size() > kLargestRank)
    return user_error(fmt::format("a tensor has at most {} indices, found {}", kLargestRank, dims.size()));
  std::int64_t room = kLargestValueBytes / size_in_bytes(dtype);
  for (std::size_t i = 0; i < dims.size(); ++i) {
    if (dims[i].size < 1)
      return user_error(fmt::format("index {} must have a size of at least 1, found {}",
                                    symbols.text(dims[i].index), dims[i].size));
    for (std::size_t j = 0; j < i; ++j)
      if (dims[i].index == dims[j].index)
        return user_error(fmt::format("index {} appears twice in {}", symbols.text(dims[i].index),
                                      print_indices(dims, symbols)));
    room /= dims[i].size;
    if (room == 0)
      return user_error(
          fmt::format("tensor too large: {} exceeds 2^56 bytes", print(Type{dtype, dims}, symbols)));
  }
  return {};
}

std::string_view kind_name(AttributeKind kind) {
  switch (kind) {
    case AttributeKind::integer: return "an integer";
    case AttributeKind::real: return "a number";
    case AttributeKind::word: return "a word";
    case AttributeKind::index: return "an index";
    case AttributeKind::indices: return "a list of indices";
    case AttributeKind::dtype: return "a dtype";
    case AttributeKind::type: return "a type";
  }
  return "";
}

}  // namespace

Result<TypeId> Graph::intern_type(DType dtype, std::span<const Dim> dims) {
  if ((types_.size() + 1) * 2 > type_slots_.size()) {
    const std::size_t size = type_slots_.empty() ? 64 : type_slots_.size() * 2;
    type_slots_.assign(size, kFree);
    for (std::uint32_t id = 0; id < types_.size(); ++id) {
      std::size_t slot = type_hashes_[id] & (size - 1);
      while (type_slots_[slot] != kFree) slot = (slot + 1) & (size - 1);
      type_slots_[slot] = id;
    }
  }
  const std::uint64_t hash = hash_type(dtype, dims);
  const std::size_t mask = type_slots_.size() - 1;
  std::size_t slot = hash & mask;
  while (type_slots_[slot] != kFree) {
    const std::uint32_t id = type_slots_[slot];
    if (type_hashes_[id] == hash && types_[id].dtype == dtype && same_dims(types_[id].dims, dims))
      return TypeId(id);
    slot = (slot + 1) & mask;
  }
  WEFT_TRY_STATUS(check_dims(dtype, dims, symbols_));
  const TypeId id(types_.size());
  type_slots_[slot] = id.value;
  type_hashes_.push_back(hash);
  types_.push_back(Type{dtype, dims_.keep(dims)});
  return id;
}

Result<Attribute> Graph::keep(const AttributeSpec& spec, const AttributeValue& value, const Operator& op) {
  Attribute kept{};
  const auto wrong_kind = [&]() {
    return user_error(
        fmt::format("attribute {} of {} must be {}", spec.name, op.name(), kind_name(spec.kind)));
  };
  if (std::holds_alternative<std::monostate>(value)) {
    if (spec.required) return user_error(fmt::format("{} needs the attribute {}", op.name(), spec.name));
    switch (spec.kind) {
      case AttributeKind::integer: kept.integer = static_cast<std::int64_t>(spec.number); break;
      case AttributeKind::real: kept.real = spec.number; break;
      case AttributeKind::word: kept.id = symbols_.intern(spec.word).value; break;
      case AttributeKind::indices: kept.indices = nullptr; break;
      default: WEFT_CHECK(false, "no default for this kind of attribute");
    }
    return kept;
  }
  switch (spec.kind) {
    case AttributeKind::integer:
      if (const auto* integer = std::get_if<std::int64_t>(&value)) return kept.integer = *integer, kept;
      return wrong_kind();
    case AttributeKind::real:
      if (const auto* real = std::get_if<double>(&value)) {
        if (std::isnan(*real))
          return user_error(fmt::format("attribute {} of {} is not a number", spec.name, op.name()));
        return kept.real = *real, kept;
      }
      if (const auto* integer = std::get_if<std::int64_t>(&value))
        return kept.real = static_cast<double>(*integer), kept;
      return wrong_kind();
    case AttributeKind::word:
    case AttributeKind::index:
      if (const auto* symbol = std::get_if<Symbol>(&value)) return kept.id = symbol->value, kept;
      return wrong_kind();
    case AttributeKind::indices:
      if (const auto* list = std::get_if<std::span<const Symbol>>(&value)) {
        kept.indices = indices_.keep(*list).data();
        kept.count = static_cast<std::uint32_t>(list->size());
        return kept;
      }
      return wrong_kind();
    case AttributeKind::dtype:
      if (const auto* dtype = std::get_if<DType>(&value))
        return kept.id = static_cast<std::uint32_t>(*dtype), kept;
      return wrong_kind();
    case AttributeKind::type:
      if (const auto* type = std::get_if<TypeId>(&value)) return kept.id = type->value, kept;
      return wrong_kind();
  }
  return wrong_kind();
}

Result<NodeId> Graph::add(const Operator& op, std::span<const ValueId> inputs,
                          std::span<const AttributeValue> attributes) {
  if (inputs.size() < op.min_inputs() || inputs.size() > op.max_inputs()) {
    if (op.min_inputs() == op.max_inputs())
      return user_error(fmt::format("{} takes {} operand{}, found {}", op.name(), op.min_inputs(),
                                    op.min_inputs() == 1 ? "" : "s", inputs.size()));
    return user_error(fmt::format("{} takes {} to {} operands, found {}", op.name(), op.min_inputs(),
                                  op.max_inputs(), inputs.size()));
  }
  for (const ValueId input : inputs) WEFT_CHECK(input.value < values_.size());
  const std::span<const AttributeSpec> specs = op.attributes();
  WEFT_CHECK(attributes.size() <= specs.size(), op.name());

  constexpr std::size_t kMostAttributes = 16;
  Attribute kept[kMostAttributes];
  WEFT_CHECK(specs.size() <= kMostAttributes, op.name());
  for (std::size_t k = 0; k < specs.size(); ++k) {
    WEFT_TRY(attribute, keep(specs[k], k < attributes.size() ? attributes[k] : AttributeValue(), op));
    kept[k] = attribute;
  }

  const NodeId id(nodes_.size());
  nodes_.push_back(Node{.op = &op,
                        .inputs = inputs_.keep(inputs),
                        .attributes = attributes_.keep({kept, specs.size()}),
                        .first_result = ValueId(values_.size()),
                        .result_count = 0,
                        .label = label_,
                        .scope = scope_,
                        .when = when_});
  ResultTypes results(*this);
  if (Status status = op.infer(NodeView(*this, id), results); !status.ok()) {
    nodes_.pop_back();
    return std::move(status).error();
  }
  for (const TypeId type : results.types()) values_.push_back(Value{type, id, nodes_.back().result_count++});
  return id;
}

Result<ValueId> Graph::add_value(const Operator& op, std::span<const ValueId> inputs,
                                 std::span<const AttributeValue> attributes) {
  WEFT_TRY(id, add(op, inputs, attributes));
  return result(id);
}

bool Graph::has(Phase phase) const {
  return std::ranges::any_of(nodes_, [&](const Node& node) { return node.when.phase == phase; });
}

ScopeId Graph::add_scope(const Scope& scope) {
  scopes_.push_back(scope);
  return ScopeId(scopes_.size() - 1);
}

std::string Graph::path(ScopeId scope, Symbol label) const {
  std::string text;
  const auto put = [&](const auto& self, ScopeId id) -> void {
    if (!id.valid()) return;
    const Scope& at = scopes_[id.value];
    self(self, at.parent);
    if (!text.empty()) text += '.';
    text += quote_unless_plain(symbols_.text(at.name));
    if (at.iteration >= 0) text += fmt::format(".{}", at.iteration);
  };
  put(put, scope);
  if (label.valid()) {
    if (!text.empty()) text += '.';
    text += quote_unless_plain(symbols_.text(label));
  }
  return text;
}

void Graph::add_update(std::string_view state, ValueId next) {
  outputs_.push_back({symbol(fmt::format("{}{}", kNextWord, state)), next, symbol(state)});
}

Graph Graph::clone() const {
  Graph copy;
  copy.name = name;
  copy.symbols_ = symbols_;
  copy.type_slots_ = type_slots_;
  copy.type_hashes_ = type_hashes_;
  copy.values_ = values_;
  copy.scopes_ = scopes_;
  copy.outputs_ = outputs_;
  copy.label_ = label_;
  copy.scope_ = scope_;
  copy.when_ = when_;
  for (const Type& type : types_) copy.types_.push_back(Type{type.dtype, copy.dims_.keep(type.dims)});
  std::vector<Attribute> kept;
  for (const Node& node : nodes_) {
    kept.assign(node.attributes.begin(), node.attributes.end());
    for (std::size_t k = 0; k < kept.size(); ++k)
      if (node.op->attributes()[k].kind == AttributeKind::indices)
        kept[k].indices = copy.indices_.keep({kept[k].indices, kept[k].count}).data();
    Node& clone = copy.nodes_.emplace_back(node);
    clone.inputs = copy.inputs_.keep(node.inputs);
    clone.attributes = copy.attributes_.keep(kept);
  }
  return copy;
}

}  // namespace weft::plan
