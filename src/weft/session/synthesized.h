// weft/session/synthesized.h -- a synthesized program and what it attains. For the files of session/ only.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "weft/base/result.h"
#include "weft/cluster/topology.h"
#include "weft/collective/moves.h"
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

// The moves with as many instances as are best at this size by simulation: a threadblock alone is slower than a
// fast link. `attained` is of this size.
Result<Synthesized> compile_for(const collective::Moves& moves, const cluster::Topology& topology,
                                std::int64_t bytes, const synthesis::Deadline& deadline = {},
                                collective::Protocol protocol = collective::Protocol::simple);

// Of an all-to-all, whose optimum lies between `flow` and `bound`, bytes per second.
struct SynthesizedAllToAll {
  double bound = 0, flow = 0;
  double scheduled = 0;             // of the schedule that the program was made of
  std::optional<Synthesized> made;  // none for more than 64 devices
};
Result<SynthesizedAllToAll> synthesize_all_to_all(const cluster::Topology& topology,
                                                  const synthesis::Deadline& deadline);
std::string print(const SynthesizedAllToAll& found, const cluster::Topology& topology);

// Programs that are worth pricing beside the shipped ones: of the most bandwidth, and done earliest at a few sizes.
Result<std::vector<collective::Program>> synthesize_candidates(const cluster::Topology& topology,
                                                               collective::Kind kind);

// The nodes whose roots' data leaves them too slowly.
std::vector<std::string> bottleneck_names(const synthesis::Forest& forest, const cluster::Topology& topology);

// For people. `before`: the optimum before a failure.
std::string print(const synthesis::Forest& forest, const cluster::Topology& topology,
                  const std::optional<Synthesized>& made, std::optional<double> before);

}  // namespace weft::session
