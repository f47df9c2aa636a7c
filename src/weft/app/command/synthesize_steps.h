// weft/app/command/synthesize_steps.h -- `weft collective synthesize`, with steps and rounds.
//
//   --chunks C --steps S --rounds R   an algorithm with these numbers, or a proof that none exists
//   --pareto                          the frontier between few steps and few rounds
//
// The program was compiled and checked. It goes to a file (.xml, .json or .program), or into the
// reply.
#pragma once
#include <cstdint>
#include <functional>
#include <string>

#include "weft/app/session/session.h"

namespace weft::command {

struct SynthesizeSteps {
  std::string collective;
  std::string topology;  // a file or a cluster; see find_cluster.h
  std::int32_t root = 0;
  std::int32_t chunks = 0, steps = 0, rounds = 0;
  bool pareto = false;
  std::int32_t most_steps = 0, extra_rounds = -1;  // for the frontier; see synthesis/step_pareto.h
  std::string time_limit;                          // "10 s"; empty: unlimited
  std::string to;                                  // a file; with --pareto, for the last point's program
  session::Format format = session::Format::text;
  std::function<bool()> interrupted = {};
};
session::Reply run(const SynthesizeSteps& request);

}  // namespace weft::command
