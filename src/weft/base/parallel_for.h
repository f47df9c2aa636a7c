// weft/base/parallel_for.h -- runs independent jobs on one thread per processor.
//
//   parallel_for(questions.size(), [&](std::size_t q) { answers[q] = answer(questions[q]); });
//
// Jobs are started in order; each idle thread takes the next one. Returns when all are done.
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

// REQUIRES: jobs may run concurrently. If a job throws (memory can run out anywhere), no further
// job is started, and the exception is rethrown to the caller after all threads have ended.
template <class Job>
void parallel_for(std::size_t jobs, const Job& job) {
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
    // Thread creation may fail, also for lack of memory; the existing threads then do all jobs.
  }
  work();
  threads.clear();  // joins them
  if (thrown) std::rethrow_exception(thrown);
}

}  // namespace weft
