// weft/app/session/program_file.h -- writes a checked program; the file extension selects the format.
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

// The simulated time of one run, in seconds.
Result<double> simulated_seconds(const collective::Program& program, const cluster::Topology& topology,
                                 std::int64_t bytes);

// A space-time diagram of the simulated run, ranks down and time to the right; see
// explain/space_time.h.
Result<std::string> draw_program(const collective::Program& program, const cluster::Topology& topology,
                                 std::int64_t bytes);

}  // namespace weft::session
