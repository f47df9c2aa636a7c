#include <map>

#include <fmt/format.h>

#include "weft/language/complaint.h"
#include "weft/rules/rule/resolve.h"
#include "weft/rules/rule/rule.h"
#include "weft/rules/rule/syntax.h"

namespace weft::rule {
namespace {

Error in_file(Error error, std::string_view text, std::string_view file) {
  error.message = fmt::format("{}: {}", file, error.message);
  error.text = std::make_shared<const std::string>(text);
  return error;
}

Status names_differ(const syntax::File& file, std::string_view text) {
  std::map<std::string_view, Span> seen;
  const auto add = [&](std::string_view kind, const syntax::Word& word) -> Status {
    const auto [first, is_new] = seen.emplace(word.text, word.span);
    if (is_new) return {};
    return user_error(fmt::format("two {}s are called {}, the first on line {}", kind, word.text,
                                  language::position(text, first->second.offset).line),
                      {}, word.span);
  };
  for (const syntax::Guard& guard : file.guards) WEFT_TRY_STATUS(add("guard", guard.name));
  seen.clear();
  for (const syntax::Rule& rule : file.rules) WEFT_TRY_STATUS(add("rule", rule.name));
  return {};
}

Result<std::vector<Rule>> parse(std::string_view text, std::string_view file,
                                const plan::OperatorSet& operators) {
  WEFT_TRY(written, syntax::parse(text));
  WEFT_TRY_STATUS(names_differ(written, text));
  std::vector<Rule> rules;
  for (const syntax::Rule& rule : written.rules) {
    WEFT_TRY(forward, resolve(rule, written.guards, Way::forward, operators));
    rules.push_back(std::move(forward));
    rules.back().file = file;
    if (!rule.both_ways) continue;
    auto reverse = resolve(rule, written.guards, Way::reverse, operators);
    if (!reverse.ok()) {
      Error error = std::move(reverse).error();
      error.message = fmt::format("{} cannot be reversed: {}", rule.name.text, error.message);
      return error;
    }
    rules.push_back(std::move(reverse).value());
    rules.back().file = file;
  }
  return rules;
}

}  // namespace

Result<std::vector<Rule>> parse_rules(std::string_view text, std::string_view file,
                                      const plan::OperatorSet& operators) {
  auto rules = parse(text, file, operators);
  if (!rules.ok()) return in_file(std::move(rules).error(), text, file);
  return rules;
}

}  // namespace weft::rule
