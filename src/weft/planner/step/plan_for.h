// weft/planner/step/plan_for.h -- plan a model for a cluster under settings, hints and statistics.
#pragma once
#include "weft/base/result.h"
#include "weft/plan/cluster/cluster.h"
#include "weft/planner/search/optimize.h"
#include "weft/planner/statement/prepare.h"
#include "weft/planner/target/machine.h"
#include "weft/planner/target/slowness.h"

namespace weft::planner {

// Whether the error of a plan that does not fit suggests what would fit.
enum class Advice : std::uint8_t { given, not_asked };

// Progress and interruption callbacks for a search.
search::Watching watching_by(const Observer& context, const Prepared& prepared);

// The optimized plan for the target, under settings and hints. `compare`: also evaluates
// alternative distributions. `context` receives the progress of the search and may interrupt it;
// the result is then the best plan found so far.
Result<search::Choice> plan_for(const Knowledge& state, const Prepared& prepared, bool compare,
                                const Observer* context = nullptr, Advice advice = Advice::given);

// The same for this distribution, without stages or micro-batches. It may not fit.
Result<search::Choice> plan_given(const Knowledge& state, const Prepared& prepared,
                                  const distribute::Distribution& distribution, const Observer* context);

// The same with computation and links slowed down by `slowness`, found within `seconds`.
Result<search::Choice> plan_for_slow(const Knowledge& state, const Prepared& prepared,
                                     const Slowness& slowness, double seconds, const Observer& context);

// Whether the user interrupted the search. Then the plan must not be run.
bool was_interrupted(const search::Choice& choice);

// The same for another plan, on one device.
Result<search::Choice> plan_alone(const Knowledge& state, const Prepared& prepared, const plan::Graph& graph);

// The same in a launcher's job. Every rank plans, and since ranks have different measurements, all
// run the plan of rank 0. Collective: all ranks must call it equally often.
Result<search::Choice> plan_for_ranks(const Knowledge& state, const Prepared& prepared, bool compare,
                                      const Observer* context = nullptr);

// Uses a plan found by another rank or earlier, instead of searching. Its cost is predicted for
// this machine. `text`: the mesh, then the plan.
Result<search::Choice> adopt_plan(const Knowledge& state, const Prepared& prepared,
                                  const std::string& distribution, const std::string& text, bool compare);
// The same on one device.
Result<search::Choice> adopt_plan_alone(const Knowledge& state, const Prepared& prepared,
                                        const std::string& text);

}  // namespace weft::planner
