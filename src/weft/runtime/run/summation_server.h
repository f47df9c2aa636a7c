// weft/runtime/run/summation_server.h -- a process that only sums what ranks send it.
//
//   ranks      | compute | sum | sum | compute ...    servers take part in the all-reduce before each step,
//   servers      word      sum   sum   word           which says whether there is another step
//
// Servers are the job's last ranks. They run the plan's sums in the plan's order, and exit when the
// ranks are done.
// Included by the files of run/ only.
#pragma once
#include <cstdint>
#include <memory>
#include <span>

#include "weft/base/result.h"
#include "weft/communication/transport/job.h"
#include "weft/parallel/distribute/distribute.h"
#include "weft/program/tasks/program.h"
#include "weft/runtime/run/local_ranks.h"

namespace weft::run {

// How many servers the algorithms of a plan need.
std::int32_t servers_of(std::span<const program::ChosenAlgorithm> algorithms);

// Returns when the ranks are done.
Status serve_sums(const distribute::DistributedPlan& plan, const std::shared_ptr<transport::Job>& job,
                  const LocalRanksOptions& options);

}  // namespace weft::run
