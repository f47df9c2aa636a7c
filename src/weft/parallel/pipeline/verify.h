// weft/parallel/pipeline/verify.h -- is a schedule one?
//
//   S1  every stage does F, B and W of every micro-batch and chunk that comes by, each once, and nothing else
//   S2  on each stage, B comes after its F and W after its B, or BW takes the place of both
//   S3  no deadlock: sends are posted and never wait, a receive waits for its send; no stage waits for itself
//       where passes overlap, both of a pair wait for what either needs
//   S4  no stage holds more than the memory limit, where there is one
//
// Shares no code with those that make schedules.
#pragma once
#include <vector>

#include "weft/base/result.h"
#include "weft/parallel/pipeline/schedule.h"

namespace weft::pipeline {

// `memory`: in forward passes of one whole stage, one for all or one a stage; empty: no limit. The first thing
// that is wrong is named with its stage and place in the order.
Status verify(const Schedule& schedule, const std::vector<double>& memory = {});

// Micro-batches held on each stage at most, in forward passes of one whole stage.
std::vector<double> peak_in_flight(const Schedule& schedule);

}  // namespace weft::pipeline
