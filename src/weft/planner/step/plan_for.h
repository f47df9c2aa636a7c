// weft/planner/step/plan_for.h -- the plan of a model for a cluster: what settings, hints and statistics lead to.
#pragma once
#include "weft/base/result.h"
#include "weft/plan/cluster/cluster.h"
#include "weft/planner/search/optimize.h"
#include "weft/planner/statement/prepare.h"
#include "weft/planner/target/machine.h"
#include "weft/planner/target/slowness.h"

namespace weft::planner {

// Whether a plan that does not fit is answered with what does.
enum class Advice : std::uint8_t { given, not_asked };

// Who looks on while a plan is searched for.
search::Watching watching_by(const Observer& context, const Prepared& prepared);

// What the optimizer makes of the plan for its target, as settings and hints say. Alternatives to its
// distribution are looked at where `compare`. `context` is told how far the search is and may interrupt it: then
// the best found so far is the answer.
Result<search::Choice> plan_for(const Knowledge& state, const Prepared& prepared, bool compare,
                                const Observer* context = nullptr, Advice advice = Advice::given);

// The same for this distribution, which is not in time, in place of what the settings say. It may not fit.
Result<search::Choice> plan_given(const Knowledge& state, const Prepared& prepared,
                                  const distribute::Distribution& distribution, const Observer* context);

// The same where everything takes as much longer as `slowness` says, found within `seconds`.
Result<search::Choice> plan_for_slow(const Knowledge& state, const Prepared& prepared,
                                     const Slowness& slowness, double seconds, const Observer& context);

// Whether the search was ended by hand: a step is not to run then.
bool was_interrupted(const search::Choice& choice);

// Of another plan in its place, of one device.
Result<search::Choice> plan_alone(const Knowledge& state, const Prepared& prepared, const plan::Graph& graph);

// The same for ranks that a launcher started: each plans by itself, and machines differ in what they have
// measured, so what rank 0 found is what all run. Collective: every rank calls it as often.
Result<search::Choice> plan_for_ranks(const Knowledge& state, const Prepared& prepared, bool compare,
                                      const Observer* context = nullptr);

// The plan that another rank found, or that was found before, in the place of what would be found now: what it
// costs here may differ. `text` has the mesh above the plan.
Result<search::Choice> take_over(const Knowledge& state, const Prepared& prepared,
                                 const std::string& distribution, const std::string& text, bool compare);
// The same of one device.
Result<search::Choice> take_over_alone(const Knowledge& state, const Prepared& prepared,
                                       const std::string& text);

}  // namespace weft::planner
