// weft/runtime/run/summation_server.h -- a process that adds up what ranks send it, and holds nothing of the model.
//
//   ranks      | compute | sum | sum | compute ...    what they say before a step, servers hear too: whether there
//   servers      hear      sum   sum   hear           is one
//
// Servers are the job's last ranks. They run the plan's sums in the plan's order, and leave when ranks are done.
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

// How many of them the algorithms of a plan need.
std::int32_t servers_of(std::span<const program::ChosenAlgorithm> algorithms);

// Until ranks say that they are done.
Status serve_sums(const distribute::DistributedPlan& plan, const std::shared_ptr<transport::Job>& job,
                  const LocalRanksOptions& options);

}  // namespace weft::run
