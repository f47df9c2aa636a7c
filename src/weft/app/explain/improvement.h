// weft/app/explain/improvement.h -- `weft improve`: two reports side by side, reasons and changed lines.
//
//             today                                  better
//   Plan      TP 8 · PP 2 · DP 4                      TP 2 · DP 32 (ZeRO-1)
//   Step      5.1 s predicted · 12.4 k tokens/s       3.9 s predicted · 16.2 k tokens/s
//   ...
//   - --tensor-model-parallel-size 8          a diff of the configuration's own lines
//   + --tensor-model-parallel-size 2
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "weft/app/explain/anchored_step.h"
#include "weft/app/explain/report.h"
#include "weft/translate/recipe/improve.h"

namespace weft::explain {

struct ImprovementText {
  Report about;           // what is known before planning
  std::string precision;  // as the setting's value
  const recipe::Improvement* improvement = nullptr;
  std::optional<AnchoredStepText> anchored;  // what was measured of today's configuration
  recipe::Language language = recipe::Language::megatron;
  recipe::Written before,
      after;  // the user's text, and the text with what changes; empty if nothing is better
  std::vector<std::string> notes;
  double seconds = 0;  // search time
};

std::string print_text(const ImprovementText& text);
std::string print_json(const ImprovementText& text);  // one line

// The memory of one configuration, without a search: by kind, per device.
std::string memory_text(const recipe::EstimatedRecipe& priced, double limit);
std::string memory_json(const recipe::EstimatedRecipe& priced, double limit);  // one line

// The largest part of a recipe's step besides computing: "bubble: 22 % of the step". If the recipe
// does not fit, its memory.
std::string what_dominates(const recipe::EstimatedRecipe& priced, double memory_bytes);

// A diff: lines of `after` marked "  " (unchanged) or "+ " (new), and removed lines marked "- ".
std::string marked_lines(const std::string& before, const std::string& after);

}  // namespace weft::explain
