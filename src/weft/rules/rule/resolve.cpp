#include "weft/rules/rule/resolve.h"

#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>

#include "weft/base/nearest.h"
#include "weft/rules/rule/check_rule.h"
#include "weft/rules/rule/infer_lists.h"
#include "weft/rules/rule/names.h"
#include "weft/rules/rule/resolve_attribute.h"
#include "weft/rules/rule/resolve_numbers.h"

namespace weft::rule {
namespace {

using syntax::Statement;
using syntax::Word;

constexpr std::size_t kMostValues = 4096;

using Values = std::map<std::string_view, std::uint16_t>;

// The state of a side while it is resolved.
struct Reading {
  Side side;
  Values names;
  std::vector<Word> defined;  // in order
  std::set<std::uint16_t> used;
};

class Resolver {
 public:
  Resolver(const syntax::Rule& text, std::span<const syntax::Guard> guards, Way way,
           const plan::OperatorSet& operators)
      : text_(text), way_(way), operators_(operators), names_(rule_), numbers_(names_, left_.names, guards) {}

  Result<Rule> resolve() {
    const bool forward = way_ == Way::forward;
    rule_.name = fmt::format("{}{}", text_.name.text, forward ? "" : ".reverse");
    rule_.why = text_.why.text;
    rule_.cite = text_.cite.text;
    rule_.kind = text_.normalize ? Kind::normalize : Kind::explore;
    rule_.line = text_.line;
    WEFT_TRY_STATUS(declare());
    WEFT_TRY_STATUS(inputs());
    WEFT_TRY_STATUS(side(forward ? text_.left : text_.right, left_, true));
    WEFT_TRY_STATUS(inputs_read());
    WEFT_TRY(when, numbers_.conditions(text_.when));
    rule_.when = std::move(when);
    WEFT_TRY_STATUS(names_.close());
    WEFT_TRY_STATUS(side(forward ? text_.right : text_.left, right_, false));
    WEFT_TRY_STATUS(outputs());
    rule_.left = std::move(left_.side);
    rule_.right = std::move(right_.side);
    if (Status status = check(rule_); !status.ok()) {
      Error error = std::move(status).error();
      error.span = text_.name.span;
      return error;
    }
    return std::move(rule_);
  }

 private:
  std::string_view left_word() const { return way_ == Way::forward ? "left" : "right"; }

  Status declare() {
    for (const syntax::Declaration& declaration : text_.any) {
      const std::string_view name = declaration.name.text;
      if (operators_.find(name) != nullptr)
        return user_error(fmt::format("{} is an operator and cannot be a variable", name), {},
                          declaration.name.span);
      if (operator_variables_.contains(name) || words_.contains(name))
        return user_error(fmt::format("declared twice: {}", name), {}, declaration.name.span);
      if (declaration.of.text == "word") {
        words_.insert(name);
        continue;
      }
      if (declaration.of.text != "unary" && declaration.of.text != "binary")
        return user_error(
            fmt::format("a variable stands for a unary or a binary operator or a word, found {}",
                        declaration.of.text),
            {}, declaration.of.span);
      operator_variables_.emplace(name, static_cast<std::uint16_t>(rule_.operators.size()));
      rule_.operators.push_back({std::string(name), declaration.of.text == "unary"
                                                        ? OperatorVariable::Class::unary
                                                        : OperatorVariable::Class::binary});
    }
    return {};
  }

  Status inputs() {
    for (const syntax::Input& input : text_.given) {
      RuleInput made;
      made.name = input.name.text;
      made.in_order = input.in_order;
      for (const Word& word : input.list) {
        WEFT_TRY(index, names_.index(word));
        if (std::ranges::find(made.list, index) != made.list.end())
          return user_error(fmt::format("index {} appears twice in {}", word.text, input.name.text), {},
                            word.span);
        made.list.push_back(index);
      }
      if (input.layout.span.known()) WEFT_TRY_STATUS(layout(input, made));
      const auto place = static_cast<std::uint16_t>(rule_.inputs.size());
      if (!left_.names.emplace(input.name.text, place).second)
        return user_error(fmt::format("two inputs are called {}", input.name.text), {}, input.name.span);
      for (Reading* reading : {&left_, &right_}) add_value(*reading, made.list, made.name);
      rule_.inputs.push_back(std::move(made));
    }
    right_.names = left_.names;
    return {};
  }

  Status layout(const syntax::Input& input, RuleInput& made) {
    const std::string_view kind = input.layout.text;
    plan::AxisLayout result;
    if (kind == "sliced") {
      WEFT_TRY(index, names_.single_index(input.of));
      if (std::ranges::find(made.list, index) == made.list.end())
        return user_error(fmt::format("index {} is not among {}", input.of.text, print(rule_, made.list)), {},
                          input.of.span);
      result = plan::AxisLayout::sliced(Symbol(index));
    } else if (kind == "partial") {
      const std::string_view of = input.of.text;
      if (of != "sum" && of != "max" && of != "min")
        return user_error(fmt::format("partial values combine by sum, max or min, found {}", of), {},
                          input.of.span);
      result = plan::AxisLayout::partial(of == "sum"   ? plan::Monoid::sum
                                         : of == "max" ? plan::Monoid::max
                                                       : plan::Monoid::min);
    } else if (kind == "varying") {
      result = plan::AxisLayout::varying();
    }
    WEFT_TRY(axis, names_.bind_variable(input.axis, plan::AttributeKind::word));
    made.layout = result;
    made.axis = axis;
    return {};
  }

  static void add_value(Reading& reading, std::optional<IndexList> list, std::string name) {
    reading.side.has_list.push_back(list.has_value());
    reading.side.lists.push_back(list.value_or(IndexList()));
    reading.side.names.push_back(std::move(name));
    ++reading.side.values;
  }

  Status side(const std::vector<Statement>& statements, Reading& reading, bool is_left) {
    for (const Statement& statement : statements) {
      WEFT_TRY(first, value(statement.term, reading, is_left));
      const std::size_t results = statement.term.call ? reading.side.nodes.back().results : 1;
      if (statement.names.size() > results)
        return user_error(fmt::format("{} has {} result{}, found {} names", statement.term.name.text, results,
                                      results == 1 ? "" : "s", statement.names.size()),
                          {}, statement.names[results].span);
      if (!statement.term.call && is_left && first < rule_.inputs.size())
        return user_error(
            fmt::format("{} is just the input {}", statement.names[0].text, statement.term.name.text),
            "the left side says what to find", statement.names[0].span);
      for (std::size_t k = 0; k < statement.names.size(); ++k) {
        const Word& word = statement.names[k];
        const auto place = static_cast<std::uint16_t>(first + k);
        if (!reading.names.emplace(word.text, place).second)
          return user_error(fmt::format("two values are called {}", word.text), {}, word.span);
        if (reading.side.names[place].empty()) reading.side.names[place] = word.text;
        reading.defined.push_back(word);
      }
    }
    return {};
  }

  Result<std::uint16_t> value(const syntax::Term& term, Reading& reading, bool is_left) {
    if (term.call) return node(term, reading, is_left);
    const auto found = reading.names.find(term.name.text);
    if (found != reading.names.end()) return found->second;
    std::vector<std::string_view> known;
    for (const auto& [name, place] : reading.names) known.push_back(name);
    std::string hint = did_you_mean(term.name.text, known);
    if (!is_left && left_.names.contains(term.name.text))
      hint = "the right side is made from the inputs alone";
    return user_error(fmt::format("unbound value: {}", term.name.text), std::move(hint), term.name.span);
  }

  Result<std::uint16_t> node(const syntax::Term& term, Reading& reading, bool is_left) {
    PatternNode made;
    std::vector<std::optional<IndexList>> lists;
    WEFT_TRY_STATUS(find_operator(term, made));
    for (const syntax::Term& operand : term.operands) {
      WEFT_TRY(place, value(operand, reading, is_left));
      made.operands.push_back(place);
      reading.used.insert(place);
      lists.push_back(reading.side.has_list[place] ? std::optional(reading.side.lists[place]) : std::nullopt);
    }
    WEFT_TRY_STATUS(check_arity(term, made));
    AttributeResolver attributes(names_, numbers_, words_, is_left);
    if (made.op != nullptr) {
      WEFT_TRY(terms, attributes.all(term, *made.op));
      made.attributes = std::move(terms);
      made.results = static_cast<std::uint16_t>(results_of(*made.op));
    } else if (!term.attributes.empty()) {
      return user_error(fmt::format("{} stands for operators without attributes", term.name.text), {},
                        term.attributes[0].name.span);
    }
    auto results = infer_lists(rule_, made, lists);
    if (!results.ok()) {
      Error error = std::move(results).error();
      error.span = term.span;
      return error;
    }
    made.first_result = static_cast<std::uint16_t>(reading.side.values);
    if (reading.side.values + made.results > kMostValues)
      return user_error(fmt::format("a side has at most {} values", kMostValues), {}, term.span);
    for (std::optional<IndexList>& list : *results) add_value(reading, std::move(list), "");
    reading.side.nodes.push_back(std::move(made));
    return reading.side.nodes.back().first_result;
  }

  Status find_operator(const syntax::Term& term, PatternNode& made) const {
    if (const auto found = operator_variables_.find(term.name.text); found != operator_variables_.end()) {
      made.operator_variable = found->second;
      return {};
    }
    // max_pool and max-pool are the same name.
    std::string name(term.name.text);
    std::ranges::replace(name, '_', '-');
    made.op = operators_.find(name);
    if (made.op != nullptr) return {};
    std::vector<std::string_view> known(operators_.names().begin(), operators_.names().end());
    for (const auto& [variable, place] : operator_variables_) known.push_back(variable);
    return user_error(fmt::format("unknown operator: {}", name), did_you_mean(name, known), term.name.span);
  }

  Status check_arity(const syntax::Term& term, const PatternNode& made) const {
    const auto refuse = [&](std::string_view takes, bool one) {
      return user_error(fmt::format("{} takes {} operand{}, found {}", term.name.text, takes, one ? "" : "s",
                                    made.operands.size()),
                        {}, term.span);
    };
    if (made.op == nullptr) {
      const std::size_t takes =
          rule_.operators[made.operator_variable].of == OperatorVariable::Class::unary ? 1 : 2;
      if (made.operands.size() == takes) return {};
      return refuse(std::to_string(takes), takes == 1);
    }
    const std::size_t fewest = made.op->min_inputs(), most = made.op->max_inputs();
    if (made.operands.size() >= fewest && made.operands.size() <= most) return {};
    return refuse(fewest == most ? fmt::format("{}", fewest) : fmt::format("{} to {}", fewest, most),
                  most == 1);
  }

  Status inputs_read() const {
    for (std::uint16_t i = 0; i < rule_.inputs.size(); ++i)
      if (!left_.used.contains(i))
        return user_error(
            fmt::format("unbound input: nothing on the {} reads {}", left_word(), rule_.inputs[i].name),
            "the side that is matched must read every input", text_.given[i].name.span);
    return {};
  }

  Status outputs() {
    for (const Word& word : left_.defined) {
      const auto other = right_.names.find(word.text);
      const std::uint16_t place = left_.names.at(word.text);
      if (other != right_.names.end())
        rule_.outputs.push_back({std::string(word.text), place, other->second});
      else if (!left_.used.contains(place) && !is_alias(word, left_))
        return one_sided(word, true);
    }
    for (const Word& word : right_.defined)
      if (!left_.names.contains(word.text) && !right_.used.contains(right_.names.at(word.text)))
        return one_sided(word, false);
    if (rule_.outputs.empty())
      return user_error(fmt::format("the sides of rule {} define no value in common", text_.name.text), {},
                        text_.name.span);
    return {};
  }

  // Whether the value also has a name that both sides define.
  bool is_alias(const Word& word, const Reading& reading) const {
    const std::uint16_t place = reading.names.at(word.text);
    return std::ranges::any_of(reading.defined, [&](const Word& other) {
      return reading.names.at(other.text) == place && right_.names.contains(other.text);
    });
  }

  Error one_sided(const Word& word, bool on_left) const {
    const bool said_left = on_left == (way_ == Way::forward);
    return user_error(fmt::format("{} is defined on the {} only, and nothing there reads it", word.text,
                                  said_left ? "left" : "right"),
                      fmt::format("define it on the {} too", said_left ? "right" : "left"), word.span);
  }

  const syntax::Rule& text_;
  Way way_;
  const plan::OperatorSet& operators_;
  Rule rule_;
  Reading left_, right_;
  Names names_;
  NumberResolver numbers_;
  std::map<std::string_view, std::uint16_t> operator_variables_;
  std::set<std::string_view> words_;
};

}  // namespace

Result<Rule> resolve(const syntax::Rule& rule, std::span<const syntax::Guard> guards, Way way,
                     const plan::OperatorSet& operators) {
  return Resolver(rule, guards, way, operators).resolve();
}

}  // namespace weft::rule
