// weft/app/session/plan_for.h -- the plan of a model for a cluster: what settings, hints and statistics lead to.
//
// Included by app/session and app/command only.
#pragma once
#include "weft/app/session/prepare.h"
#include "weft/app/session/slowness.h"
#include "weft/base/result.h"
#include "weft/plan/cluster/cluster.h"
#include "weft/planner/exchange/exchange_prices.h"
#include "weft/planner/search/optimize.h"

namespace weft::session {

// What a rank of the cluster may take: memory_limit, or what its device has; of LOCAL ranks their part of
// this machine's memory. 0: no limit is known.
double memory_of_a_rank(const Settings& settings, const cluster::Cluster& cluster);

// Threads of a rank: of one on this machine as TRAIN would start it, else 1.
int workers_of(const Settings& settings, const cluster::Cluster& cluster);

// What the settings require of a distribution.
search::Asked asked_of(const Settings& settings);

// What steps on the cluster cost, with the transport and the algorithms that are set for LOCAL ranks.
exchange::CostsOn costs_of(const cluster::Cluster& cluster, const Settings& settings, int workers);

// What steps on the cluster cost and how its ranks run them, with what was measured on this machine where
// they are LOCAL. REQUIRES: the cluster outlives it.
search::Machine machine_of(const Settings& settings, const cluster::Cluster& cluster);

// One of its devices, for itself: its mesh is rank=1.
cluster::Cluster alone(const cluster::Cluster& cluster);

// The rule as it may fire, nothing where it is not proven; asked for once a session.
std::optional<rule::Rule> prove_once(const Session::State& state, const rule::Rule& rule);

// Whether a plan that does not fit is answered with what does.
enum class Advice : std::uint8_t { given, not_asked };

// Who looks on while a plan is searched for.
search::Watching watching_by(const Context& context, const Prepared& prepared);

// What the optimizer makes of the plan for its target, as settings and hints say. Alternatives to its
// distribution are looked at where `compare`. `context` is told how far the search is and may interrupt it: then
// the best found so far is the answer.
Result<search::Choice> plan_for(const Session::State& state, const Prepared& prepared, bool compare,
                                const Context* context = nullptr, Advice advice = Advice::given);

// The same for this distribution, which is not in time, in place of what the settings say. It may not fit.
Result<search::Choice> plan_given(const Session::State& state, const Prepared& prepared,
                                  const distribute::Distribution& distribution, const Context* context);

// The same where everything takes as much longer as `slowness` says, found within `seconds`.
Result<search::Choice> plan_for_slow(const Session::State& state, const Prepared& prepared,
                                     const Slowness& slowness, double seconds, const Context& context);

// Whether the search was ended by hand: a step is not to run then.
bool was_interrupted(const search::Choice& choice);

// Of another plan in its place, of one device.
Result<search::Choice> plan_alone(const Session::State& state, const Prepared& prepared,
                                  const plan::Graph& graph);

// The same for ranks that a launcher started: each plans by itself, and machines differ in what they have
// measured, so what rank 0 found is what all run. Collective: every rank calls it as often.
Result<search::Choice> plan_for_ranks(const Session::State& state, const Prepared& prepared, bool compare,
                                      const Context* context = nullptr);

// The plan that another rank found, or that was found before, in the place of what would be found now: what it
// costs here may differ. `text` has the mesh above the plan.
Result<search::Choice> take_over(const Session::State& state, const Prepared& prepared,
                                 const std::string& distribution, const std::string& text, bool compare);
// The same of one device.
Result<search::Choice> take_over_alone(const Session::State& state, const Prepared& prepared,
                                       const std::string& text);

}  // namespace weft::session
