// weft/base/do_all.h -- jobs that do not depend on one another, on as many threads as there are processors.
//
//   do_all(questions.size(), [&](std::size_t q) { answers[q] = answer(questions[q]); });
//
// Jobs are begun in order; whoever is free takes the next. Returns when all are done.
#pragma once
#include <algorithm>
#include <atomic>
#include <cstddef>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "weft/base/machine.h"

namespace weft {

// REQUIRES: jobs may run at the same time. What one of them throws (memory may run out anywhere) is thrown to the
// caller when all threads have ended, and no further job is begun.
template <class Job>
void do_all(std::size_t jobs, const Job& job) {
  std::atomic<std::size_t> next = 0;
  std::exception_ptr thrown;
  std::once_flag first;
  const auto work = [&] {
    try {
      for (std::size_t j = next++; j < jobs; j = next++) job(j);
    } catch (...) {
      next = jobs;
      std::call_once(first, [&] { thrown = std::current_exception(); });
    }
  };
  const auto most = std::min(jobs, static_cast<std::size_t>(std::max(1, available_processors())));
  std::vector<std::jthread> threads;
  try {
    while (threads.size() + 1 < most) threads.emplace_back(work);
  } catch (const std::exception&) {
    // No more threads to be had, or no memory for them: those that there are do all.
  }
  work();
  threads.clear();  // they end
  if (thrown) std::rethrow_exception(thrown);
}

}  // namespace weft
