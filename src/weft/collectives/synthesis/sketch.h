// weft/collectives/synthesis/sketch.h -- what a user allows an algorithm to do, as TACCL's sketches say it.
//
//   internode_conn  "1": [0]            of every node only device 1 sends to other nodes, to their device 0
//   gpus_to_sender_rev_map "1": [0, 1]  what devices 0 and 1 send to other nodes goes by device 1
//   symmetry_offsets [2, 16]            the algorithm stays itself when devices of each 16 move on by 2
//   input_chunkup 2                     chunks of a block
//
// Lines restrict wires. Where they cannot all be met, the smallest set of them that contradict each other is the
// answer.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "weft/base/result.h"
#include "weft/plan/cluster/topology.h"

namespace weft::synthesis {

struct SketchLine {
  enum class Kind : std::uint8_t { connection, relay, symmetry, chunks, switch_ };
  Kind kind = Kind::connection;
  std::int32_t line = 0;    // of the file, from 1
  std::string text;         // as people see it: internode_conn "1": [0]
  std::int32_t device = 0;  // sender of a connection or relay; offset of a symmetry; count of chunks
  std::vector<std::int32_t>
      devices;  // receivers; those relayed; the size of a symmetry's groups; of a switch
};

struct Sketch {
  std::string name;
  std::int32_t nodes = 1;
  std::int32_t chunks = 0;  // of a block; 0: not said
  std::vector<SketchLine> lines;
};

// The wires that the sketch leaves. Devices of a node are those of equal number / (devices / sketch.nodes).
// Fails with the smallest set of lines that contradict each other or the topology.
Result<cluster::Topology> apply(const Sketch& sketch, const cluster::Topology& topology);

}  // namespace weft::synthesis
