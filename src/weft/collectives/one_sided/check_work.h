// weft/collectives/one_sided/check_work.h -- limits the cost of a check before it starts.
//
// One line of a file may expand to millions of chunks. At effort 1 a check stays below about a
// second and 200 MB; effort n allows n times as much. CheckLimits says what is counted.
#pragma once
#include <cstdint>

#include "weft/base/result.h"
#include "weft/collectives/algorithm/algorithm.h"
#include "weft/collectives/chunks/program.h"
#include "weft/collectives/one_sided/one_sided.h"

namespace weft::collective {

// Estimates based on one unoptimized build: half a million accesses of a plan took 0.4 s and 80 MB.
struct CheckLimits {
  std::int64_t actions = std::int64_t{1} << 19;   // steps of a program, times their chunks
  std::int64_t accesses = std::int64_t{1} << 20;  // of a plan to parts of chunks, in all runs and iterations
  std::int64_t chunks = std::int64_t{1} << 21;    // of memory, all ranks together
};

// Fails if the program exceeds the limits; the hint names the effort that would suffice.
Status check_work(const Program& program, std::int64_t effort);
Status check_work(const OneSided& plan, std::int64_t effort);

TraceLimits trace_limits(std::int64_t effort);

}  // namespace weft::collective
