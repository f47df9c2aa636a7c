#include "weft/rules/rule/print_rule.h"

#include <algorithm>

#include <fmt/format.h>

#include "weft/base/letters.h"
#include "weft/plan/graph/words.h"
#include "weft/rules/rule/guards.h"
#include "weft/rules/rule/infer_lists.h"

namespace weft::rule {
namespace {

int strength(Number::Kind kind) {
  switch (kind) {
    case Number::Kind::add:
    case Number::Kind::subtract: return 1;
    case Number::Kind::multiply:
    case Number::Kind::divide:
    case Number::Kind::remainder: return 2;
    default: return 3;
  }
}

std::string_view sign(Number::Kind kind) {
  switch (kind) {
    case Number::Kind::add: return "+";
    case Number::Kind::subtract: return "-";
    case Number::Kind::multiply: return "*";
    case Number::Kind::divide: return "/";
    default: return "%";
  }
}

std::string in_parentheses(std::string text, bool wanted) {
  return wanted ? fmt::format("({})", text) : text;
}

class SidePrinter {
 public:
  SidePrinter(const Rule& rule, const Side& side, bool is_left)
      : rule_(rule), side_(side), is_left_(is_left) {}

  std::string print(std::string_view word) {
    std::string text;
    const auto line = [&](const std::string& statement) {
      text += fmt::format("  {:<6}{}\n", text.empty() ? word : "", statement);
    };
    for (const PatternNode& node : side_.nodes) {
      std::string names;
      for (std::uint16_t k = 0; k < node.results; ++k) {
        const std::string& name = side_.names[node.first_result + k];
        if (!name.empty()) names += (names.empty() ? "" : ", ") + name;
      }
      if (!names.empty()) line(fmt::format("{} = {}", names, term(node)));
    }
    for (const Rule::Output& output : rule_.outputs) {
      const std::string& name = side_.names[is_left_ ? output.left : output.right];
      if (name != output.name) line(fmt::format("{} = {}", output.name, name));
    }
    return text;
  }

 private:
  std::string value(std::uint16_t place) {
    if (!side_.names[place].empty()) return side_.names[place];
    const auto maker = std::ranges::find(side_.nodes, place, &PatternNode::first_result);
    return term(*maker);
  }

  std::string term(const PatternNode& node) {
    std::string arguments;
    const auto put = [&](const std::string& text) { arguments += (arguments.empty() ? "" : ", ") + text; };
    for (const std::uint16_t operand : node.operands) put(value(operand));
    for (std::size_t k = 0; k < node.attributes.size(); ++k)
      if (node.attributes[k].kind != AttributeTerm::Kind::standard)
        put(fmt::format("{}={}", node.op->attributes()[k].name,
                        attribute(node.attributes[k], node.op->attributes()[k])));
    return fmt::format("{}({})",
                       node.op != nullptr ? node.op->name() : rule_.operators[node.operator_variable].name,
                       arguments);
  }

  std::string attribute(const AttributeTerm& term, const plan::AttributeSpec& spec) {
    switch (term.kind) {
      case AttributeTerm::Kind::number: {
        return rule::print(term.number, rule_);
      }
      case AttributeTerm::Kind::real: return fmt::format("{}", term.real);
      case AttributeTerm::Kind::word: {
        const bool taken =
            spec.name == "axis" ||
            std::ranges::any_of(rule_.variables, [&](const Variable& v) { return v.name == term.word; });
        return is_plain_word(term.word) && !taken ? term.word : fmt::format("'{}'", term.word);
      }
      case AttributeTerm::Kind::variable: return rule_.variables[term.variable].name;
      case AttributeTerm::Kind::dtype: return std::string(plan::name(term.dtype));
      default: break;
    }
    if (spec.kind == plan::AttributeKind::index) return rule_.indices[term.indices[0]].name;
    std::string list;
    for (std::size_t k = 0; k < term.indices.size(); ++k) {
      if (k > 0) list += ", ";
      list += rule_.indices[term.indices[k]].name;
      if (k < term.sizes.size() && term.sizes[k].kind != Number::Kind::open)
        list += ": " + rule::print(term.sizes[k], rule_);
    }
    return fmt::format("[{}]", list);
  }

  const Rule& rule_;
  const Side& side_;
  bool is_left_;
};

std::string print_input(const RuleInput& input, const Rule& rule) {
  std::string text = input.name + print(rule, input.list);
  if (input.in_order) text += " in order";
  if (!input.layout) return text;
  switch (input.layout->kind) {
    case plan::AxisLayout::Kind::replicated: text += " replicated"; break;
    case plan::AxisLayout::Kind::sliced:
      text += fmt::format(" sliced({})", rule.indices[input.layout->index.value].name);
      break;
    case plan::AxisLayout::Kind::partial:
      text += fmt::format(" partial({})", plan::name(input.layout->monoid));
      break;
    case plan::AxisLayout::Kind::varying: text += " varying"; break;
  }
  return fmt::format("{} on {}", text, rule.variables[input.axis].name);
}

// Words that an attribute binds must be declared, except for mesh axes.
std::vector<std::string> declared_words(const Rule& rule) {
  std::vector<std::string> result;
  for (const PatternNode& node : rule.left.nodes)
    for (std::size_t k = 0; k < node.attributes.size(); ++k) {
      const plan::AttributeSpec& spec = node.op->attributes()[k];
      if (spec.kind != plan::AttributeKind::word || spec.name == "axis") continue;
      if (node.attributes[k].kind != AttributeTerm::Kind::variable) continue;
      const std::string& name = rule.variables[node.attributes[k].variable].name;
      if (std::ranges::find(result, name) == result.end()) result.push_back(name);
    }
  return result;
}

}  // namespace

std::string_view name(Kind kind) { return kind == Kind::normalize ? "normalize" : "explore"; }

std::string print(const Number& number, const Rule& rule) {
  switch (number.kind) {
    case Number::Kind::literal: return fmt::format("{}", number.literal);
    case Number::Kind::variable: return rule.variables[number.variable].name;
    case Number::Kind::size:
      return fmt::format("size({}, {})", rule.left.names[number.value], rule.indices[number.index].name);
    case Number::Kind::elements: return fmt::format("elements({})", rule.left.names[number.value]);
    case Number::Kind::ranks: return fmt::format("ranks({})", rule.variables[number.variable].name);
    case Number::Kind::open: return "";
    default: break;
  }
  const int own = strength(number.kind);
  return fmt::format(
      "{} {} {}", in_parentheses(print(number.parts[0], rule), strength(number.parts[0].kind) < own),
      sign(number.kind), in_parentheses(print(number.parts[1], rule), strength(number.parts[1].kind) <= own));
}

std::string print(const Condition& condition, const Rule& rule) {
  const GuardWord& word = guard_word(condition.kind);
  const auto argument = [&](std::size_t k) {
    const std::uint16_t place = k == 0 ? condition.value : condition.other;
    switch (word.arguments[k]) {
      case GuardWord::Argument::value: return rule.left.names[place];
      case GuardWord::Argument::index: return rule.indices[place].name;
      default: return print(k == 0 ? condition.left : condition.right, rule);
    }
  };
  if (word.is_sign()) return fmt::format("{} {} {}", argument(0), word.name, argument(1));
  if (word.argument_count() == 1) return fmt::format("{}({})", word.name, argument(0));
  return fmt::format("{}({}, {})", word.name, argument(0), argument(1));
}

std::string print(const std::vector<Condition>& conditions, const Rule& rule) {
  std::string text;
  for (const Condition& condition : conditions)
    text += (text.empty() ? "" : " and ") + print(condition, rule);
  return text;
}

std::string print(const Rule& rule) {
  std::string text = fmt::format("rule {} {}\n", rule.name, name(rule.kind));
  if (!rule.why.empty()) text += fmt::format("  why   {}\n", rule.why);
  if (!rule.cite.empty()) text += fmt::format("  cite  {}\n", rule.cite);
  for (const OperatorVariable& variable : rule.operators)
    text += fmt::format("  any   {} {}\n", variable.of == OperatorVariable::Class::unary ? "unary" : "binary",
                        variable.name);
  for (const std::string& word : declared_words(rule)) text += fmt::format("  any   word {}\n", word);
  std::string given;
  for (const RuleInput& input : rule.inputs) given += (given.empty() ? "" : ", ") + print_input(input, rule);
  text += fmt::format("  given {}\n", given);
  text += SidePrinter(rule, rule.left, true).print("left");
  text += SidePrinter(rule, rule.right, false).print("right");
  if (!rule.when.empty()) text += fmt::format("  when  {}\n", print(rule.when, rule));
  return text;
}

}  // namespace weft::rule
