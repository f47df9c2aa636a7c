// weft/app/explain/improvement.h -- what `weft improve` says: what a recipe costs, a better one, and why it is.
//
//   today     tensor 8, pipeline 2, data 4, micro-batch 1 (16 a step)
//   step      5.1 s: computing 3.2 s, waiting for exchanges 1.4 s, bubble 320 ms, update 180 ms
//   ...
//   - --tensor-model-parallel-size 8          what was, and what takes its place, in the configuration's own lines
//   + --tensor-model-parallel-size 2
#pragma once
#include <string>
#include <vector>

#include "weft/app/explain/lines.h"
#include "weft/plan/cluster/cluster.h"
#include "weft/plan/graph/type.h"
#include "weft/translate/recipe/improve.h"

namespace weft::explain {

struct ImprovementText {
  std::string model, cluster_name;
  std::vector<std::pair<std::string, std::int64_t>> sizes;
  std::string precision;
  const recipe::Improvement* improvement = nullptr;
  recipe::Language language = recipe::Language::megatron;
  recipe::Written before,
      after;  // both as the language's writer has them; `after` is empty where nothing is better
  std::vector<std::string> notes;
  double memory_bytes = 0;  // that a rank may take; 0: not known
  double seconds = 0;       // that it took
  std::size_t width = kUsualWidth;
};

std::string print_text(const ImprovementText& text);
std::string print_json(const ImprovementText& text);  // one line

// What of a step that recipe spends most on besides computing: "bubble: 22 % of the step". Its memory where it
// does not fit.
std::string what_dominates(const recipe::PricedRecipe& priced, double memory_bytes);

// Lines of `after`, marked: "  " as before, "+ " new, and "- " before where it is gone.
std::string marked_lines(const std::string& before, const std::string& after);

}  // namespace weft::explain
