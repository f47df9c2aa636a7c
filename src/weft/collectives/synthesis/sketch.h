// weft/collectives/synthesis/sketch.h -- user constraints on an algorithm, as in TACCL's sketches.
//
//   internode_conn  "1": [0]            only device 1 of each node sends to other nodes, to their device 0
//   gpus_to_sender_rev_map "1": [0, 1]  data of devices 0 and 1 for other nodes goes through device 1
//   symmetry_offsets [2, 16]            shifting the devices of each 16 by 2 leaves the algorithm unchanged
//   input_chunkup 2                     chunks per block
//
// Lines restrict links. If they cannot all be satisfied, the error lists a smallest set of
// conflicting lines.
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
  std::int32_t line = 0;    // in the file, from 1
  std::string text;         // for messages: internode_conn "1": [0]
  std::int32_t device = 0;  // sender of a connection or relay; offset of a symmetry; number of chunks
  std::vector<std::int32_t>
      devices;  // receivers; relayed devices; group size of a symmetry; devices of a switch
};

struct Sketch {
  std::string name;
  std::int32_t nodes = 1;
  std::int32_t chunks = 0;  // per block; 0: unspecified
  std::vector<SketchLine> lines;
};

// The topology restricted by the sketch. Device d is on node d / (devices / sketch.nodes). Fails
// with a smallest set of lines that contradict each other or the topology.
Result<cluster::Topology> apply(const Sketch& sketch, const cluster::Topology& topology);

}  // namespace weft::synthesis
