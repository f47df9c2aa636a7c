// weft/app/session/program_file.h -- a checked program in the format that a file's ending names.
//
//   .xml  MSCCL      .json  MSCCL++      .program  Weft's text
//
// Included by app/session and app/command only.
#pragma once
#include <string>

#include "weft/base/result.h"
#include "weft/collectives/chunks/program.h"
#include "weft/plan/cluster/topology.h"

namespace weft::session {

Result<std::string> in_format_of(const std::string& path, const collective::Program& program);

Status write_program(const std::string& path, const collective::Program& program);

// Seconds that a run of it takes by simulation.
Result<double> simulated_seconds(const collective::Program& program, const cluster::Topology& topology,
                                 std::int64_t bytes);

// Ranks downwards, time to the right, as the simulation has it; see explain/space_time.h.
Result<std::string> draw_program(const collective::Program& program, const cluster::Topology& topology,
                                 std::int64_t bytes);

}  // namespace weft::session
