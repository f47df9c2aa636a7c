#include "weft/predict/cost/oversubscribed_costs.h"

#include <algorithm>
#include <variant>

namespace weft::cost {
namespace {

struct Turn {
  double time;
  bool begins;
  bool computes;
  std::uint32_t rank, task;
};

std::vector<Turn> turns_of(std::span<const RankSteps> ranks, std::size_t step) {
  std::vector<Turn> turns;
  for (std::uint32_t rank = 0; rank < ranks.size(); ++rank) {
    const program::Program& program = *ranks[rank].program;
    const program::Timeline& timeline = ranks[rank].timelines[step];
    for (std::uint32_t task = 0; task < timeline.tasks.size(); ++task) {
      if (!(timeline.tasks[task].end > timeline.tasks[task].begin)) continue;  // costs nothing
      const bool computes =
          !std::holds_alternative<program::Exchange>(program.units[program.tasks[task].unit].kernel);
      turns.push_back({timeline.tasks[task].begin, true, computes, rank, task});
      turns.push_back({timeline.tasks[task].end, false, computes, rank, task});
    }
  }
  // At equal times, ends come before begins; the order is arbitrary otherwise.
  std::ranges::stable_sort(turns, [](const Turn& a, const Turn& b) {
    return a.time != b.time ? a.time < b.time : a.begins < b.begins;
  });
  return turns;
}

}  // namespace

std::vector<std::vector<program::Timeline>> oversubscribed_costs(std::span<const RankSteps> ranks,
                                                                 const Concurrency& concurrency,
                                                                 int processors) {
  WEFT_CHECK(processors > 0, "a processor at least");
  const double all = processors, threads = static_cast<double>(concurrency.ranks) * concurrency.workers;
  std::vector<std::vector<program::Timeline>> costs(ranks.size());
  for (std::size_t rank = 0; rank < ranks.size(); ++rank)
    costs[rank].assign(ranks[rank].timelines.begin(), ranks[rank].timelines.end());
  const std::size_t steps = ranks.empty() ? 0 : ranks.front().timelines.size();
  for (std::size_t step = 0; step < steps; ++step) {
    // had: processor time so far of a thread that computes all the time. idle: idle processor time
    // so far, as counted by a rank that always waits.
    double had = 0, idle = 0, before = 0;
    double computing = 0, waiting = 0;  // numbers of threads
    for (const Turn& turn : turns_of(ranks, step)) {
      const double passed = std::max(turn.time - before, 0.0);
      before = turn.time;
      if (computing > 0) had += passed * std::min(1.0, all / computing);
      if (waiting > 0) idle += passed * std::max(0.0, 1 - computing / all) / waiting;
      (turn.computes ? computing : waiting) += turn.begins ? 1 : -1;
      program::TaskTime& cost = costs[turn.rank][step].tasks[turn.task];
      const double now = turn.computes ? had * std::max(1.0, threads / all) : idle * concurrency.ranks;
      // While the task runs, `end` holds the counter value at its begin.
      cost.end = turn.begins ? now : cost.begin + std::max(now - cost.end, 0.0);
    }
  }
  return costs;
}

}  // namespace weft::cost
