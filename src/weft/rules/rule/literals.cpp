#include "weft/rules/rule/literals.h"

#include <fmt/format.h>

namespace weft::rule {

using plan::AttributeKind;

namespace {

bool is_default(const plan::Graph& graph, const plan::AttributeSpec& spec, const plan::Attribute& found) {
  if (spec.required) return false;
  switch (spec.kind) {
    case AttributeKind::integer: return found.integer == static_cast<std::int64_t>(spec.number);
    case AttributeKind::real: return found.real == spec.number;
    case AttributeKind::word: return graph.text(Symbol(found.id)) == spec.word;
    case AttributeKind::indices: return found.count == 0;
    default: return false;
  }
}

std::string print(const plan::Graph& graph, AttributeKind kind, const plan::Attribute& found) {
  switch (kind) {
    case AttributeKind::integer: return fmt::to_string(found.integer);
    case AttributeKind::real: return fmt::format("{:g}", found.real);
    case AttributeKind::word:
    case AttributeKind::index: return std::string(graph.text(Symbol(found.id)));
    case AttributeKind::dtype: return std::string(plan::name(static_cast<plan::DType>(found.id)));
    case AttributeKind::type: return plan::print(graph.type(plan::TypeId(found.id)), graph.symbols());
    case AttributeKind::indices: break;
  }
  std::string text = "[";
  for (std::uint32_t i = 0; i < found.count; ++i)
    text += fmt::format("{}{}", i == 0 ? "" : ", ", graph.text(found.indices[i]));
  return text + "]";
}

std::string print(const plan::AttributeSpec& spec, const AttributeTerm& term) {
  switch (term.kind) {
    case AttributeTerm::Kind::number: return fmt::to_string(term.number.literal);
    case AttributeTerm::Kind::real: return fmt::format("{:g}", term.real);
    case AttributeTerm::Kind::word: return term.word;
    case AttributeTerm::Kind::dtype: return std::string(plan::name(term.dtype));
    default: break;
  }
  switch (spec.kind) {
    case AttributeKind::integer:
    case AttributeKind::real: return fmt::format("{:g}", spec.number);
    case AttributeKind::word: return spec.word.empty() ? "left out" : std::string(spec.word);
    default: return "left out";
  }
}

}  // namespace

bool is_literal(const AttributeTerm& term) {
  switch (term.kind) {
    case AttributeTerm::Kind::variable:
    case AttributeTerm::Kind::indices: return false;
    case AttributeTerm::Kind::number: return term.number.kind == Number::Kind::literal;
    default: return true;
  }
}

bool literal_holds(const plan::Graph& graph, const plan::Node& node, std::size_t attribute,
                   const AttributeTerm& term) {
  const plan::AttributeSpec& spec = node.op->attributes()[attribute];
  const plan::Attribute& found = node.attributes[attribute];
  switch (term.kind) {
    case AttributeTerm::Kind::standard: return is_default(graph, spec, found);
    case AttributeTerm::Kind::number:
      return spec.kind == AttributeKind::real ? found.real == static_cast<double>(term.number.literal)
                                              : found.integer == term.number.literal;
    case AttributeTerm::Kind::real: return spec.kind == AttributeKind::real && found.real == term.real;
    case AttributeTerm::Kind::word: return graph.text(Symbol(found.id)) == term.word;
    case AttributeTerm::Kind::dtype: return found.id == static_cast<std::uint32_t>(term.dtype);
    default: return true;
  }
}

std::string describe_mismatch(const plan::Graph& graph, const plan::Node& node, std::size_t attribute,
                              const AttributeTerm& term) {
  const plan::AttributeSpec& spec = node.op->attributes()[attribute];
  return fmt::format("{} of {} is {}, not {}", spec.name, node.op->name(),
                     print(graph, spec.kind, node.attributes[attribute]), print(spec, term));
}

}  // namespace weft::rule
