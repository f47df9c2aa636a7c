#include "weft/synthesis/step_search.h"

#include <algorithm>
#include <map>
#include <memory>
#include <utility>

#include <fmt/format.h>

#include "weft/synthesis/step_bounds.h"
#include "weft/synthesis/step_encoding.h"
#include "weft/synthesis/step_symmetry.h"

namespace weft::synthesis {
namespace {

using collective::Kind;

constexpr std::int64_t kFirstEffort = 2'000;  // conflicts a formula
constexpr std::int64_t kMoreEffort = 8;       // times, every turn
constexpr std::int32_t kMostShorter = 3;      // numbers of fewer steps that are tried

bool has_root(Kind kind) {
  return kind == Kind::broadcast || kind == Kind::reduce || kind == Kind::gather || kind == Kind::scatter;
}

struct Found {
  StepVerdict verdict = StepVerdict::unknown;
  std::optional<StepSchedule> schedule;
  std::string why;
};

// One distribution on one network, for any number of steps and rounds.
class Distribution {
 public:
  Distribution(const StepNetwork& network, const StepQuestion& question, const StepClock& clock)
      : network_(network),
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
    const std::int32_t least = std::max(1, least_steps(network_, problem_));
    if (groups_.empty()) groups_ = step_groups(network_, fixed_);
    std::vector<std::int32_t> lengths{steps};
    for (std::int32_t fewer = std::min(least + kMostShorter - 1, steps - 1); splits_ && fewer >= least;
         --fewer)
      lengths.insert(lengths.begin(), fewer);

    // A formula without a symmetric or short schedule need not be asked again.
    std::map<std::pair<std::size_t, std::int32_t>, bool> refuted;
    std::unique_ptr<StepEncoding> whole;
    for (std::int64_t effort = kFirstEffort; !clock_.over(); effort *= kMoreEffort) {
      for (std::size_t group = 0; group < groups_.size(); ++group)
        for (const std::int32_t length : lengths) {
          const bool is_whole = groups_[group].size() == 1 && length == steps;
          if (refuted[{group, length}] || clock_.over()) continue;
          std::unique_ptr<StepEncoding> made;
          if (!is_whole || !whole)
            made = std::make_unique<StepEncoding>(network_, problem_, length, rounds, groups_[group], clock_);
          if (is_whole && !whole) whole = std::move(made);
          StepEncoding& formula = is_whole ? *whole : *made;
          if (!formula.fits_memory() || !formula.fits_group()) {
            if (is_whole) return {StepVerdict::unknown, std::nullopt, "the formula takes too much memory"};
            refuted[{group, length}] = true;
            continue;
          }
          ++formulas_;
          const StepFormula::Outcome outcome = formula.solve(effort, clock_);
          if (outcome == StepFormula::Outcome::satisfied)
            return found(formula.schedule(), steps, groups_[group].size(), length);
          if (outcome != StepFormula::Outcome::unsatisfied) continue;
          if (is_whole) return {StepVerdict::unsatisfiable, std::nullopt, "the solver has refuted it"};
          refuted[{group, length}] = true;
        }
      if (!can_decide_steps()) return {StepVerdict::unknown, std::nullopt, "this build has no solver"};
    }
    return {StepVerdict::unknown, std::nullopt, "stopped before there was an answer"};
  }

  Found found(StepSchedule schedule, std::int32_t steps, std::size_t symmetries, std::int32_t length) const {
    std::string why = symmetries > 1 ? fmt::format("found with {} symmetries", symmetries) : "found";
    if (length < steps) why += fmt::format(" in {} steps", length);
    schedule = split_steps(network_, std::move(schedule), steps);
    const auto fault = first_fault(network_, problem_, schedule);
    WEFT_CHECK(!fault, fault ? *fault : "");
    return {StepVerdict::satisfiable, std::move(schedule), std::move(why)};
  }

  const StepNetwork& network_;
  const StepClock& clock_;
  StepProblem problem_;
  std::int32_t fixed_;
  bool splits_;
  std::vector<StepGroup> groups_;
  std::map<std::pair<std::int32_t, std::int32_t>, Found> known_;
  std::int64_t formulas_ = 0;
};

// All ways to share steps and rounds out, the most even first. With so many steps a half needs some least
// number of rounds; the other half has what is left.
StepAnswer answer_all_reduce(const StepNetwork& network, const StepQuestion& question,
                             const StepClock& clock) {
  const StepNetwork back = reversed(network);
  Distribution combining(back, question, clock), spreading(network, question, clock);
  StepAnswer answer;
  if (question.steps < 2) return {StepVerdict::unsatisfiable, {}, {}, "its two halves take a step each", 0};
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
    if (one.verdict == StepVerdict::unknown)
      answer.why = one.why, all_refuted = false;
    else if (other.verdict == StepVerdict::unknown)
      answer.why = other.why, all_refuted = false;
  }
  if (answer.verdict != StepVerdict::satisfiable && all_refuted)
    answer = {StepVerdict::unsatisfiable, {}, {}, "no reduce_scatter and all_gather fit together", 0};
  answer.formulas = combining.formulas() + spreading.formulas();
  return answer;
}

}  // namespace

Result<StepAnswer> answer_steps(const StepNetwork& network, const StepQuestion& question,
                                const StepClock& clock) {
  WEFT_TRY_STATUS(check_question(question, network.devices));
  if (question.kind == Kind::all_reduce) return answer_all_reduce(network, question, clock);
  const bool backwards = runs_backwards(question.kind);
  const StepNetwork used = backwards ? reversed(network) : network;
  Distribution distribution(used, question, clock);
  const Found& found = distribution.answer(question.steps, question.rounds);
  StepAnswer answer{found.verdict, {}, {}, found.why, distribution.formulas()};
  (backwards ? answer.combine : answer.spread) = found.schedule;
  return answer;
}

collective::Moves step_moves(const StepQuestion& question, const StepNetwork& network,
                             const StepAnswer& answer) {
  return step_moves(question, network, answer.combine ? &*answer.combine : nullptr,
                    answer.spread ? &*answer.spread : nullptr);
}

}  // namespace weft::synthesis
