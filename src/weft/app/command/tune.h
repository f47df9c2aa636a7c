// weft/app/command/tune.h -- `weft tune`: measures every algorithm that applies, once, so that calls choose well.
//
//   weft tune --ranks 2,4 --transport shm      starts ranks of itself on this machine
//   mpirun -n 8 weft tune                      takes part as one of the ranks that a launcher started
//
//   collective  ranks  transport  buffers  size    fastest          time     next              time
//   all_reduce      4  shm        private  64 KiB  direct two-shot  14.1 us  direct one-shot  19 us
//
// The times go to the statistics database; communicators find them there. Time is bounded, and what there was
// no time for is said. --check keeps nothing: it measures at the sizes between, and says how well what is in
// the database foretold the times and how much the choices of communicators cost over the best in hindsight.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "weft/app/session/session.h"

namespace weft::command {

struct Tune {
  std::vector<std::int32_t> ranks = {};       // none: 2, 4 and 8, or those of a launcher
  std::vector<std::string> transports = {};   // none: shm and tcp
  std::vector<std::string> collectives = {};  // none: the five that training uses
  std::string sizes = "256B..64MiB";
  std::int32_t seconds = 0;  // for everything, about; 0: a minute, a quarter of one where quick
  bool quick = false;        // fewer sizes too
  bool check = false;
  std::string statistics = {};  // the database; empty: the user's own; "none": no file
  session::Format format = session::Format::text;
  std::function<void(std::string_view)> on_note = {};  // told what is being measured, a line each
};
session::Reply run(const Tune& request);

}  // namespace weft::command
