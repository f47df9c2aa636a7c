// weft/base/do_all.h -- jobs that do not depend on one another, on as many threads as there are processors.
//
//   do_all(questions.size(), [&](std::size_t q) { answers[q] = answer(questions[q]); });
//
// Jobs are begun in order; whoever is free takes the next. Returns when all are done.
#pragma once
#include <algorithm>
#include <atomic>
#include <cstddef>
#include <thread>
#include <vector>

#include "weft/base/machine.h"

namespace weft {

// REQUIRES: jobs do not throw, and may run at the same time.
template <class Job>
void do_all(std::size_t jobs, const Job& job) {
  std::atomic<std::size_t> next = 0;
  const auto work = [&] {
    for (std::size_t j = next++; j < jobs; j = next++) job(j);
  };
  const auto most = std::min(jobs, static_cast<std::size_t>(std::max(1, available_processors())));
  std::vector<std::jthread> threads;
  while (threads.size() + 1 < most) threads.emplace_back(work);
  work();
}

}  // namespace weft
