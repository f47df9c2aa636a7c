// weft/app/command/profile.h -- `weft profile`: this machine's links, memory and cores, measured.
//
//   weft profile --ranks 4 -o here.weft       starts 4 ranks on this machine
//   mpirun -n 8 weft profile -o there.weft    runs as one of the ranks of a launcher
//   weft profile --model char_gpt             runs the model's step: see profile_model.h
//   weft profile --device gpu                 measures this machine's GPU alone:
//   measure/device_rates.h
//
//   weft collective cost all_reduce_ring --on here.weft
//
// All ranks measure; rank 0 reports. The result is a script with CREATE DEVICE and CREATE CLUSTER;
// tables of the measurements precede it as comments. The results are also saved in the statistics
// database, which the choice of algorithms reads.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "weft/app/session/session.h"

namespace weft::command {

struct Profile {
  std::int32_t ranks = 0;                    // 0: as launched, else one per core
  std::vector<std::string> transports = {};  // empty: tcp, and shm for ranks on one host
  std::string name = "here";                 // of the cluster
  std::string to = {};                       // a .weft file; empty: print the script
  std::string statistics = {};               // database; empty: the user's; "none": do not save
  bool quick = false;                        // in a tenth of the time
  std::string model = {};                    // measure the units of this model's step, not the machine
  std::string with = {};                     // its sizes and settings: "b = 8"
  std::string device = {};                   // "gpu": measure this machine's GPU, not its CPU
  session::Format format = session::Format::text;
  std::function<void(std::string_view)> on_note = {};  // called with one line per measurement
};
session::Reply run(const Profile& request);

}  // namespace weft::command
