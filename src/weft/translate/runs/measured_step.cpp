#include "weft/translate/runs/measured_step.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include <fmt/format.h>

#include "weft/base/nearest.h"
#include "weft/base/units.h"

namespace weft::runs {
namespace {

struct StatedValue {
  std::string_view name;
  Dimension dimension;
  double MeasuredStep::*field;
  std::string_view example;
};
constexpr StatedValue kStated[] = {
    {"step", Dimension::seconds, &MeasuredStep::seconds, "step=1.31s"},
    {"memory", Dimension::bytes, &MeasuredStep::peak_bytes, "memory=61GiB"},
    {"tokens_per_second_per_gpu", Dimension::count, &MeasuredStep::tokens_per_second_per_gpu,
     "tokens_per_second_per_gpu=5432"},
};

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

Status read_value(std::string_view part, MeasuredStep& made) {
  const std::size_t equal = part.find('=');
  const std::string_view name = trimmed(part.substr(0, equal));
  const StatedValue* found = nullptr;
  std::vector<std::string_view> names;
  for (const StatedValue& stated : kStated) {
    names.push_back(stated.name);
    if (stated.name == name) found = &stated;
  }
  if (found == nullptr) {
    std::string hint = did_you_mean(name, names);
    return user_error(
        fmt::format("expected a measured step, memory or tokens_per_second_per_gpu, found '{}'", name),
        hint.empty() ? "step=1.31s, memory=61GiB" : std::move(hint));
  }
  if (equal == std::string_view::npos)
    return user_error(fmt::format("expected = and a value after {}", name), std::string(found->example));
  auto quantity = parse_quantity(part.substr(equal + 1));
  if (!quantity.ok())
    return user_error(fmt::format("{}: {}", name, quantity.error().message), std::string(found->example));
  if (quantity->dimension != found->dimension)
    return user_error(fmt::format("{} must be {}, found {}", name, weft::name(found->dimension),
                                  weft::name(quantity->dimension)),
                      std::string(found->example));
  if (!(quantity->value > 0) || !std::isfinite(quantity->value))
    return user_error(fmt::format("{} must be positive, found {}", name, quantity->value),
                      std::string(found->example));
  if (made.*found->field != 0)
    return user_error(fmt::format("{} is given twice", name), "remove one of them");
  made.*found->field = quantity->value;
  return {};
}

}  // namespace

Result<MeasuredStep> read_stated_step(std::string_view text) {
  MeasuredStep made;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find(',', at), text.size());
    WEFT_TRY_STATUS(read_value(trimmed(text.substr(at, end - at)), made));
    at = end + 1;
  }
  if (made.seconds > 0 && made.tokens_per_second_per_gpu > 0)
    return user_error("expected step or tokens_per_second_per_gpu, found both", "remove one of them");
  return made;
}

Result<double> MeasuredStep::step_seconds(std::int64_t global_batch, std::int64_t sequence,
                                          std::int64_t devices) const {
  const auto batch = static_cast<double>(global_batch);
  if (seconds > 0) return seconds;
  if (examples_per_second > 0) return batch / examples_per_second;
  if (tokens_per_second_per_gpu == 0) return 0.0;
  if (sequence <= 0)
    return user_error("tokens per second need the tokens per example, which the configuration does not state",
                      "--sequence 4096");
  return batch * static_cast<double>(sequence) / tokens_per_second_per_gpu / static_cast<double>(devices);
}

}  // namespace weft::runs
