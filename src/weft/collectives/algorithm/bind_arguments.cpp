#include <algorithm>
#include <array>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "weft/base/nearest.h"
#include "weft/collectives/algorithm/evaluation.h"

namespace weft::collective {
namespace {

std::string_view name(const Argument& value) {
  constexpr std::array<std::string_view, 3> kNames = {"a number", "a word", "a list"};
  return kNames[value.index()];
}

}  // namespace

bool Evaluation::bind(const Arguments& arguments) {
  const auto& parameters = syntax_.parameters;
  for (const auto& [given, value] : arguments) {
    if (std::ranges::find(parameters, given, &Algorithm::Parameter::name) != parameters.end()) continue;
    std::vector<std::string_view> known;
    for (const Algorithm::Parameter& parameter : parameters) known.push_back(parameter.name);
    std::string hint = did_you_mean(given, known);
    if (hint.empty()) hint = fmt::format("it has {}", fmt::join(known, ", "));
    return fail({}, fmt::format("{} has no such parameter: {}", syntax_.name, given), std::move(hint));
  }
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const auto given = arguments.find(parameters[i].name);
    if (given != arguments.end()) {
      if (!bind_one(i, given->second)) return false;
    } else if (syntax_.defaults[i] != kNoExpression) {
      const Argument value = argument(syntax_.defaults[i], parameters[i].type);
      if (failed() || !bind_one(i, value)) return false;
    } else {
      return fail({}, fmt::format("{} needs a value for {}", syntax_.name, parameters[i].name),
                  fmt::format("write {}({}=...)", syntax_.name, parameters[i].name));
    }
  }
  if (ranks() < 1 || ranks() > kMostRanks)
    return fail({}, fmt::format("expected 1 to {} ranks, found {}", kMostRanks, ranks()));
  for (const ExpressionId condition : syntax_.where) {
    const bool holds = number(condition) != 0;
    if (failed()) return false;
    if (!holds)
      return fail(span(condition),
                  fmt::format("{} needs {}: {}", syntax_.name, source(condition), variables({condition})));
  }
  return true;
}

bool Evaluation::List::set(std::vector<std::int64_t> numbers) {
  items = std::move(numbers);
  sums.assign(1, 0);
  for (const std::int64_t item : items) {
    std::int64_t sum = 0;
    if (__builtin_add_overflow(sums.back(), item, &sum)) return false;
    sums.push_back(sum);
  }
  return true;
}

bool Evaluation::bind_one(std::size_t parameter, const Argument& value) {
  const ParameterType type = syntax_.parameters[parameter].type;
  const std::int32_t place = syntax_.parameter_places[parameter];
  if (value.index() != static_cast<std::size_t>(type)) {
    const Argument wanted = type == ParameterType::number ? Argument(std::int64_t{})
                            : type == ParameterType::word ? Argument(std::string())
                                                          : Argument(std::vector<std::int64_t>());
    return fail({}, fmt::format("{} of {} is {}, given {}", syntax_.parameters[parameter].name, syntax_.name,
                                name(wanted), name(value)));
  }
  switch (type) {
    case ParameterType::number: slots_[place] = std::get<std::int64_t>(value); break;
    case ParameterType::word: words_[place] = std::get<std::string>(value); break;
    case ParameterType::list:
      if (!lists_[place].set(std::get<std::vector<std::int64_t>>(value)))
        return fail({},
                    fmt::format("the sum of {} does not fit 64 bits", syntax_.parameters[parameter].name));
      break;
  }
  return true;
}

}  // namespace weft::collective
