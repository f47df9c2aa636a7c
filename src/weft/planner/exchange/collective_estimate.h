// weft/planner/exchange/collective_estimate.h -- compile, check and estimate an algorithm for a cluster.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "weft/base/result.h"
#include "weft/collectives/chunks/actions.h"
#include "weft/collectives/chunks/collective.h"
#include "weft/planner/exchange/choose_collective.h"
#include "weft/predict/sim/collective/collective_cluster.h"
#include "weft/predict/sim/collective/cost_table.h"

namespace weft::exchange {

struct EstimatedProgram {
  std::string name;  // "all_reduce_ring(chunks=4) LL"
  collective::Collective collective;
  CollectiveFacts facts;
  collective::Actions actions;  // at step grain
  sim::RunParameters parameters;
};

// `reference`: see collective_source.h. Parameters that the cluster determines may be omitted.
Result<EstimatedProgram> prepare(const std::string& reference, const sim::CollectiveCluster& cluster,
                                 collective::Protocol protocol, std::int32_t instances);

// REQUIRES: the program was checked.
Result<EstimatedProgram> prepare(const collective::Program& program, const sim::CollectiveCluster& cluster);

// Sets the program's launch time and the cluster's link rates so that the simulation matches the
// table in `path` (see formats/nccl_tests_log.h) at its smallest and largest size.
Status calibrate(const std::string& path, EstimatedProgram& program, sim::CollectiveCluster& cluster);

Result<std::vector<sim::CostRow>> price_at(const EstimatedProgram& program,
                                           const sim::CollectiveCluster& cluster,
                                           std::span<const std::int64_t> sizes);

}  // namespace weft::exchange
