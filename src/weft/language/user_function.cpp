#include "weft/language/user_function.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "weft/base/nearest.h"

namespace weft::language {
namespace {

// The WeftQL name of a function of other systems.
std::string elsewhere(std::string_view name) {
  constexpr std::pair<std::string_view, std::string_view> kNames[] = {
      {"avg", "mean"}, {"average", "mean"}, {"ln", "log"}, {"power", "pow"}, {"count", "sum"}};
  for (const auto& [there, here] : kNames)
    if (there == name) return fmt::format("{} is written {} here", there, here);
  return {};
}

// Calls see() for every subexpression, itself first.
template <class See>
Status for_each_part(const syntax::Expression& expression, const See& see) {
  using enum syntax::ExpressionKind;
  WEFT_TRY_STATUS(see(expression));
  const auto all = [&](std::initializer_list<const syntax::Expression*> parts) -> Status {
    for (const syntax::Expression* part : parts)
      if (part != nullptr) WEFT_TRY_STATUS(for_each_part(*part, see));
    return {};
  };
  switch (expression.kind) {
    case literal:
    case boolean:
    case name: return {};
    case negate: return all({expression.as<syntax::Negate>().operand});
    case invert: return all({expression.as<syntax::Invert>().operand});
    case cast: return all({expression.as<syntax::Cast>().operand});
    case comparison:
      return all({expression.as<syntax::Comparison>().left, expression.as<syntax::Comparison>().right});
    case between: {
      const auto& three = expression.as<syntax::Between>();
      return all({three.value, three.low, three.high});
    }
    case chain: {
      const auto& terms = expression.as<syntax::Chain>();
      WEFT_TRY_STATUS(all({terms.first}));
      for (const syntax::Term& term : terms.rest) WEFT_TRY_STATUS(all({term.operand}));
      return {};
    }
    case choice: {
      const auto& cases = expression.as<syntax::Choice>();
      for (const syntax::When& when : cases.whens) WEFT_TRY_STATUS(all({when.condition, when.result}));
      return all({cases.otherwise});
    }
    case call:
      for (const syntax::Argument& argument : expression.as<syntax::Call>().arguments)
        WEFT_TRY_STATUS(all({argument.value}));
      return {};
  }
  return {};
}

// Longer cycles are left to the binder, whose limit on nested calls is far lower.
constexpr std::size_t kMostSeen = 1000;

// The path of calls from a function back to `name`, as function names; empty if there is none.
std::vector<std::string_view> way_back(const Catalog& catalog, std::string_view name,
                                       const FunctionDefinition& from, std::set<std::string_view>& seen) {
  std::vector<std::string_view> way;
  const auto see = [&](const syntax::Expression& part) -> Status {
    const auto* const call = part.if_a<syntax::Call>();
    if (call == nullptr || !way.empty()) return {};
    const std::string_view called = call->function.text;
    const auto own = catalog.functions.find(called);
    if (called == name)
      way = {called};
    else if (own != catalog.functions.end() && seen.size() < kMostSeen && seen.insert(called).second)
      way = way_back(catalog, name, own->second, seen);
    if (!way.empty() && way.front() != called) way.insert(way.begin(), called);
    return {};
  };
  (void)for_each_part(*from.statement->body, see);
  return way;
}

Status check_call(const Catalog& catalog, const syntax::CreateFunction& function, const syntax::Call& call) {
  const std::string_view name = function.name.text, called = call.function.text;
  std::vector<std::string_view> circle = {name};
  const auto own = catalog.functions.find(called);
  if (called == name) {
    circle.push_back(called);
  } else if (own != catalog.functions.end()) {
    std::set<std::string_view> seen = {called};
    const std::vector<std::string_view> way = way_back(catalog, name, own->second, seen);
    if (!way.empty()) circle.push_back(called);
    circle.insert(circle.end(), way.begin(), way.end());
  }
  if (circle.size() > 1)
    return user_error(fmt::format("function {} calls itself: {}", name, fmt::join(circle, " -> ")),
                      "functions are inlined, so they cannot be recursive", call.span);
  if (own != catalog.functions.end()) return check_arguments(call, spec_of(own->second));
  const FunctionSpec* const spec = find_function(called);
  if (spec == nullptr) return unknown_function(catalog, call.function);
  if (spec->kind != FunctionKind::pointwise && spec->name != "stop_gradient")
    return user_error(fmt::format("{} is not element-wise", spec->name),
                      fmt::format("a function must be: apply {} to its result, or write a LAYER", spec->name),
                      call.span);
  return check_arguments(call, *spec);
}

}  // namespace

Status check_function(const Catalog& catalog, const syntax::CreateFunction& function) {
  const std::string_view name = function.name.text;
  if (find_function(name) != nullptr)
    return user_error(fmt::format("{} is a built-in function", name), "give yours another name",
                      function.name.span);
  std::vector<std::string_view> arguments;
  for (const syntax::Name& parameter : function.parameters) {
    if (std::ranges::find(arguments, parameter.text) != arguments.end())
      return user_error(fmt::format("{} is declared twice in {}", parameter.text, name),
                        "give one of them another name", parameter.span);
    arguments.push_back(parameter.text);
  }
  return for_each_part(*function.body, [&](const syntax::Expression& part) -> Status {
    if (const auto* const call = part.if_a<syntax::Call>()) return check_call(catalog, function, *call);
    const auto* const use = part.if_a<syntax::NameUse>();
    if (use == nullptr || std::ranges::find(arguments, use->name) != arguments.end()) return {};
    std::string hint = did_you_mean(use->name, arguments);
    if (hint.empty()) hint = fmt::format("a function can use only its arguments: add {} to them", use->name);
    return user_error(fmt::format("unknown name '{}'", use->name), std::move(hint), use->span);
  });
}

std::string usage_of(const syntax::CreateFunction& function) {
  std::vector<std::string_view> names;
  for (const syntax::Name& parameter : function.parameters) names.push_back(parameter.text);
  return fmt::format("{}({})", function.name.text, fmt::join(names, ", "));
}

FunctionSpec spec_of(const FunctionDefinition& own) {
  const std::size_t count = own.statement->parameters.size();
  return {.name = own.statement->name.text,
          .kind = FunctionKind::pointwise,
          .fewest = count,
          .most = count,
          .usage = own.usage,
          .summary = {}};
}

Status check_arguments(const syntax::Call& call, const FunctionSpec& spec) {
  std::size_t positional = 0;
  for (std::size_t i = 0; i < call.arguments.size(); ++i) {
    const syntax::Argument& argument = call.arguments[i];
    if (!argument.label.given()) {
      ++positional;
      continue;
    }
    if (std::ranges::find(spec.labels, argument.label.text) == spec.labels.end()) {
      std::string hint = did_you_mean(argument.label.text, spec.labels);
      return user_error(fmt::format("{} has no argument named {}", spec.name, argument.label.text),
                        hint.empty() ? fmt::format("usage: {}", spec.usage) : std::move(hint),
                        argument.label.span);
    }
    for (std::size_t j = 0; j < i; ++j)
      if (call.arguments[j].label.text == argument.label.text)
        return user_error(fmt::format("argument {} is given twice", argument.label.text),
                          "remove one of them", argument.label.span);
  }
  if (positional < spec.fewest || positional > spec.most) {
    std::string hint = fmt::format("usage: {}", spec.usage);
    if (positional == 2 && (spec.name == "max" || spec.name == "min"))
      hint =
          fmt::format("for the element-wise {} of two tensors, write {}(a, b)",
                      spec.name == "max" ? "larger" : "smaller", spec.name == "max" ? "greatest" : "least");
    const std::string wanted =
        spec.fewest == spec.most ? fmt::format("{}", spec.fewest) : fmt::format("{} or more", spec.fewest);
    return user_error(fmt::format("{} takes {} argument{}, found {}", spec.name, wanted,
                                  spec.most == 1 ? "" : "s", positional),
                      std::move(hint), call.span);
  }
  const bool may_window = spec.kind == FunctionKind::window || spec.kind == FunctionKind::aggregate ||
                          spec.kind == FunctionKind::routing;
  if (call.windowed && !may_window)
    return user_error(fmt::format("{} is not a window function", spec.name), "remove OVER", call.span);
  if (!call.windowed && (spec.kind == FunctionKind::window || spec.kind == FunctionKind::routing))
    return user_error(fmt::format("{} needs OVER (PARTITION BY ...)", spec.name),
                      fmt::format("usage: {}", spec.usage), call.span);
  return {};
}

Error unknown_function(const Catalog& catalog, const syntax::Name& name) {
  std::vector<std::string_view> names(function_names().begin(), function_names().end());
  for (const auto& [own, definition] : catalog.functions) names.push_back(own);
  std::string hint = elsewhere(name.text);
  if (hint.empty()) hint = did_you_mean(name.text, names);
  if (catalog.layers.contains(name.text))
    hint = fmt::format("{} is a layer: call it in FROM, not in SELECT", name.text);
  return user_error(fmt::format("unknown function: {}", name.text),
                    hint.empty() ? "SHOW FUNCTIONS lists them" : std::move(hint), name.span);
}

}  // namespace weft::language
