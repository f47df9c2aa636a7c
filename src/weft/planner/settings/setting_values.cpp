#include "weft/planner/settings/setting_values.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "weft/base/nearest.h"
#include "weft/planner/search/optimize.h"
#include "weft/planner/settings/duration.h"

namespace weft::planner {

using language::syntax::Value;
using language::syntax::ValueKind;

Result<double> quantity(const Value& value, Dimension wanted) {
  Quantity found = value.quantity;
  if (value.kind == ValueKind::text) {
    auto parsed = parse_quantity(value.text);
    if (!parsed.ok()) {
      Error error = std::move(parsed).error();
      error.span = value.span;
      return error;
    }
    found = *parsed;
  } else if (value.kind != ValueKind::quantity && value.kind != ValueKind::number) {
    return user_error(fmt::format("expected {}", name(wanted)),
                      fmt::format("for example: {}", example(wanted)), value.span);
  }
  if (found.dimension != wanted)
    return user_error(fmt::format("expected {}, found {}", name(wanted), name(found.dimension)),
                      fmt::format("for example: {}", example(wanted)), value.span);
  return found.value;
}

Result<double> number_within(const Value& value, double low, double high, std::string_view range) {
  if (value.kind != ValueKind::number)
    return user_error("expected a number", fmt::format("{}", range), value.span);
  if (!(value.number.value >= low && value.number.value <= high))
    return user_error(fmt::format("expected {}, found {}", range, value.number.value), {}, value.span);
  return value.number.value;
}

Result<std::string_view> word_of(const Value& value, std::span<const std::string_view> words) {
  const bool is_word = value.kind == ValueKind::word || value.kind == ValueKind::text;
  if (is_word && std::ranges::find(words, value.text) != words.end()) return value.text;
  std::string hint = is_word ? did_you_mean(value.text, words) : std::string();
  const std::string found = is_word ? fmt::format(", found {}", value.text) : std::string();
  return user_error(fmt::format("expected one of {}{}", fmt::join(words, ", "), found), std::move(hint),
                    value.span);
}

Result<double> whole_within(const Value& value, double low, double high, std::string_view range) {
  WEFT_TRY(given, number_within(value, low, high, range));
  if (given != std::floor(given))
    return user_error(fmt::format("expected a whole number, found {}", given), {}, value.span);
  return given;
}

Result<bool> truth(const Value& value, std::string_view name) {
  if (value.kind != ValueKind::boolean)
    return user_error("expected TRUE or FALSE", fmt::format("for example: {} = true", name), value.span);
  return value.truth;
}

Status set_truth_or_automatic(std::optional<bool>& setting, const Value& value) {
  if (value.kind == ValueKind::boolean) return setting = value.truth, Status();
  constexpr std::string_view kTruths[] = {"true", "false", "automatic"};
  WEFT_TRY(word, word_of(value, kTruths));
  if (word != kTruths[2]) return setting = word == kTruths[0], Status();
  setting.reset();
  return {};
}

std::string print_truth_or_automatic(const std::optional<bool>& setting) {
  return !setting ? "automatic" : *setting ? "true" : "false";
}

Result<std::optional<measure::Network>> network_of(const Value& value) {
  constexpr std::string_view kExample = "for example: network = '1.2 GB/s, 30 us'; '' measures it";
  if (value.kind != ValueKind::text)
    return user_error("expected a rate and a latency as text", std::string(kExample), value.span);
  if (value.text.empty()) return std::optional<measure::Network>();
  const std::size_t comma = std::min(value.text.find(','), value.text.size());
  const auto part = [&](std::string_view text, Dimension wanted) -> Result<double> {
    while (text.starts_with(' ')) text.remove_prefix(1);
    const auto found = parse_quantity(text);
    if (found.ok() && found->dimension == wanted && found->value > 0) return found->value;
    return user_error(fmt::format("expected {} in the network, found '{}'", name(wanted), text),
                      std::string(kExample), value.span);
  };
  WEFT_TRY(rate, part(value.text.substr(0, comma), Dimension::bytes_per_second));
  WEFT_TRY(latency, part(value.text.substr(std::min(comma + 1, value.text.size())), Dimension::seconds));
  return std::optional(measure::Network{latency, rate});
}

Result<double> time_of(const Value& value, std::string_view name) {
  const Error wrong = user_error("expected a time such as '3h50m'",
                                 fmt::format("for example: {} = '3h50m'", name), value.span);
  if (value.kind == ValueKind::number && value.number.value == 0) return 0.0;
  double seconds = 0;
  if (value.kind == ValueKind::text) {
    const auto given = read_duration(value.text);
    if (!given) return wrong;
    seconds = *given;
  } else {
    WEFT_TRY(given, quantity(value, Dimension::seconds));
    seconds = given;
  }
  constexpr double kLongest = 366 * 86400.0;
  if (!(seconds > 0 && seconds <= kLongest)) return wrong;
  return seconds;
}

Result<std::vector<std::string>> stages_to_leave_out(const Value& value) {
  constexpr std::string_view kExample = "for example: disabled_stages = 'rewrite, rewrite communication'";
  if (value.kind != ValueKind::text)
    return user_error("expected planner stages as text", std::string(kExample), value.span);
  std::vector<std::string> off;
  for (std::string_view rest = value.text; !rest.empty();) {
    const std::size_t comma = std::min(rest.find(','), rest.size());
    std::string_view stage = rest.substr(0, comma);
    rest.remove_prefix(std::min(comma + 1, rest.size()));
    while (stage.starts_with(' ')) stage.remove_prefix(1);
    while (stage.ends_with(' ')) stage.remove_suffix(1);
    stage = search::current_stage_name(stage);
    std::vector<std::string_view> names = search::stage_names();
    std::erase(names, "distribute");
    if (stage == "distribute")
      return user_error("the planner stage distribute cannot be skipped: a plan for several devices needs it",
                        "distribution = '..' gives a distribution without a search", value.span);
    if (std::ranges::find(names, stage) == names.end()) {
      std::string hint = did_you_mean(stage, names);
      return user_error(fmt::format("unknown planner stage: {}", stage),
                        hint.empty() ? fmt::format("stages are {}", fmt::join(names, ", ")) : std::move(hint),
                        value.span);
    }
    off.emplace_back(stage);
  }
  return off;
}

}  // namespace weft::planner
