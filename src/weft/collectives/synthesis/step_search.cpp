#include "weft/collectives/synthesis/step_search.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "weft/collectives/synthesis/step_bounds.h"
#include "weft/collectives/synthesis/step_encoding.h"
#include "weft/collectives/synthesis/step_symmetry.h"

namespace weft::synthesis {
namespace {

using collective::Kind;

constexpr std::int64_t kLittleEffort = 100;  // conflicts, before symmetries are tried
constexpr double kFewClauses = 300e3;
constexpr std::int64_t kFirstEffort = 2'000;  // conflicts per formula
constexpr std::int64_t kMoreEffort = 8;       // factor per iteration
constexpr std::int32_t kMostShorter = 3;      // smaller step counts tried

bool has_root(Kind kind) {
  return kind == Kind::broadcast || kind == Kind::reduce || kind == Kind::gather || kind == Kind::scatter;
}

struct Found {
  StepVerdict verdict = StepVerdict::unknown;
  std::optional<StepSchedule> schedule;
  std::string why;
};

// One distribution on one network, for any number of steps and rounds. Symmetry groups are found on
// first use.
class Distribution {
 public:
  Distribution(const StepNetwork& network, std::vector<StepGroup>& groups, const StepQuestion& question,
               const StepClock& clock)
      : network_(network),
        groups_(groups),
        clock_(clock),
        problem_(step_problem(question, network.devices)),
        fixed_(has_root(question.kind) ? question.root : -1),
        splits_(can_split_steps(network)) {}

  const Found& answer(std::int32_t steps, std::int32_t rounds) {
    const auto [place, is_new] = known_.try_emplace({steps, rounds});
    if (is_new) place->second = search(steps, rounds);
    return place->second;
  }

  std::int64_t formulas() const { return formulas_; }

 private:
  Found search(std::int32_t steps, std::int32_t rounds) {
    if (auto why = refute_by_counting(network_, problem_, steps, rounds))
      return {StepVerdict::unsatisfiable, std::nullopt, std::move(*why)};
    if (!can_decide_steps()) return {StepVerdict::unknown, std::nullopt, "this build has no solver"};
    std::optional<StepEncoding> whole;
    const auto make_whole = [&] {
      if (!whole) whole.emplace(network_, problem_, steps, rounds, StepGroup{identity(network_)}, clock_);
    };
    if (StepEncoding::estimate(network_, problem_, steps, rounds, 1) <= kFewClauses) {
      make_whole();
      if (auto answer = decide(*whole, kLittleEffort, steps, steps, 1)) return std::move(*answer);
    }

    if (groups_.empty()) groups_ = step_groups(network_, fixed_);
    const std::int32_t least = std::max(1, least_steps(network_, problem_));
    std::vector<std::int32_t> lengths;
    for (std::int32_t fewer = least; splits_ && fewer < std::min(least + kMostShorter, steps); ++fewer)
      lengths.push_back(fewer);
    lengths.push_back(steps);

    // Refuted formulas are not tried again.
    std::set<std::pair<std::size_t, std::int32_t>> refuted;
    for (std::int64_t effort = kFirstEffort; !clock_.over(); effort *= kMoreEffort) {
      bool any_left = false;
      for (std::size_t group = 0; group < groups_.size(); ++group)
        for (const std::int32_t length : lengths) {
          const std::size_t order = groups_[group].size();
          if ((order == 1 && length == steps) || refuted.contains({group, length}) || clock_.over()) continue;
          StepEncoding part(network_, problem_, length, rounds, groups_[group], clock_);
          if (!part.fits_group() || !part.fits_memory()) {
            refuted.insert({group, length});
            continue;
          }
          auto answer = decide(part, effort, steps, length, order);
          if (answer && answer->verdict == StepVerdict::satisfiable) return std::move(*answer);
          if (answer)
            refuted.insert({group, length});
          else
            any_left = true;
        }
      make_whole();
      if (whole->fits_memory()) {
        if (auto answer = decide(*whole, effort, steps, steps, 1)) return std::move(*answer);
      } else if (!any_left) {
        return {StepVerdict::unknown, std::nullopt, "the formula needs too much memory"};
      }
    }
    return {StepVerdict::unknown, std::nullopt, "stopped before an answer was found"};
  }

  // Empty if the effort did not suffice.
  std::optional<Found> decide(StepEncoding& formula, std::int64_t effort, std::int32_t steps,
                              std::int32_t length, std::size_t symmetries) {
    ++formulas_;
    const StepFormula::Outcome outcome = formula.solve(effort, clock_);
    if (outcome == StepFormula::Outcome::unknown) return std::nullopt;
    if (outcome == StepFormula::Outcome::unsatisfied)
      return Found{StepVerdict::unsatisfiable, std::nullopt, "the solver has refuted it"};
    std::string why = symmetries > 1 ? fmt::format("found with {} symmetries", symmetries) : "found";
    if (length < steps) why += fmt::format(" in {} steps", length);
    StepSchedule schedule = formula.schedule();
    if (length < steps) schedule = split_steps(network_, std::move(schedule), steps);
    const auto fault = first_fault(network_, problem_, schedule);
    WEFT_CHECK(!fault, fault ? *fault : "");
    return Found{StepVerdict::satisfiable, std::move(schedule), std::move(why)};
  }

  const StepNetwork& network_;
  std::vector<StepGroup>& groups_;
  const StepClock& clock_;
  StepProblem problem_;
  std::int32_t fixed_;
  bool splits_;
  std::map<std::pair<std::int32_t, std::int32_t>, Found> known_;
  std::int64_t formulas_ = 0;
};

}  // namespace

// One direction of the network, with its symmetry groups by the device that they fix.
class StepSearch::Side {
 public:
  explicit Side(StepNetwork network) : network_(std::move(network)) {}

  Distribution distribution(const StepQuestion& question, const StepClock& clock) {
    return {network_, groups_[has_root(question.kind) ? question.root : -1], question, clock};
  }

 private:
  StepNetwork network_;
  std::map<std::int32_t, std::vector<StepGroup>> groups_;
};

StepSearch::StepSearch(const StepNetwork& network)
    : forwards_(std::make_unique<Side>(network)),
      backwards_(std::make_unique<Side>(reversed(network))),
      devices_(network.devices) {}
StepSearch::~StepSearch() = default;

// Tries all ways to divide the steps, the most even first. For a given number of steps, the first
// half gets the fewest rounds that are not refuted, and the other half gets the rest.
StepAnswer StepSearch::answer_all_reduce(const StepQuestion& question, const StepClock& clock) {
  if (question.steps < 2)
    return {StepVerdict::unsatisfiable, {}, {}, "its two halves need at least one step each", 0};
  Distribution combining = backwards_->distribution(question, clock);
  Distribution spreading = forwards_->distribution(question, clock);
  StepAnswer answer;
  bool all_refuted = true;
  for (std::int32_t turn = 0; turn < 2 * question.steps; ++turn) {
    const std::int32_t middle = question.steps / 2;
    const std::int32_t first = turn % 2 == 0 ? middle + turn / 2 : middle - turn / 2 - 1;
    if (first < 1 || first >= question.steps) continue;
    const std::int32_t second = question.steps - first;
    std::int32_t rounds = first;
    while (rounds <= question.rounds - second &&
           combining.answer(first, rounds).verdict == StepVerdict::unsatisfiable)
      ++rounds;
    if (rounds > question.rounds - second) continue;
    const Found& one = combining.answer(first, rounds);
    const Found& other = spreading.answer(second, question.rounds - rounds);
    if (one.verdict == StepVerdict::satisfiable && other.verdict == StepVerdict::satisfiable) {
      answer = {StepVerdict::satisfiable, one.schedule, other.schedule,
                fmt::format("reduce_scatter {}, all_gather {}", one.why, other.why), 0};
      break;
    }
    for (const Found* half : {&one, &other})
      if (half->verdict == StepVerdict::unknown) answer.why = half->why, all_refuted = false;
  }
  if (answer.verdict != StepVerdict::satisfiable && all_refuted)
    answer = {StepVerdict::unsatisfiable, {}, {}, "no reduce_scatter and all_gather fit together", 0};
  answer.formulas = combining.formulas() + spreading.formulas();
  return answer;
}

Result<StepAnswer> StepSearch::answer(const StepQuestion& question, const StepClock& clock) {
  WEFT_TRY_STATUS(check_question(question, devices_));
  if (question.kind == Kind::all_reduce) return answer_all_reduce(question, clock);
  const bool backwards = runs_backwards(question.kind);
  Distribution distribution = (backwards ? backwards_ : forwards_)->distribution(question, clock);
  const Found& found = distribution.answer(question.steps, question.rounds);
  StepAnswer answer{found.verdict, {}, {}, found.why, distribution.formulas()};
  (backwards ? answer.combine : answer.spread) = found.schedule;
  return answer;
}

Result<StepAnswer> answer_steps(const StepNetwork& network, const StepQuestion& question,
                                const StepClock& clock) {
  return StepSearch(network).answer(question, clock);
}

collective::Moves step_moves(const StepQuestion& question, const StepNetwork& network,
                             const StepAnswer& answer) {
  return step_moves(question, network, answer.combine ? &*answer.combine : nullptr,
                    answer.spread ? &*answer.spread : nullptr);
}

}  // namespace weft::synthesis
