// weft/app/command/tune.h -- `weft tune`: measures every algorithm, so that calls choose well.
//
//   weft tune --ranks 2,4 --transport shm      starts its ranks on this machine
//   mpirun -n 8 weft tune                      runs as one of the ranks of a launcher
//
//   collective  ranks  transport  buffers  size    fastest          time     next              time
//   all_reduce      4  shm        private  64 KiB  direct two-shot  14.1 us  direct one-shot  19 us
//
// Times are saved in the statistics database, where communicators read them. The total time is
// bounded; skipped measurements are reported. --check saves nothing. It measures at intermediate
// sizes and reports how well the database predicts those times. It also reports how much slower the
// communicators' choices are than the best in hindsight.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "weft/app/session/session.h"

namespace weft::command {

struct Tune {
  std::vector<std::int32_t> ranks = {};       // empty: 2, 4 and 8, or as launched
  std::vector<std::string> transports = {};   // empty: shm and tcp
  std::vector<std::string> collectives = {};  // empty: the five used in training
  std::string sizes = "256B..64MiB";
  std::int32_t seconds = 0;  // total, approximate; 0: 60, or 15 with `quick`
  bool quick = false;        // also fewer sizes
  bool check = false;
  std::string statistics = {};  // database; empty: the user's; "none": do not save
  session::Format format = session::Format::text;
  std::function<void(std::string_view)> on_note = {};  // called with one line per measurement
};
session::Reply run(const Tune& request);

}  // namespace weft::command
