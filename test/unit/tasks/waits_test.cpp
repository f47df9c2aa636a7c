// Dependencies between tasks, compared with all pairs of tasks that must not be reordered.
#include "weft/program/tasks/waits.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace weft::program {
namespace {

bool conflict(const Task& before, const Task& after, std::span<const Buffer> buffers) {
  const auto meet = [&](const std::vector<Extent>& a, const std::vector<Extent>& b) {
    return std::ranges::any_of(a, [&](const Extent& x) {
      return std::ranges::any_of(b, [&](const Extent& y) {
        const std::int64_t p = buffers[x.buffer.value].offset, q = buffers[y.buffer.value].offset;
        return std::max(p + x.begin, q + y.begin) < std::min(p + x.end, q + y.end);
      });
    });
  };
  return meet(before.writes, after.reads) || meet(before.writes, after.writes) ||
         meet(before.reads, after.writes);
}

TEST(FindWaits, OrdersConflictingTasksOnly) {
  std::mt19937 random(11);
  const auto below = [&](std::size_t n) { return static_cast<std::size_t>(random()) % n; };
  for (int round = 0; round < 60; ++round) {
    std::vector<Buffer> buffers(6);
    for (Buffer& buffer : buffers) buffer.bytes = 40, buffer.offset = static_cast<std::int64_t>(below(120));
    std::vector<Task> tasks;
    std::vector<std::size_t> passes;  // by task
    for (std::uint32_t unit = 0; unit < 24; ++unit) {
      const auto extents = [&](std::size_t most) {
        std::vector<Extent> made(below(most + 1));
        for (Extent& extent : made) {
          extent.buffer = BufferId(below(buffers.size()));
          extent.begin = static_cast<std::int64_t>(below(40));
          extent.end =
              extent.begin + static_cast<std::int64_t>(below(40 - static_cast<std::size_t>(extent.begin)));
        }
        return made;
      };
      std::uint32_t chunk = 0;
      for (std::size_t t = 0, of_unit = 1 + below(5); t < of_unit; ++t) {
        if (t > 0) chunk = below(3) == 0 ? 0 : chunk + 1;
        passes.push_back(chunk > 0 ? passes.back() : tasks.size());
        Task task;
        task.unit = unit;
        task.chunk = chunk;
        task.reads = extents(3);
        task.writes = extents(2);
        tasks.push_back(std::move(task));
      }
    }
    find_waits(tasks, buffers);
    std::vector<std::vector<bool>> after(tasks.size(), std::vector<bool>(tasks.size()));
    for (std::size_t t = 0; t < tasks.size(); ++t)
      for (const std::uint32_t wait : tasks[t].waits) {
        ASSERT_LT(wait, t);
        EXPECT_TRUE(conflict(tasks[wait], tasks[t], buffers) && passes[wait] != passes[t])
            << "round " << round << ": " << t << ", " << wait;
        after[t][wait] = true;
        for (std::size_t k = 0; k < wait; ++k)
          if (after[wait][k]) after[t][k] = true;
      }
    for (std::size_t t = 0; t < tasks.size(); ++t)
      for (std::size_t k = 0; k < t; ++k) {
        const bool must = passes[k] != passes[t] && conflict(tasks[k], tasks[t], buffers);
        EXPECT_TRUE(!must || after[t][k]) << "round " << round << ": " << t << " overtakes " << k;
      }
  }
}

}  // namespace
}  // namespace weft::program
