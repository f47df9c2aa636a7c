#include "weft/collectives/synthesis/step_pareto.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "weft/collectives/synthesis/step_bounds.h"

namespace weft::synthesis {
namespace {

using collective::Kind;

constexpr std::int32_t kMostExtraRounds = 12;

double rounds_per_chunk(const StepQuestion& question) {
  return static_cast<double>(question.rounds) / static_cast<double>(question.chunks);
}

bool is_less(double a, double b) { return a < b * (1 - 1e-9); }

// The rounds for the fewest chunks that could attain the bandwidth; 0: none.
std::int32_t rounds_to_reach(double rounds_a_unit, std::int32_t most_chunks) {
  for (std::int32_t chunks = 1; chunks <= most_chunks; ++chunks) {
    const double rounds = rounds_a_unit * chunks;
    if (std::abs(rounds - std::round(rounds)) < 1e-6) return static_cast<std::int32_t>(std::round(rounds));
  }
  return 0;
}

class FrontierSearch {
 public:
  FrontierSearch(const StepNetwork& network, const StepClock& clock, StepFrontier& frontier)
      : search_(network), clock_(clock), frontier_(frontier) {}

  // Whether the instance is feasible; unknown counts as infeasible.
  Result<bool> ask(const StepQuestion& question) {
    const auto start = std::chrono::steady_clock::now();
    // Limit the time of one hard instance.
    StepClock part = clock_;
    if (clock_.end != std::chrono::steady_clock::time_point::max())
      part.end = start + (clock_.end - start) / 4;
    WEFT_TRY(answer, search_.answer(question, part));
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    const bool found = answer.verdict == StepVerdict::satisfiable;
    if (found && !frontier_.points.empty() && frontier_.points.back().question.steps == question.steps)
      frontier_.points.pop_back();
    (found ? frontier_.points : frontier_.refuted).push_back({question, std::move(answer), seconds});
    return found;
  }

  bool has_refuted(const StepQuestion& question) const {
    return std::ranges::find(frontier_.refuted, question, &StepPoint::question) != frontier_.refuted.end();
  }
  bool over() const { return clock_.over(); }

 private:
  StepSearch search_;
  const StepClock& clock_;
  StepFrontier& frontier_;
};

}  // namespace

Result<StepFrontier> step_frontier(const StepNetwork& network, Kind kind, std::int32_t root,
                                   const StepLimits& limits, const StepClock& clock) {
  const bool whole_message = kind == Kind::all_reduce || kind == Kind::all_to_all;
  const std::int32_t unit = whole_message ? network.devices : 1;
  const std::int32_t halves = kind == Kind::all_reduce ? 2 : 1;
  StepQuestion question{kind, root, unit, 1, 1};
  WEFT_TRY_STATUS(check_question(question, network.devices));

  const StepNetwork back = reversed(network);
  const StepProblem problem = step_problem(question, network.devices);
  StepFrontier frontier;
  std::int32_t reach = 0;
  const auto add = [&](const StepNetwork& used) {
    const double rounds = narrowest_cut(used, problem).rounds();
    frontier.least_steps += std::max(1, least_steps(used, problem));
    frontier.least_rounds_a_chunk += rounds / unit;
    reach += rounds_to_reach(rounds, limits.most_chunks);
  };
  if (runs_backwards(kind) || kind == Kind::all_reduce) add(back);
  if (!runs_backwards(kind)) add(network);
  const double least = frontier.least_rounds_a_chunk;
  if (least <= 0) return frontier;  // one device

  std::int32_t extra = limits.most_extra_rounds;
  if (extra < 0) extra = std::clamp(reach - frontier.least_steps, 1, kMostExtraRounds * halves);
  const std::int32_t most_steps =
      limits.most_steps > 0 ? limits.most_steps : frontier.least_steps + 4 * halves;
  const std::int32_t most_chunks = limits.most_chunks * unit;

  FrontierSearch search(network, clock, frontier);
  double best = 1e300;
  for (question.steps = frontier.least_steps; question.steps <= most_steps && !search.over();
       ++question.steps) {
    // Attaining the bandwidth ends the search, so try that first.
    question.rounds = reach;
    question.chunks = static_cast<std::int32_t>(std::round(reach / least));
    if (reach >= question.steps && reach <= question.steps + extra && question.chunks <= most_chunks) {
      WEFT_TRY(reaches, search.ask(question));
      frontier.reaches_bandwidth = reaches;
      if (reaches) break;
    }
    for (std::int32_t rounds = question.steps; rounds <= question.steps + extra; ++rounds) {
      // Start with the fewest chunks that improve on the best; if they are infeasible, so are more.
      question.rounds = rounds;
      question.chunks =
          best > 1e299 ? unit
                       : static_cast<std::int32_t>(std::floor(rounds / best * (1 + 1e-9) / unit) + 1) * unit;
      for (; question.chunks <= most_chunks && !search.over(); question.chunks += unit) {
        if (is_less(rounds_per_chunk(question), least) || search.has_refuted(question)) break;
        WEFT_TRY(better, search.ask(question));
        if (!better) break;
        best = rounds_per_chunk(question);
      }
    }
    frontier.reaches_bandwidth = !is_less(least, best);
    if (frontier.reaches_bandwidth) break;
  }
  return frontier;
}

std::string best_in(const StepFrontier& frontier, const StepPoint& point) {
  const bool latency = point.question.steps == frontier.least_steps;
  const bool bandwidth = !is_less(frontier.least_rounds_a_chunk, rounds_per_chunk(point.question));
  return latency && bandwidth ? "both" : latency ? "latency" : bandwidth ? "bandwidth" : "";
}

}  // namespace weft::synthesis
