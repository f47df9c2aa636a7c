#include "weft/predict/sim/step/critical_path.h"

#include <algorithm>

#include <fmt/format.h>

namespace weft::sim {
namespace {

struct Candidate {
  std::size_t rank = 0;
  std::uint32_t task = StepRun::kNone;
  double end = 0;

  void offer(const StepRun& run, std::size_t other, std::uint32_t that) {
    if (that == StepRun::kNone) return;
    const double its_end = run.times(other)[that].end;
    if (task != StepRun::kNone && its_end <= end) return;
    *this = {other, that, its_end};
  }
};

// Offers the tasks that this rank's task waited for on the same rank.
void offer_waits(Candidate& found, const StepRun& run, const ProgramTasks& tasks, std::size_t rank,
                 std::uint32_t task) {
  found.offer(run, rank, run.before(rank, task));
  for (const std::uint32_t wait : tasks.waits_of(task)) found.offer(run, rank, wait);
}

}  // namespace

std::vector<CriticalTask> critical_path(const StepRun& run, std::span<const ProgramTasks* const> ranks,
                                        const Meetings& meetings) {
  Candidate at;
  for (std::size_t rank = 0; rank < ranks.size(); ++rank)
    for (std::uint32_t task = 0; task < ranks[rank]->count(); ++task) at.offer(run, rank, task);
  std::vector<CriticalTask> path;
  // The index of a collective in its lane, which is the same on all ranks of its group.
  const auto place_of = [&](const ProgramTasks& tasks, std::uint32_t exchange) {
    const auto& order = tasks.lane_orders[tasks.exchanges[exchange].lane];
    return static_cast<std::size_t>(std::ranges::lower_bound(order, exchange) - order.begin());
  };
  while (at.task != StepRun::kNone) {
    path.push_back({at.rank, at.task});
    const ProgramTasks& tasks = *ranks[at.rank];
    Candidate next;
    const std::uint32_t exchange = tasks.exchange[at.task];
    if (exchange == ProgramTasks::kComputes) {
      offer_waits(next, run, tasks, at.rank, at.task);
    } else {
      const std::uint32_t axis = tasks.exchanges[exchange].axis, lane = tasks.exchanges[exchange].lane;
      const std::size_t place = place_of(tasks, exchange);
      for (const std::uint32_t member : meetings.all[meetings.of_axis[axis][at.rank]].classes) {
        const ProgramTasks& theirs = *ranks[member];
        offer_waits(next, run, theirs, member, theirs.exchanges[theirs.lane_orders[lane][place]].task);
      }
    }
    at = next;
  }
  std::ranges::reverse(path);
  return path;
}

std::string bound_of(const StepRun& run, std::span<const ProgramTasks* const> ranks,
                     std::span<const CriticalTask> path, const plan::Mesh& mesh) {
  std::vector<double> seconds(1 + mesh.axes.size());  // compute, then each axis
  for (const CriticalTask& at : path) {
    const program::TaskTime& time = run.times(at.rank_class)[at.task];
    const std::uint32_t exchange = ranks[at.rank_class]->exchange[at.task];
    seconds[exchange == ProgramTasks::kComputes ? 0 : 1 + ranks[at.rank_class]->exchanges[exchange].axis] +=
        time.end - time.begin;
  }
  if (!(run.seconds() > 0)) return "nothing";
  const auto most = static_cast<std::size_t>(std::ranges::max_element(seconds) - seconds.begin());
  const std::string what = most == 0 ? "compute" : "communication on " + mesh.axes[most - 1].name;
  return fmt::format("{}: {:.0f} % of the step", what, 100 * seconds[most] / run.seconds());
}

}  // namespace weft::sim
