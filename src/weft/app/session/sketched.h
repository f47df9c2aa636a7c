// weft/app/session/sketched.h -- a topology restricted by a sketch. For app/session and app/command only.
#pragma once
#include <cstdint>
#include <string>

#include "weft/base/result.h"
#include "weft/collectives/synthesis/sketch.h"
#include "weft/plan/cluster/topology.h"

namespace weft::session {

Result<synthesis::Sketch> read_sketch(const std::string& path);

// The topology of a cluster or file named on the command line, restricted to the links that the
// sketch allows. A file that profiles one node is replicated to the sketch's number of nodes. An
// empty `sketch` keeps all links. Sets `chunks` to the sketch's number, or to 0 if it has none.
Result<cluster::Topology> find_sketched(const std::string& reference, const std::string& sketch,
                                        std::int32_t& chunks);

}  // namespace weft::session
