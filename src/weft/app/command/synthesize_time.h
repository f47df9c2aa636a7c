// weft/app/command/synthesize_time.h -- `weft collective synthesize --optimal time --size 1MB`.
//
// An algorithm that is done as early as a search finds for messages of this size, with the bound below which
// none is done and the gap between the two. Stopped by its time limit or by Ctrl-C it has the best so far.
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
  std::string topology;  // a file or a cluster, see find_cluster.h
  std::string size;      // "1MB"
  std::int32_t root = 0;
  std::int32_t chunks = 0;  // of a block; 0: what is best
  std::int32_t turns = 24;
  std::uint64_t seed = 1;
  std::vector<std::string> without;
  std::string time_limit;  // "10 s"; empty: all turns
  std::string to;          // a file
  std::string plot;        // an .svg
  std::string sketch;      // TACCL's file of what is allowed
  session::Format format = session::Format::text;
  std::function<bool()> interrupted = {};
  std::function<void(const explain::Progress&)> on_progress = {};
};
session::Reply run(const SynthesizeTime& request);

}  // namespace weft::command
