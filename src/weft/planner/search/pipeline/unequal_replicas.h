// weft/planner/search/pipeline/unequal_replicas.h -- data replicas on devices that differ: the faster takes more micro-batches.
//
//   node=2: slice b, micro-batches 11:5; micro=8  a100  11 micro-batches, 24.1 ms
//                                                 v100   5 micro-batches, 23.7 ms
//
// Micro-batches are as large for all, and their gradients are summed over all of them, so it is the step of one device
// whoever takes which; what differs is how many a rank's schedule has.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "weft/base/result.h"
#include "weft/planner/search/pipeline/choose_in_time.h"

namespace weft::search {

// How many of `all` each of `ranks` takes, one at least, so that the slowest is as quick as can be. `seconds`: of a rank
// that takes so many; it never falls with them, and is infinite where they do not fit. REQUIRES: ranks <= all.
std::vector<std::int64_t> share_out(
    std::int64_t all, std::size_t ranks,
    const std::function<double(std::size_t rank, std::int64_t count)>& seconds);

// A distribution with equal numbers, priced as a rank does it that takes so many of its micro-batches; on such a device,
// where one is given.
Result<ChosenInTime> price_taking(const InTimeProblem& problem, const distribute::Distribution& given,
                                  std::int64_t micro_batches, const cluster::Device* device);

// One whose ranks along `axis` take unequal numbers, as its slowest replica does it.
Result<ChosenInTime> price_replicas(const InTimeProblem& problem, const distribute::Distribution& given,
                                    std::size_t axis);

// The same distribution in as many micro-batches or more, of which faster replicas take more. Nothing where all devices
// are alike along the axes that slice the batch, and where no unequal numbers are quicker.
Result<std::optional<ChosenInTime>> with_unequal_replicas(const InTimeProblem& problem,
                                                          const distribute::Distribution& given,
                                                          double beat_seconds);

}  // namespace weft::search
