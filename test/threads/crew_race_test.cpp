// Workers race for tasks that access only the memory in their extents. The thread sanitizer reports
// accesses that are not ordered, and the results are compared with a sequential run.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "weft/base/random.h"
#include "weft/program/tasks/waits.h"
#include "weft/runtime/exec/worker_pool.h"

namespace weft::exec {
namespace {

constexpr std::int64_t kCells = 64;
constexpr WorkerPoolOptions kCrews[] = {{.workers = 1},
                                        {.workers = 2},
                                        {.workers = 4},
                                        {.workers = 7},
                                        {.workers = 1, .oversubscribed = true},
                                        {.workers = 3, .oversubscribed = true},
                                        {.workers = 1, .overlap = false},
                                        {.workers = 3, .overlap = false}};

// Random tasks over a few cells each. A task adds what it reads to what it writes.
std::vector<program::Task> random_tasks(Random& random, std::size_t count) {
  std::vector<program::Task> tasks(count);
  const auto extent = [&] {
    const std::int64_t begin = random.between(0, kCells - 1);
    return program::Extent{program::BufferId(0u), begin,
                           random.between(begin + 1, std::min(begin + 9, kCells))};
  };
  for (std::uint32_t t = 0; t < tasks.size(); ++t) {
    program::Task& task = tasks[t];
    task.unit = t;
    for (std::int64_t i = random.between(0, 3); i > 0; --i) task.reads.push_back(extent());
    task.writes.push_back(extent());
  }
  return tasks;
}

void work(const program::Task& task, std::vector<std::uint64_t>& cells) {
  std::uint64_t sum = 1;
  for (const program::Extent& extent : task.reads)
    for (std::int64_t i = extent.begin; i < extent.end; ++i)
      sum = sum * 31 + cells[static_cast<std::size_t>(i)];
  for (const program::Extent& extent : task.writes)
    for (std::int64_t i = extent.begin; i < extent.end; ++i) {
      std::uint64_t& cell = cells[static_cast<std::size_t>(i)];
      cell = cell * 7 + sum;
    }
}

int run() {
  Random random(17);
  const int rounds = std::getenv("WEFT_THOROUGH") != nullptr ? 40 : 12;
  for (int round = 0; round < rounds; ++round) {
    program::Buffer memory;
    memory.bytes = kCells;
    std::vector<program::Task> tasks = random_tasks(random, 1 + random.below(120));
    program::find_waits(tasks, {&memory, 1});
    std::vector<std::uint64_t> expected(kCells, 1);
    for (int step = 0; step < 5; ++step)
      for (const program::Task& task : tasks) work(task, expected);
    std::vector<std::vector<std::uint32_t>> streams(random.below(4));  // for movers: a fifth of the tasks
    for (std::uint32_t t = 0; t < tasks.size(); ++t)
      if (!streams.empty() && random.below(5) == 0) streams[random.below(streams.size())].push_back(t);
    for (const WorkerPoolOptions& options : kCrews) {
      std::vector<std::uint64_t> cells(kCells, 1);
      WorkerPool crew(options, tasks, streams);
      for (int step = 0; step < 5; ++step) {
        std::vector<std::uint32_t> last_moves(streams.size());
        std::vector<char> ordered(streams.size(), 1);
        const bool whole = crew.run([&](std::uint32_t task, int worker) {
          work(tasks[task], cells);
          if (worker < options.workers) return true;
          // Each mover writes only its own entries.
          const auto mover = static_cast<std::size_t>(worker - options.workers);
          ordered[mover] = ordered[mover] && task >= last_moves[mover];
          last_moves[mover] = task;
          return true;
        });
        if (whole && std::ranges::all_of(ordered, [](char one) { return one != 0; })) continue;
        std::printf("round %d: an incomplete step, or movers out of order\n", round);
        return 1;
      }
      if (cells != expected) {
        std::printf("round %d, %d workers: differs from the sequential result\n", round, options.workers);
        return 1;
      }
      // A failing task ends its step, and the next step succeeds.
      const auto broken = static_cast<std::uint32_t>(random.below(tasks.size()));
      if (crew.run([&](std::uint32_t task, int) { return task != broken; }) ||
          !crew.run([](std::uint32_t, int) { return true; })) {
        std::printf("round %d, %d workers: a failure is not reported, or outlives its step\n", round,
                    options.workers);
        return 1;
      }
    }
  }
  std::printf("%d rounds on 1, 2, 4 and 7 workers, with up to three movers and without\n", rounds);
  return 0;
}

}  // namespace
}  // namespace weft::exec

int main() { return weft::exec::run(); }
