#include "weft/rules/rule/names.h"

#include <fmt/format.h>

#include "weft/base/nearest.h"

namespace weft::rule {
namespace {

// The most names per kind: they are numbered by 16 bits, and indices must fit in a 64-bit mask.
constexpr std::size_t kMostIndices = 64, kMostVariables = 256;

bool is_upper(std::string_view name) { return !name.empty() && name[0] >= 'A' && name[0] <= 'Z'; }

template <class Map>
std::string suggest(std::string_view name, const Map& known) {
  std::vector<std::string_view> names;
  for (const auto& [text, what] : known) names.push_back(text);
  return did_you_mean(name, names);
}

std::string_view kind_name(plan::AttributeKind kind) {
  switch (kind) {
    case plan::AttributeKind::integer: return "a whole number";
    case plan::AttributeKind::real: return "a number";
    case plan::AttributeKind::word: return "a word";
    case plan::AttributeKind::dtype: return "a dtype";
    default: return "an index";
  }
}

}  // namespace

Status Names::close() {
  closed_ = true;
  for (const auto& [name, known] : variables_)
    if (!known.bound)
      return user_error(fmt::format("the left side does not bind {}", name),
                        "an attribute that is only this name binds it", known.first_use);
  return {};
}

Result<std::uint16_t> Names::index(const syntax::Word& word) {
  if (const auto found = indices_.find(word.text); found != indices_.end()) return found->second;
  if (closed_)
    return user_error(fmt::format("the left side has no index {}", word.text), suggest(word.text, indices_),
                      word.span);
  if (rule_.indices.size() >= kMostIndices)
    return user_error(fmt::format("a rule has at most {} index variables", kMostIndices), {}, word.span);
  const auto place = static_cast<std::uint16_t>(rule_.indices.size());
  rule_.indices.push_back({std::string(word.text), is_upper(word.text)});
  indices_.emplace(word.text, place);
  return place;
}

Result<std::uint16_t> Names::single_index(const syntax::Word& word) {
  if (is_upper(word.text))
    return user_error(fmt::format("one index is needed here, and {} may be any number of them", word.text),
                      "a lower-case name stands for one index", word.span);
  return index(word);
}

Result<std::uint16_t> Names::variable(const syntax::Word& word, plan::AttributeKind kind, bool binds) {
  const auto found = variables_.find(word.text);
  if (found != variables_.end()) {
    Known& known = found->second;
    const plan::AttributeKind is = rule_.variables[known.place].kind;
    if (is != kind)
      return user_error(
          fmt::format("{} is {}, and here {} is needed", word.text, kind_name(is), kind_name(kind)), {},
          word.span);
    known.bound |= binds;
    return known.place;
  }
  if (closed_)
    return user_error(fmt::format("the left side does not bind {}", word.text),
                      suggest(word.text, variables_), word.span);
  if (rule_.variables.size() >= kMostVariables)
    return user_error(fmt::format("a rule has at most {} variables", kMostVariables), {}, word.span);
  const auto place = static_cast<std::uint16_t>(rule_.variables.size());
  rule_.variables.push_back({std::string(word.text), kind});
  variables_.emplace(word.text, Known{place, binds, word.span});
  return place;
}

Result<std::uint16_t> Names::bind_variable(const syntax::Word& word, plan::AttributeKind kind) {
  return variable(word, kind, !closed_);
}

Result<std::uint16_t> Names::use_variable(const syntax::Word& word, plan::AttributeKind kind) {
  return variable(word, kind, false);
}

}  // namespace weft::rule
