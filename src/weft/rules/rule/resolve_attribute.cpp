#include "weft/rules/rule/resolve_attribute.h"

#include <algorithm>

#include <fmt/format.h>

#include "weft/base/nearest.h"

namespace weft::rule {
namespace {

using plan::AttributeKind;
using syntax::Expression;

}  // namespace

Result<std::vector<AttributeTerm>> AttributeResolver::all(const syntax::Term& term,
                                                          const plan::Operator& op) {
  const auto specs = op.attributes();
  std::vector<AttributeTerm> result(specs.size());
  std::vector<bool> given(specs.size(), false);
  for (const syntax::Term::Attribute& attribute : term.attributes) {
    const auto found = std::ranges::find(specs, attribute.name.text, &plan::AttributeSpec::name);
    if (found == specs.end()) {
      std::vector<std::string_view> known;
      for (const plan::AttributeSpec& spec : specs) known.push_back(spec.name);
      return user_error(fmt::format("{} has no attribute {}", op.name(), attribute.name.text),
                        did_you_mean(attribute.name.text, known), attribute.name.span);
    }
    const auto k = static_cast<std::size_t>(found - specs.begin());
    if (given[k]) return user_error(fmt::format("given twice: {}", found->name), {}, attribute.name.span);
    given[k] = true;
    WEFT_TRY(made, one(attribute.value, *found));
    result[k] = std::move(made);
  }
  for (std::size_t k = 0; k < specs.size(); ++k)
    if (specs[k].required && !given[k])
      return user_error(fmt::format("{} needs the attribute {}", op.name(), specs[k].name), {}, term.span);
  return result;
}

Result<AttributeTerm> AttributeResolver::variable(const syntax::Word& word, AttributeKind kind) {
  AttributeTerm result;
  result.kind = AttributeTerm::Kind::variable;
  WEFT_TRY(place, is_left_ ? names_.bind_variable(word, kind) : names_.use_variable(word, kind));
  result.variable = place;
  return result;
}

Result<AttributeTerm> AttributeResolver::one(const Expression& value, const plan::AttributeSpec& spec) {
  AttributeTerm result;
  const bool is_name = value.kind == Expression::Kind::name;
  const auto wrong = [&](std::string_view what) {
    return user_error(fmt::format("{} must be {}", spec.name, what), {}, value.span);
  };
  switch (spec.kind) {
    case AttributeKind::integer: {
      if (is_name) return variable(value.name, spec.kind);
      WEFT_TRY(number, numbers_.number(value));
      result.kind = AttributeTerm::Kind::number;
      result.number = std::move(number);
      return result;
    }
    case AttributeKind::real:
      if (is_name) return variable(value.name, spec.kind);
      if (value.kind != Expression::Kind::number && value.kind != Expression::Kind::real)
        return wrong("a number or a name");
      result.kind = AttributeTerm::Kind::real;
      result.real = value.kind == Expression::Kind::real ? value.real : static_cast<double>(value.number);
      return result;
    case AttributeKind::word:
      if (is_name && (spec.name == "axis" || words_.contains(value.name.text)))
        return variable(value.name, spec.kind);
      if (!is_name && value.kind != Expression::Kind::quoted) return wrong("a word");
      result.kind = AttributeTerm::Kind::word;
      result.word = value.name.text;
      return result;
    case AttributeKind::index: {
      if (!is_name) return wrong("an index");
      WEFT_TRY(index, names_.single_index(value.name));
      result.kind = AttributeTerm::Kind::indices;
      result.indices = {index};
      return result;
    }
    case AttributeKind::dtype:
      if (!is_name) return wrong("a dtype or a name");
      if (const auto dtype = plan::find_dtype(value.name.text)) {
        result.kind = AttributeTerm::Kind::dtype;
        result.dtype = *dtype;
        return result;
      }
      return variable(value.name, spec.kind);
    case AttributeKind::indices:
    case AttributeKind::type: return list(value, spec);
  }
  return wrong("something else");
}

Result<AttributeTerm> AttributeResolver::list(const Expression& value, const plan::AttributeSpec& spec) {
  if (value.kind != Expression::Kind::list)
    return user_error(fmt::format("{} must be a list of indices", spec.name), "such as [B, n]", value.span);
  AttributeTerm result;
  result.kind = AttributeTerm::Kind::indices;
  const bool sized = spec.kind == AttributeKind::type;
  for (std::size_t k = 0; k < value.names.size(); ++k) {
    WEFT_TRY(index, value.parts[k].none ? names_.index(value.names[k]) : names_.single_index(value.names[k]));
    if (std::ranges::find(result.indices, index) != result.indices.end())
      return user_error(fmt::format("index {} appears twice", value.names[k].text), {}, value.names[k].span);
    result.indices.push_back(index);
    if (!sized && !value.parts[k].none)
      return user_error(fmt::format("{} takes indices without sizes", spec.name), {}, value.parts[k].span);
    if (!sized) continue;
    WEFT_TRY(number, size(value.parts[k]));
    result.sizes.push_back(std::move(number));
  }
  return result;
}

// On the left, a bare name binds the size.
Result<Number> AttributeResolver::size(const Expression& value) {
  Number result;
  if (value.none) {
    result.kind = Number::Kind::open;
    return result;
  }
  if (value.kind != Expression::Kind::name) return numbers_.number(value);
  WEFT_TRY(term, variable(value.name, AttributeKind::integer));
  result.kind = Number::Kind::variable;
  result.variable = term.variable;
  return result;
}

}  // namespace weft::rule
