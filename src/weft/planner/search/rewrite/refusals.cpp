#include "weft/planner/search/rewrite/refusals.h"

#include <algorithm>

#include <fmt/format.h>

#include "weft/base/units.h"

namespace weft::search {
namespace {

bool share(std::span<const std::string> a, std::span<const std::string> b) {
  return std::ranges::any_of(a,
                             [&](const std::string& name) { return std::ranges::find(b, name) != b.end(); });
}

// How a match that still applies would change the cost; empty if it would pay.
std::string judge(Workbench& bench, const rule::Match& match) {
  const Price before = bench.price();
  if (!bench.take(match)) return bench.why_not();
  const Price after = bench.price();
  bench.take_back();
  const double rise = after.seconds - before.seconds;
  return after.is_below(before) ? "the search stopped before it was tried"
         : rise <= 0            ? "the cost would not fall"
                                : fmt::format("the cost would rise by {}", print_seconds(rise));
}

}  // namespace

std::vector<Refusal> near_misses(const rule::Draft& draft, const RuleBook& rules,
                                 std::span<const std::string> names) {
  std::vector<Refusal> refusals;
  for (const rule::Automaton* automaton : {&rules.normalizing(), &rules.exploring()}) {
    std::vector<rule::Match> found;
    std::vector<rule::Declined> declined;
    for (const plan::NodeId root : draft.nodes()) automaton->matches_at(draft, root, found, &declined);
    for (rule::Declined& near : declined) {
      std::vector<std::string> nodes;
      for (const plan::NodeId node : near.nodes) nodes.push_back(names[node.value]);
      refusals.push_back({automaton->rules()[near.rule].name, std::move(nodes), std::move(near.because)});
    }
  }
  return refusals;
}

std::vector<Refusal> matches_not_taken(const plan::Graph& start, Workbench& bench) {
  std::vector<Refusal> refusals;
  const std::vector<Step> trail = bench.trail();
  for (const rule::Match& match : bench.rules().exploring().all(rule::Draft(start))) {
    const std::string& name = bench.rules().exploring().rules()[match.rule].name;
    const std::vector<std::string> nodes = bench.describe(match.nodes);
    if (std::ranges::any_of(trail,
                            [&](const Step& step) { return step.rule == name && step.replaced == nodes; }))
      continue;
    std::string because;
    if (bench.still_matches(match)) {
      because = judge(bench, match);
    } else {
      const auto first =
          std::ranges::find_if(trail, [&](const Step& step) { return share(step.replaced, nodes); });
      because = first == trail.end() ? "the nodes that it matched are gone"
                                     : fmt::format("already rewritten by {}", first->rule);
    }
    refusals.push_back({name, nodes, std::move(because)});
  }
  return refusals;
}

}  // namespace weft::search
