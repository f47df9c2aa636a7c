#include <algorithm>
#include <array>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "weft/collectives/algorithm/algorithm_syntax.h"
#include "weft/collectives/chunks/lexicon.h"

namespace weft::collective {
namespace {

// Operator precedence, loosest first. An operand looser than its context needs parentheses.
enum Binding : int { kChoice, kOr, kAnd, kNot, kComparison, kSum, kProduct, kSign, kSingle };

struct Infix {
  Operator op;
  std::string_view text;
  Binding binding;
};
constexpr auto kInfixes = std::to_array<Infix>({
    {Operator::logical_or, "OR", kOr},
    {Operator::logical_and, "AND", kAnd},
    {Operator::equal, "=", kComparison},
    {Operator::not_equal, "<>", kComparison},
    {Operator::less, "<", kComparison},
    {Operator::less_equal, "<=", kComparison},
    {Operator::greater, ">", kComparison},
    {Operator::greater_equal, ">=", kComparison},
    {Operator::same_word, "=", kComparison},
    {Operator::other_word, "<>", kComparison},
    {Operator::add, "+", kSum},
    {Operator::subtract, "-", kSum},
    {Operator::multiply, "*", kProduct},
    {Operator::divide, "/", kProduct},
    {Operator::modulo, "MOD", kProduct},
});

class AlgorithmPrinter {
 public:
  explicit AlgorithmPrinter(const AlgorithmSyntax& syntax) : syntax_(syntax) {}

  std::string print() {
    out_ = fmt::format("ALGORITHM {} ({})\n", syntax_.name, fmt::join(parameters(), ", "));
    collective();
    clause("SCRATCH", syntax_.scratch,
           syntax_.scratch_slot >= 0 ? fmt::format(" PER {}", name(syntax_.scratch_name)) : "");
    if (!syntax_.where.empty()) {
      std::vector<std::string> conditions;
      for (const ExpressionId id : syntax_.where) conditions.push_back(text(id));
      out_ += fmt::format("  WHERE {}\n", fmt::join(conditions, ", "));
    }
    clause("STEPS", syntax_.steps);
    clause("WIRE", syntax_.wire);
    for (const FunctionSyntax& function : syntax_.functions) {
      std::vector<std::string_view> names;
      for (const std::int32_t id : function.parameters) names.push_back(name(id));
      out_ +=
          fmt::format("  FUNCTION {}({}) = {}\n", function.name, fmt::join(names, ", "), text(function.body));
    }
    if (!syntax_.ensure.empty()) {
      out_ += "ENSURE\n";
      block(syntax_.ensure);
    }
    out_ += "BEGIN\n";
    block(syntax_.body);
    out_ += "END\n";
    return std::move(out_);
  }

 private:
  const std::string& name(std::int32_t id) const { return syntax_.names[id]; }

  std::vector<std::string> parameters() const {
    std::vector<std::string> result;
    for (std::size_t i = 0; i < syntax_.parameters.size(); ++i) {
      const ExpressionId otherwise = syntax_.defaults[i];
      result.push_back(syntax_.parameters[i].name);
      if (otherwise != kNoExpression) result.back() += fmt::format(" = {}", text(otherwise));
    }
    return result;
  }

  void collective() {
    std::vector<std::string> fields;
    const auto field = [&](std::string_view what, ExpressionId value) {
      if (value != kNoExpression) fields.push_back(fmt::format("{} => {}", what, text(value)));
    };
    field("chunks", syntax_.chunks);
    field("root", syntax_.root);
    field("peer", syntax_.peer);
    field("counts", syntax_.counts);
    field("inputs", syntax_.inputs);
    field("outputs", syntax_.outputs);
    out_ += fmt::format("  COLLECTIVE {}", collective::name(syntax_.kind));
    if (!fields.empty()) out_ += fmt::format(" ({})", fmt::join(fields, ", "));
    out_ += syntax_.in_place ? " IN PLACE\n" : "\n";
  }

  void clause(std::string_view word, ExpressionId value, std::string_view rest = {}) {
    if (value != kNoExpression) out_ += fmt::format("  {} {}{}\n", word, text(value), rest);
  }

  void line(std::string_view content) { out_ += fmt::format("{:{}}{}\n", "", 2 * depth_, content); }

  void block(const Block& statements) {
    ++depth_;
    for (const Statement& each : statements)
      std::visit([this](const auto& does) { statement(does); }, each.does);
    --depth_;
  }

  void statement(const Assignment& does) {
    line(does.declares ? fmt::format("LET {} = {}", name(does.name), text(does.value))
                       : fmt::format("{} := {}", name(does.name), text(does.value)));
  }

  void statement(const ForLoop& does) {
    line(fmt::format("FOR {} IN {} TO {}{}", name(does.name), text(does.from), text(does.to),
                     optional(" BY ", does.by)));
    block(does.body);
    line("END");
  }

  void statement(const WhileLoop& does) {
    line(fmt::format("WHILE {}", text(does.condition)));
    block(does.body);
    line("END");
  }

  void statement(const Branch& does) {
    bool first = true;
    for (const Branch::Arm& arm : does.arms) {
      line(arm.condition == kNoExpression
               ? "ELSE"
               : fmt::format("{} {} THEN", first ? "IF" : "ELSIF", text(arm.condition)));
      block(arm.body);
      first = false;
    }
    line("END");
  }

  void statement(const Transfer& does) {
    const bool copies = does.verb == Move::Verb::copy;
    line(fmt::format("{} {} {} {}{}{}", copies ? "COPY" : "REDUCE", place(does.from), copies ? "TO" : "INTO",
                     place(does.to), optional(" COUNT ", does.count), optional(" ON ", does.channel)));
  }

  void statement(const Call& does) {
    std::vector<std::string> arguments;
    for (const Call::NamedArgument& argument : does.arguments)
      arguments.push_back(fmt::format("{} => {}", argument.name, text(argument.value)));
    const std::string scheme =
        does.scheme == kNoExpression ? "" : fmt::format(" BY {}", text(does.scheme, kSingle));
    const auto mapping = [&](std::string_view word, const std::optional<Call::Mapping>& where) {
      if (!where) return std::string();
      return fmt::format(" {} {} AT {}[{}]", word, name(where->name), buffer(where->buffer),
                         text(where->index));
    };
    line(fmt::format("CALL {}{} ({}) RANK {} AT {}{}{}{}{}", does.callee, scheme, fmt::join(arguments, ", "),
                     name(does.rank_name), text(does.rank), mapping("CHUNK", does.chunk),
                     mapping("INPUT", does.input), mapping("OUTPUT", does.output),
                     optional(" ON ", does.channel)));
  }

  void statement(const Requirement& does) {
    line(fmt::format("REQUIRE {}, {}", text(does.condition), quote(does.message)));
  }

  void statement(const WantClause& does) {
    std::vector<std::string> inputs;
    for (const PlaceSyntax& input : does.inputs) inputs.push_back(place(input));
    line(fmt::format("WANT {} = {}", place(does.output), fmt::join(inputs, " + ")));
  }

  static std::string_view buffer(PlaceBuffer buffer) {
    constexpr std::array<std::string_view, 4> kNames = {"input", "output", "scratch", "data"};
    return kNames[static_cast<std::size_t>(buffer)];
  }

  std::string place(const PlaceSyntax& place) const {
    return fmt::format("{}[{}] AT {}", buffer(place.buffer), text(place.index), text(place.rank, kSum));
  }

  std::string optional(std::string_view word, ExpressionId id) const {
    return id == kNoExpression ? std::string() : fmt::format("{}{}", word, text(id));
  }

  std::string text(ExpressionId id, Binding least = kChoice) const {
    Binding binding = kSingle;
    std::string result = bare(syntax_.expressions[id], binding);
    return binding < least ? fmt::format("({})", result) : result;
  }

  std::string bare(const Expression& expression, Binding& binding) const {
    for (const Infix& infix : kInfixes) {
      if (infix.op != expression.op) continue;
      binding = infix.binding;
      // Comparisons do not chain; the other operators are left-associative.
      const auto tighter = static_cast<Binding>(binding + 1);
      return fmt::format("{} {} {}", text(expression.first, binding == kComparison ? tighter : binding),
                         infix.text, text(expression.second, tighter));
    }
    switch (expression.op) {
      case Operator::number: return fmt::format("{}", expression.value);
      case Operator::word: return quote(syntax_.words[expression.value]);
      case Operator::variable:
      case Operator::argument:
      case Operator::word_parameter:
      case Operator::list_parameter: return name(expression.name);
      case Operator::list: return fmt::format("[{}]", operands(expression));
      case Operator::item: return fmt::format("{}[{}]", text(expression.first), text(expression.second));
      case Operator::call:
        return fmt::format("{}({})", syntax_.functions[expression.value].name, operands(expression));
      case Operator::logical_not: binding = kNot; return fmt::format("NOT {}", text(expression.first, kNot));
      case Operator::negate:  // two minus signs in a row would start a comment
        binding = kSign;
        return fmt::format("-{}", text(expression.first, kSingle));
      case Operator::choose:
        binding = kChoice;
        return fmt::format("IF {} THEN {} ELSE {}", text(expression.first), text(expression.second),
                           text(expression.third));
      default: return function(expression);
    }
  }

  std::string function(const Expression& expression) const {
    const auto known = std::ranges::find(builtin_functions(), expression.op, &BuiltinFunction::op);
    if (expression.operand_count > 0) return fmt::format("{}({})", known->name, operands(expression));
    return fmt::format("{}({}{})", known->name, text(expression.first), optional(", ", expression.second));
  }

  std::string operands(const Expression& expression) const {
    std::vector<std::string> result;
    for (std::int32_t i = 0; i < expression.operand_count; ++i)
      result.push_back(text(syntax_.operands[expression.first + i]));
    return fmt::format("{}", fmt::join(result, ", "));
  }

  const AlgorithmSyntax& syntax_;
  std::string out_;
  std::size_t depth_ = 0;
};

}  // namespace

std::string print(const Algorithm& algorithm) { return AlgorithmPrinter(algorithm.syntax()).print(); }

}  // namespace weft::collective
