// weft/app/explain/improvement.h -- `weft improve`: two reports side by side, why one is better, and the changed lines.
//
//             today                                  better
//   Plan      TP 8 · PP 2 · DP 4                      TP 2 · DP 32 (ZeRO-1)
//   Step      5.1 s predicted · 12.4 k tokens/s       3.9 s predicted · 16.2 k tokens/s
//   ...
//   - --tensor-model-parallel-size 8          what was, and what takes its place, in the configuration's own lines
//   + --tensor-model-parallel-size 2
#pragma once
#include <string>
#include <vector>

#include "weft/app/explain/report.h"
#include "weft/translate/recipe/improve.h"

namespace weft::explain {

struct ImprovementText {
  Report about;           // what is known before the plan
  std::string precision;  // in the word of a setting
  const recipe::Improvement* improvement = nullptr;
  recipe::Language language = recipe::Language::megatron;
  recipe::Written before,
      after;  // both as the language's writer has them; `after` is empty where nothing is better
  std::vector<std::string> notes;
  double seconds = 0;  // that it took
};

std::string print_text(const ImprovementText& text);
std::string print_json(const ImprovementText& text);  // one line

// What of a step that recipe spends most on besides computing: "bubble: 22 % of the step". Its memory where it
// does not fit.
std::string what_dominates(const recipe::PricedRecipe& priced, double memory_bytes);

// Lines of `after`, marked: "  " as before, "+ " new, and "- " before where it is gone.
std::string marked_lines(const std::string& before, const std::string& after);

}  // namespace weft::explain
