// weft/parallel/distribute/compare_plans.h -- two plans run on the same random values, in one kind of number.
//
// Over the field results must be equal. In f64 they must be alike: no further apart than what a change of the
// operands by a rounding error makes of the plan of one device, or a billionth of the tensor's largest
// element. Where rounding decides everything nothing is said, and the field has the word.
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

// More elements in one value than this are not for a definition to compute.
constexpr std::int64_t kMostProvenElements = 1 << 20;

// A key at which about half of all numbers of the field are above zero. Where few are, relu leaves nothing of a
// layer, and plans that differ behind it agree.
std::uint64_t balanced_key(Random& random);

// Draws from a generator until one shows a choice that was not seen yet, and has `choices` see it; after many in vain
// they give up. draw(Ties): Result<Choices::Values>, what choices.asked() comes to at the next values.
template <class Draw>
Result<Choices::Values> search_choices(Choices& choices, Draw&& draw) {
  constexpr int kMostDraws = 64, kMostInVain = 6;
  const int most = choices.is_done() ? 1 : choices.all_crossed() ? kMostInVain : kMostDraws;
  for (int draws = 1;; ++draws) {
    // Ties hide values that are multiplied by zero: every other draw has none.
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
  // Of the original and of the plan's own nodes, which see what is drawn over the field; null: any draw will do.
  Choices *choices = nullptr, *own = nullptr;
  // Where outputs that differ are written down and are no disagreement; null: nowhere.
  std::set<std::string>* differing = nullptr;
  const plan::Graph* open = nullptr;  // the original with the nodes open that the plan opened
  const DistributedPlan* plan = nullptr;
  const plan::Graph* graph = nullptr;  // the plan's, or one that differs in what its nodes drop
  const spmd::MeshPlan* ranks = nullptr;
};

// Nothing where the plans agree; `elements` grows by what was compared. T: Field or double. Over the field the draw is
// one that shows a choice which was not seen yet, where one is found.
template <class T>
Result<std::optional<Disagreement>> compare(const ComparedPlans& plans, Random& random,
                                            std::int64_t& elements);

}  // namespace weft::distribute
