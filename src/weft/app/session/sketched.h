// weft/app/session/sketched.h -- the wires that a sketch leaves of a cluster. For app/session and app/command only.
#pragma once
#include <cstdint>
#include <string>

#include "weft/base/result.h"
#include "weft/collectives/synthesis/sketch.h"
#include "weft/plan/cluster/topology.h"

namespace weft::session {

Result<synthesis::Sketch> read_sketch(const std::string& path);

// What a command line names: a cluster or a file, of as many nodes as the sketch has where the file profiles
// one node. Without a sketch (an empty path), all its wires. `chunks`: those of the sketch, 0 where it has none.
Result<cluster::Topology> find_sketched(const std::string& reference, const std::string& sketch,
                                        std::int32_t& chunks);

}  // namespace weft::session
