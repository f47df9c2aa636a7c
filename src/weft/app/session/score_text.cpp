#include "weft/app/session/score_text.h"

#include <fmt/format.h>

#include "weft/base/units.h"

namespace weft::session {

std::string print_loss(double loss) { return fmt::format("{:.3g}", loss); }

std::string print_score(const Score& score, std::string_view example, std::string_view where) {
  std::string_view what = example == "tokens" ? "windows" : "rows";
  if (score.examples == 1) what.remove_suffix(1);
  std::string text = fmt::format("{} {} {}", where, print_exact(score.examples), what);
  if (score.loss) text += fmt::format(": loss {}", print_loss(*score.loss));
  if (score.accuracy) text += fmt::format(", accuracy {:.4f}", *score.accuracy);
  return text + "\n";
}

nlohmann::ordered_json score_json(const Score& score) {
  nlohmann::ordered_json json = {{"examples", score.examples}};
  if (score.loss) json["loss"] = *score.loss;
  if (score.accuracy) json["accuracy"] = *score.accuracy;
  return json;
}

}  // namespace weft::session
