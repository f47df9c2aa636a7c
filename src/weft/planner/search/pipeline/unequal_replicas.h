// weft/planner/search/pipeline/unequal_replicas.h -- unequal numbers of micro-batches for unequal replicas.
//
//   node=2: slice b, micro-batches 11:5; micro=8  a100  11 micro-batches, 24.1 ms
//                                                 v100   5 micro-batches, 23.7 ms
//
// Faster replicas process more micro-batches. All micro-batches have the same size, and gradients
// are summed over all of them, so the result is that of one device however they are divided. Only
// the number in each rank's schedule differs.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "weft/base/result.h"
#include "weft/planner/search/pipeline/choose_pipeline.h"

namespace weft::search {

// Divides `all` micro-batches among `ranks`, at least one each, to minimize the slowest rank's
// time. `seconds`: time of a rank by number; it must not decrease with the number, and is infinite
// if they do not fit. REQUIRES: ranks <= all.
std::vector<std::int64_t> share_out(
    std::int64_t all, std::size_t ranks,
    const std::function<double(std::size_t rank, std::int64_t count)>& seconds);

// Estimates a distribution with equal numbers for a rank that processes `micro_batches` of them, on
// `device` if given.
Result<ChosenPipeline> estimate_with_count(const PipelineProblem& problem,
                                           const distribute::Distribution& given, std::int64_t micro_batches,
                                           const cluster::Device* device);

// Estimates a distribution with unequal numbers along `axis` by its slowest replica.
Result<ChosenPipeline> estimate_replicas(const PipelineProblem& problem,
                                         const distribute::Distribution& given, std::size_t axis);

// The same distribution with at least as many micro-batches, unequally divided between replicas.
// Nothing if all devices along the axes that slice the batch are alike, or if nothing is faster.
Result<std::optional<ChosenPipeline>> with_unequal_replicas(const PipelineProblem& problem,
                                                            const distribute::Distribution& given,
                                                            double beat_seconds);

}  // namespace weft::search
