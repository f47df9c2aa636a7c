// weft/synthesis/path_program.h -- an all-to-all along the paths of a concurrent flow, as a chunk program.
//
//   block of 0 for 2, cut in two:   half over 1, half over 3, each in pieces that follow each other
//
// On their way chunks rest in scratch. What a device has for itself it copies.
#pragma once
#include <cstdint>

#include "weft/base/result.h"
#include "weft/collective/program.h"
#include "weft/synthesis/concurrent_flow.h"
#include "weft/synthesis/hop_program.h"
#include "weft/synthesis/step_network.h"

namespace weft::synthesis {

struct PathProgram {
  std::int32_t cut = 1;     // parts of a block, each with a path of its own
  std::int32_t pieces = 1;  // that follow each other along it
  HopPace pace = {};        // a stream is such a part
};

// Fails where the chunks or steps would be too many.
Result<collective::Program> path_program(const StepNetwork& network, const ConcurrentFlow& flow,
                                         const PathProgram& request);

}  // namespace weft::synthesis
