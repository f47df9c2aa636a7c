// weft/app/command/synthesize_time.h -- `weft collective synthesize --optimal time --size 1MB`.
//
// Searches for the fastest algorithm for messages of this size, and reports a lower bound and the
// gap to it. When stopped by its time limit or by Ctrl-C it returns the best found so far.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "weft/app/explain/progress.h"
#include "weft/app/session/session.h"

namespace weft::command {

struct SynthesizeTime {
  std::string collective;
  std::string topology;  // a file or a cluster; see find_cluster.h
  std::string size;      // "1MB"
  std::int32_t root = 0;
  std::int32_t chunks = 0;  // per block; 0: the best
  std::int32_t turns = 24;
  std::uint64_t seed = 1;
  std::vector<std::string> without;
  std::string time_limit;  // "10 s"; empty: run all turns
  std::string to;          // output file
  std::string plot;        // .svg file
  std::string sketch;      // a TACCL sketch file
  session::Format format = session::Format::text;
  std::function<bool()> interrupted = {};
  std::function<void(const explain::Progress&)> on_progress = {};
};
session::Reply run(const SynthesizeTime& request);

}  // namespace weft::command
