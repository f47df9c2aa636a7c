// weft/app/session/synthesized.h -- a synthesized program and what it attains.
//
// Included by app/session and app/command only.
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

inline constexpr std::int64_t kSimulatedBytes = 1'000'000'000;  // message size to compare programs at

struct Synthesized {
  collective::Program program;
  double attained = 0;  // bytes per second, simulated
};

// The best of several programs for the trees, for messages of `bytes`. It has been checked.
Result<Synthesized> synthesize_program(const cluster::Topology& topology, const synthesis::Forest& forest,
                                       const synthesis::Deadline& deadline,
                                       std::int64_t bytes = kSimulatedBytes);

// Compiles the moves with the number of instances that is fastest in simulation at this size, since
// a single threadblock is slower than a fast link. `attained` is for this size.
Result<Synthesized> compile_for(const collective::Moves& moves, const cluster::Topology& topology,
                                std::int64_t bytes, const synthesis::Deadline& deadline = {},
                                collective::Protocol protocol = collective::Protocol::simple);

// An all-to-all whose optimum lies between `flow` and `bound`, in bytes per second.
struct SynthesizedAllToAll {
  double bound = 0, flow = 0;
  std::optional<Synthesized> made;  // empty above 64 devices
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
// Verifies the file by reading it back.
Status write_rings(const std::string& path, const SynthesizedRings& rings);

// Programs to compare with the shipped ones: the one with the highest bandwidth, and the fastest at
// a few sizes.
Result<std::vector<collective::Program>> synthesize_candidates(const cluster::Topology& topology,
                                                               collective::Kind kind);

// The number of trees per root in one direction; the largest if roots differ.
std::int64_t trees_of_root(const synthesis::Forest& forest);

// The nodes of the bottleneck cut, whose outgoing bandwidth limits the collective.
std::vector<std::string> bottleneck_names(const synthesis::Forest& forest, const cluster::Topology& topology);

// Text output. `before`: the optimum before links or devices failed.
std::string print(const synthesis::Forest& forest, const cluster::Topology& topology,
                  const std::optional<Synthesized>& made, std::optional<double> before);

}  // namespace weft::session
