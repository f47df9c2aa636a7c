// weft/parallel/pipeline/verify.h -- checks that a schedule is valid.
//
//   S1 every stage runs F, B and W of every micro-batch and chunk on it exactly once, and nothing
//      else
//   S2 on each stage, B comes after its F and W after its B, or BW replaces both
//   S3 no deadlock: sends never block, a receive waits for its send; where passes overlap, both
//      passes of a pair wait for the inputs of either
//   S4 no stage exceeds the memory limit, if there is one
//
// Shares no code with the schedulers.
#pragma once
#include <vector>

#include "weft/base/result.h"
#include "weft/parallel/pipeline/schedule.h"

namespace weft::pipeline {

// `memory`: in forward passes of one whole stage: one, or per stage; empty: no limit. The error
// names the stage and position of the first violation.
Status verify(const Schedule& schedule, const std::vector<double>& memory = {});

// The peak number of micro-batches held per stage, in forward passes of one whole stage.
std::vector<double> peak_in_flight(const Schedule& schedule);

}  // namespace weft::pipeline
