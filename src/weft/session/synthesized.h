// weft/session/synthesized.h -- a synthesized program and what it attains. For the files of session/ only.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "weft/base/result.h"
#include "weft/cluster/topology.h"
#include "weft/collective/program.h"
#include "weft/synthesis/forest.h"

namespace weft::session {

struct Synthesized {
  collective::Program program;
  double attained = 0;  // bytes per second at 1 GB, simulated
};

// The best of a few programs of the trees, each of which was checked.
Result<Synthesized> synthesize_program(const cluster::Topology& topology, const synthesis::Forest& forest,
                                       const synthesis::Deadline& deadline);

// The nodes whose roots' data leaves them too slowly.
std::vector<std::string> bottleneck_names(const synthesis::Forest& forest, const cluster::Topology& topology);

// For people. `before`: the optimum before a failure.
std::string print(const synthesis::Forest& forest, const cluster::Topology& topology,
                  const std::optional<Synthesized>& made, std::optional<double> before);

}  // namespace weft::session
