// weft/collectives/one_sided/check_work.h -- what a check would cost, before it is begun.
//
// A line of a file may stand for millions of chunks. At effort 1 a check stays below about a second and
// 200 MB; effort n allows n times as much. See CheckLimits for what is counted.
#pragma once
#include <cstdint>

#include "weft/base/result.h"
#include "weft/collectives/algorithm/algorithm.h"
#include "weft/collectives/chunks/program.h"
#include "weft/collectives/one_sided/one_sided.h"

namespace weft::collective {

// Estimates, drawn from one measurement without optimization: half a million accesses of a plan took 0.4 s and
// 80 MB.
struct CheckLimits {
  std::int64_t actions = std::int64_t{1} << 19;   // steps of a program, each as often as it has chunks
  std::int64_t accesses = std::int64_t{1} << 20;  // of a plan to parts of chunks, over its runs and turns
  std::int64_t chunks = std::int64_t{1} << 21;    // of memory, all ranks together
};

// Fails where the program needs more; the hint says which effort would do.
Status check_work(const Program& program, std::int64_t effort);
Status check_work(const OneSided& plan, std::int64_t effort);

TraceLimits trace_limits(std::int64_t effort);

}  // namespace weft::collective
