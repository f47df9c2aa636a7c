// weft/planner/exchange/collective_price.h -- an algorithm made ready for a cluster: compiled, checked, and priced.
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

struct PricedProgram {
  std::string name;  // "all_reduce_ring(chunks=4) LL"
  collective::Collective collective;
  CollectiveFacts facts;
  collective::Actions actions;  // at step grain
  sim::RunParameters parameters;
};

// `reference` as in collective_source.h; parameters that the cluster decides need not be given.
Result<PricedProgram> prepare(const std::string& reference, const sim::CollectiveCluster& cluster,
                              collective::Protocol protocol, std::int32_t instances);

// A program that was checked.
Result<PricedProgram> prepare(const collective::Program& program, const sim::CollectiveCluster& cluster);

// Sets the program's launch time and the rates of the cluster's links so that the simulation meets the table
// measured in `path` (see formats/nccl_tests_log.h) at its smallest and at its largest size.
Status calibrate(const std::string& path, PricedProgram& program, sim::CollectiveCluster& cluster);

Result<std::vector<sim::CostRow>> price_at(const PricedProgram& program,
                                           const sim::CollectiveCluster& cluster,
                                           std::span<const std::int64_t> sizes);

}  // namespace weft::exchange
