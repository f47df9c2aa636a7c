// weft/collectives/synthesis/without.h -- the topology that remains after a failure.
//
//   link:3-5   no link between nodes 3 and 5, in either direction
//   gpu:12     no device 12; higher numbers decrease by one
#pragma once
#include <string_view>

#include "weft/base/result.h"
#include "weft/plan/cluster/topology.h"

namespace weft::synthesis {

Result<cluster::Topology> without(const cluster::Topology& topology, std::string_view lost);

}  // namespace weft::synthesis
