#include "weft/planner/search/rewrite/rewrite_plan.h"

#include <algorithm>
#include <chrono>
#include <unordered_map>

#include <fmt/format.h>

#include "weft/plan/graph/settle_phases.h"
#include "weft/plan/graph/text.h"
#include "weft/plan/graph/verify.h"
#include "weft/planner/search/rewrite/plan_cache.h"
#include "weft/planner/search/rewrite/refusals.h"
#include "weft/planner/search/rewrite/region.h"
#include "weft/planner/search/rewrite/region_plan.h"
#include "weft/planner/search/rewrite/rule_book.h"
#include "weft/planner/search/rewrite/shared_nodes.h"
#include "weft/planner/search/rewrite/spot_check.h"
#include "weft/planner/search/rewrite/workbench.h"

namespace weft::search {
namespace {

// Increment when the same region, rules and costs may give a different plan.
constexpr std::uint64_t kSearchVersion = 1;

constexpr int kMostRounds = 8;  // two or three are typical

std::optional<std::chrono::steady_clock::time_point> deadline_in(double seconds) {
  constexpr double kBeyondClocks = 1e8;  // three years: avoids overflow of the clock
  if (!(seconds < kBeyondClocks)) return std::nullopt;
  return std::chrono::steady_clock::now() + std::chrono::duration_cast<std::chrono::steady_clock::duration>(
                                                std::chrono::duration<double>(std::max(seconds, 0.0)));
}

class Rewriter {
 public:
  Rewriter(std::span<const rule::Rule> rules, const Pricing& pricing, const RewriteOptions& options)
      : rules_(rules),
        pricing_(pricing),
        options_(options),
        limits_{options.budget.rewrites, options.budget.nodes, deadline_in(options.budget.seconds)} {}

  Rewritten run(const plan::Graph& graph);

 private:
  struct Round {
    double before = 0, after = 0;  // sum over all regions
    bool changed = false;
    Joined joined;
  };

  void become(const rule::Draft& draft, std::span<const std::string> names);
  Round plan_regions();
  const RegionPlan& plan_of(const Region& region);
  void remember_as_planned(const RegionPlan& plan);
  Digest key_of(const std::string& text) const;
  std::optional<RegionPlan> find_in_cache(const Digest& key, const Region& region);
  void tell(const Region& region, const RegionPlan& plan);  // with names of the whole plan
  std::string in_whole(const Region& region, const std::string& node) const;
  void note(Stopped stopped) {
    if (result_.stopped == Stopped::saturated) result_.stopped = stopped;
  }

  RuleBook rules_;
  const Pricing& pricing_;
  const RewriteOptions& options_;
  Limits limits_;
  plan::Graph whole_;
  std::vector<std::string> names_;  // display names of the whole plan's nodes
  Rewritten result_;
  std::unordered_map<Digest, RegionPlan> known_;
};

// Improved regions may enable matches across old cuts. The next round does not cut there.
Rewritten Rewriter::run(const plan::Graph& graph) {
  {
    const rule::Draft draft(graph);
    std::vector<std::string> names;
    for (std::size_t n = 0; n < graph.node_count(); ++n)
      names.push_back(plan::describe(graph, plan::NodeId(n)));
    become(draft, names);
    if (options_.keep_refusals) result_.refusals = near_misses(draft, rules_, names);
    if (std::optional<Step> shared = share_equal_nodes(graph, draft, pricing_, result_.counts.priced)) {
      result_.seconds_before -= shared->change;
      result_.trail.push_back(std::move(*shared));
    }
  }
  // A region's cost ignores what its new views cost readers in other regions. The next round
  // includes that, so the plan with the lowest actual cost is kept.
  struct {
    double seconds = std::numeric_limits<double>::infinity();
    plan::Graph plan;
    std::size_t steps = 0;
  } lowest;
  for (int number = 0; number < kMostRounds; ++number) {
    const std::size_t steps = result_.trail.size();
    Round round = plan_regions();
    if (number == 0) result_.seconds_before += round.before;
    if (round.before < lowest.seconds) lowest = {round.before, whole_.clone(), steps};
    result_.seconds_after = round.after;
    if (!round.changed) break;
    std::vector<std::string> names;
    for (std::size_t n = 0; n < round.joined.plan.node_count(); ++n) {
      const plan::NodeId before = round.joined.stands_for[n];
      names.push_back(before.valid()
                          ? names_[before.value]
                          : fmt::format("a new {}", round.joined.plan.node(plan::NodeId(n)).op->name()));
    }
    become(rule::Draft(round.joined.plan), names);
  }
  if (Price{lowest.seconds, 0}.is_below({result_.seconds_after, 0})) {
    whole_ = std::move(lowest.plan);
    result_.seconds_after = lowest.seconds;
    result_.trail.resize(lowest.steps);
  }
  result_.plan = std::move(whole_);
  return std::move(result_);
}

// Draft::finish() keeps the order of Draft::nodes().
void Rewriter::become(const rule::Draft& draft, std::span<const std::string> names) {
  names_.clear();
  for (const plan::NodeId node : draft.nodes()) names_.push_back(names[node.value]);
  whole_ = draft.finish();
}

Rewriter::Round Rewriter::plan_regions() {
  Round round;
  const std::vector<Region> regions = cut(whole_, rules_, pricing_.learns);
  std::vector<const plan::Graph*> plans;
  for (const Region& region : regions) {
    const RegionPlan& planned = plan_of(region);
    plans.push_back(&planned.plan);
    round.before += planned.seconds_before;
    round.after += planned.seconds_after;
    round.changed |= !planned.trail.empty();
    tell(region, planned);
    note(planned.stopped);
  }
  result_.counts.regions += static_cast<std::int64_t>(regions.size());
  if (round.changed) round.joined = join(whole_, regions, plans);
  return round;
}

Digest Rewriter::key_of(const std::string& text) const {
  return Hasher()
      .text(text)
      .digest_of(rules_.digest())
      .digest_of(pricing_.digest)
      .number(static_cast<std::uint64_t>(options_.budget.rewrites))
      .number(static_cast<std::uint64_t>(options_.budget.nodes))
      .real(options_.budget.alpha)
      .number(kSearchVersion)
      .digest();
}

std::optional<RegionPlan> Rewriter::find_in_cache(const Digest& key, const Region& region) {
  if (!options_.cache || options_.keep_refusals) return std::nullopt;
  const std::optional<std::string> text = options_.cache->find(key);
  std::optional<RegionPlan> plan = text ? parse_region_plan(*text) : std::nullopt;
  if (!plan || !fits(plan->plan, region)) return std::nullopt;
  return spot_check(plan->plan, region.plan) != SpotCheck::differ ? std::move(plan) : std::nullopt;
}

const RegionPlan& Rewriter::plan_of(const Region& region) {
  const Digest key = key_of(plan::print(region.plan));
  if (const auto known = known_.find(key); known != known_.end()) return known->second;
  if (std::optional<RegionPlan> plan = find_in_cache(key, region)) {
    ++result_.counts.from_cache;
    remember_as_planned(*plan);
    return known_.emplace(key, std::move(*plan)).first->second;
  }
  RegionPlan plan = plan_region(region.plan, rules_, pricing_, limits_, options_.budget.alpha,
                                options_.keep_refusals, result_.counts);
  ++result_.counts.searched;
  // A search cut short by the clock is not cached. Failures to write the cache are ignored.
  if (options_.cache && plan.stopped != Stopped::time_limit)
    static_cast<void>(options_.cache->store(key, print(plan)));
  remember_as_planned(plan);
  return known_.emplace(key, std::move(plan)).first->second;
}

// The result of a search needs no further search.
void Rewriter::remember_as_planned(const RegionPlan& plan) {
  if (plan.trail.empty()) return;
  Region region = as_region(plan.plan);
  const Digest key = key_of(plan::print(region.plan));
  known_.try_emplace(
      key, RegionPlan{std::move(region.plan), plan.seconds_after, plan.seconds_after, {}, plan.stopped, {}});
}

std::string Rewriter::in_whole(const Region& region, const std::string& node) const {
  const plan::NodeId known = region.node_labelled(node);
  return known.valid() ? names_[known.value] : node;
}

void Rewriter::tell(const Region& region, const RegionPlan& plan) {
  const auto rename = [&](std::vector<std::string>& nodes) {
    for (std::string& node : nodes) node = in_whole(region, node);
  };
  for (Step step : plan.trail) {
    rename(step.replaced);
    result_.trail.push_back(std::move(step));
  }
  for (Refusal refusal : plan.refusals) {
    rename(refusal.nodes);
    result_.refusals.push_back(std::move(refusal));
  }
}

}  // namespace

Result<Rewritten> rewrite_plan(const plan::Graph& graph, std::span<const rule::Rule> rules,
                               const Pricing& pricing, const RewriteOptions& options) {
  WEFT_TRY_STATUS(plan::verify(graph));
  Rewritten made = Rewriter(rules, pricing, options).run(graph);
  // Regions do not know in which phase their outputs are read.
  WEFT_TRY_STATUS(plan::settle_phases(made.plan));
  return made;
}

}  // namespace weft::search
