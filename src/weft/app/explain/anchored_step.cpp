#include "weft/app/explain/anchored_step.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "weft/app/explain/lines.h"
#include "weft/app/explain/whole.h"
#include "weft/base/units.h"

namespace weft::explain {
namespace {

// Only what was measured: "1.31 s and 61 GiB".
std::string words_of(const recipe::StepValues& values, const recipe::StepValues& measured) {
  std::string words = measured.seconds > 0 ? print_seconds(values.seconds) : std::string();
  if (measured.peak_bytes > 0)
    words += fmt::format("{}{}", words.empty() ? "" : " and ", print_bytes(values.peak_bytes));
  return words;
}

using AnchorJson = nlohmann::ordered_json;

AnchorJson json_of(const recipe::StepValues& values, const recipe::StepValues& measured) {
  AnchorJson json = AnchorJson::object();
  if (measured.seconds > 0) json["step_seconds"] = values.seconds;
  if (measured.peak_bytes > 0) json["memory_per_rank_bytes"] = whole(values.peak_bytes);
  return json;
}

}  // namespace

std::string print_text(const AnchoredStepText& text, std::size_t width) {
  const recipe::Anchor& anchor = text.anchor;
  std::string factors;
  for (const recipe::AnchorFactor& factor : anchor.factors)
    factors += fmt::format("{}{} {:.2f}x", factors.empty() ? "" : ", ", factor.what, factor.factor);
  std::string out =
      wrap(fmt::format("Anchored  measured {}, predicted {}; now {}", words_of(text.measured, text.measured),
                       words_of(anchor.before.front(), text.measured),
                       words_of(anchor.after.front(), text.measured)),
           width, 10);
  out += wrap(fmt::format("          {}", factors), width, 10);
  if (!text.given.trainer.empty())
    out +=
        wrap(fmt::format("          median of {} steps in a log of {}", text.given.steps, text.given.trainer),
             width, 10);
  return out;
}

std::string print_json(const AnchoredStepText& text) {
  const recipe::Anchor& anchor = text.anchor;
  AnchorJson json = {{"measured", json_of(text.measured, text.measured)},
                     {"before", json_of(anchor.before.front(), text.measured)},
                     {"after", json_of(anchor.after.front(), text.measured)},
                     {"factors", AnchorJson::object()}};
  for (const recipe::AnchorFactor& factor : anchor.factors)
    json["factors"][std::string(factor.what)] = factor.factor;
  json["stack"] = recipe::print_create(anchor.stack);
  return json.dump(-1, ' ', false, AnchorJson::error_handler_t::replace);
}

}  // namespace weft::explain
