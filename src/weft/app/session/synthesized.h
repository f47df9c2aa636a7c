// weft/app/session/synthesized.h -- a synthesized program and what it attains. For app/session and app/command only.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "weft/base/result.h"
#include "weft/collectives/chunks/moves.h"
#include "weft/collectives/chunks/program.h"
#include "weft/collectives/synthesis/forest.h"
#include "weft/formats/nccl_graph_xml.h"
#include "weft/plan/cluster/topology.h"

namespace weft::session {

inline constexpr std::int64_t kSimulatedBytes = 1'000'000'000;  // that programs are compared at

struct Synthesized {
  collective::Program program;
  double attained = 0;  // bytes per second, simulated
};

// The best of a few programs of the trees for messages of so many bytes; it was checked.
Result<Synthesized> synthesize_program(const cluster::Topology& topology, const synthesis::Forest& forest,
                                       const synthesis::Deadline& deadline,
                                       std::int64_t bytes = kSimulatedBytes);

// The moves with as many instances as are best at this size by simulation: a threadblock alone is slower than a
// fast link. `attained` is of this size.
Result<Synthesized> compile_for(const collective::Moves& moves, const cluster::Topology& topology,
                                std::int64_t bytes, const synthesis::Deadline& deadline = {},
                                collective::Protocol protocol = collective::Protocol::simple);

// Of an all-to-all, whose optimum lies between `flow` and `bound`, bytes per second.
struct SynthesizedAllToAll {
  double bound = 0, flow = 0;
  std::optional<Synthesized> made;  // none for more than 64 devices
};
Result<SynthesizedAllToAll> synthesize_all_to_all(const cluster::Topology& topology,
                                                  const synthesis::Deadline& deadline);
std::string print(const SynthesizedAllToAll& found, const cluster::Topology& topology);

// Rings for NCCL_GRAPH_FILE, as a forest of chains and as a graph.
struct SynthesizedRings {
  synthesis::Forest forest;
  Synthesized made;
  formats::NcclGraph graph;
};
Result<SynthesizedRings> synthesize_rings(const cluster::Topology& topology, collective::Kind kind,
                                          const synthesis::Deadline& deadline);
// Reads back what it writes.
Status write_rings(const std::string& path, const SynthesizedRings& rings);

// Programs that are worth pricing beside the shipped ones: of the most bandwidth, and done earliest at a few sizes.
Result<std::vector<collective::Program>> synthesize_candidates(const cluster::Topology& topology,
                                                               collective::Kind kind);

// Trees of each root; of those that differ, of the root that has most, one way.
std::int64_t trees_of_root(const synthesis::Forest& forest);

// The nodes whose roots' data leaves them too slowly.
std::vector<std::string> bottleneck_names(const synthesis::Forest& forest, const cluster::Topology& topology);

// For people. `before`: the optimum before a failure.
std::string print(const synthesis::Forest& forest, const cluster::Topology& topology,
                  const std::optional<Synthesized>& made, std::optional<double> before);

}  // namespace weft::session
