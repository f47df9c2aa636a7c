// weft/distribute/compare_plans.h -- two plans run on the same random values, in one kind of number.
//
// Over the field results must be equal. In f64 they must be alike: no further apart than what a change of the
// operands by a rounding error makes of the plan of one device, or a billionth of the tensor's largest
// element. Where rounding decides everything nothing is said, and the field has the word.
#pragma once
#include <cstdint>
#include <optional>

#include "weft/base/random.h"
#include "weft/base/result.h"
#include "weft/distribute/choices.h"
#include "weft/distribute/distribute.h"
#include "weft/distribute/prove.h"
#include "weft/plan/graph.h"
#include "weft/spmd/mesh.h"

namespace weft::distribute {

// More elements in one value than this are not for a definition to compute.
constexpr std::int64_t kMostProvenElements = 1 << 20;

// A key at which about half of all numbers of the field are above zero. Where few are, relu leaves nothing of a
// layer, and plans that differ behind it agree.
std::uint64_t balanced_key(Random& random);

struct ComparedPlans {
  const plan::Graph* original = nullptr;
  Choices* choices = nullptr;  // of the original, which see what is drawn over the field; none: nobody asks
  const plan::Graph* open = nullptr;  // the original with the nodes open that the plan opened
  const DistributedPlan* plan = nullptr;
  const plan::Graph* graph = nullptr;  // the plan's, or one that differs in what its nodes drop
  const spmd::MeshPlan* ranks = nullptr;
};

// Nothing where the plans agree; `elements` grows by what was compared. T: Field or double.
template <class T>
Result<std::optional<Disagreement>> compare(const ComparedPlans& plans, Random& random,
                                            std::int64_t& elements);

}  // namespace weft::distribute
