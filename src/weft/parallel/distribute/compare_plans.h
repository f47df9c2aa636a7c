// weft/parallel/distribute/compare_plans.h -- compares two plans on the same random values.
//
// Over the field, results must be equal. In f64 they must agree to within what a rounding error in
// the operands does to the single-device plan, or a billionth of the tensor's largest element. If
// rounding error alone explains any difference, f64 proves nothing and the field decides.
#pragma once
#include <cstdint>
#include <optional>
#include <set>
#include <string>

#include "weft/base/random.h"
#include "weft/base/result.h"
#include "weft/parallel/distribute/choices.h"
#include "weft/parallel/distribute/distribute.h"
#include "weft/parallel/distribute/draw_sources.h"
#include "weft/parallel/distribute/prove.h"
#include "weft/plan/graph/graph.h"
#include "weft/plan/spmd/mesh.h"

namespace weft::distribute {

// Values with more elements than this are too large for the reference interpreter.
constexpr std::int64_t kMostProvenElements = 1 << 20;

// A key for which about half of the field's numbers count as positive. If few do, relu zeroes most
// of a layer, and plans that differ behind it agree.
std::uint64_t balanced_key(Random& random);

// Draws until one sample shows a decision outcome that was not seen yet, and records it in
// `choices`; gives up after many attempts. draw(Ties): Result<Choices::Values>, the outputs of
// choices.asked() for the next sample.
template <class Draw>
Result<Choices::Values> search_choices(Choices& choices, Draw&& draw) {
  constexpr int kMostDraws = 64, kMostInVain = 6;
  const int most = choices.is_done() ? 1 : choices.all_crossed() ? kMostInVain : kMostDraws;
  for (int draws = 1;; ++draws) {
    // Ties hide values that are multiplied by zero, so every other sample has none.
    const bool wants_ties = choices.any_seen() && draws % 2 == 1 && !choices.ties_seen();
    WEFT_TRY(values, draw(!wants_ties                      ? Ties::none
                          : choices.next_ties_have_zeros() ? Ties::with_zeros
                                                           : Ties::few_numbers));
    const bool shows_more = choices.shows_more(values);
    if (!shows_more && draws < most) continue;
    if (!shows_more) choices.give_up();
    choices.see(values);
    return values;
  }
}

struct ComparedPlans {
  const plan::Graph* original = nullptr;
  // Decisions of the original and of the plan's own nodes, which record samples over the field;
  // null: no coverage.
  Choices *choices = nullptr, *own = nullptr;
  // Collects outputs that differ instead of reporting a disagreement; null: differences are
  // reported.
  std::set<std::string>* differing = nullptr;
  const plan::Graph* open = nullptr;  // the original with the nodes decomposed that the plan decomposed
  const DistributedPlan* plan = nullptr;
  const plan::Graph* graph = nullptr;  // the plan's, or one with another dropout
  const spmd::MeshPlan* ranks = nullptr;
};

// Empty if the plans agree; `elements` grows by the number compared. T: Field or double. Over the
// field, the sample shows a decision outcome that was not seen yet, if one is found.
template <class T>
Result<std::optional<Disagreement>> compare(const ComparedPlans& plans, Random& random,
                                            std::int64_t& elements);

}  // namespace weft::distribute
