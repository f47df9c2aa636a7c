// weft/app/command/profile.h -- `weft profile`: what this machine's links, memory and cores do, as a cluster.
//
//   weft profile --ranks 4 -o here.weft       starts 4 ranks of itself on this machine
//   mpirun -n 8 weft profile -o there.weft    takes part as one of the ranks that a launcher started
//   weft profile --model char_gpt             runs the model's step: see profile_model.h
//   weft profile --device gpu                 what this machine's GPU does by itself: measure/device_rates.h
//
//   weft collective cost all_reduce_ring --on here.weft
//
// All ranks measure, rank 0 answers: a script with CREATE DEVICE and CREATE CLUSTER, the tables of what was
// measured as comments before it. The figures also go to the statistics database, where the choice of
// algorithms finds them.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "weft/app/session/session.h"

namespace weft::command {

struct Profile {
  std::int32_t ranks = 0;                    // 0: those of a launcher, else as many as there are cores
  std::vector<std::string> transports = {};  // none: shm where ranks share a machine, and tcp
  std::string name = "here";                 // of the cluster
  std::string to = {};                       // a .weft file; empty: the answer itself
  std::string statistics = {};               // the database; empty: the user's own; "none": no file
  bool quick = false;                        // a tenth of the time
  std::string model = {};                    // measure the units of its step instead of the machine
  std::string with = {};                     // sizes and settings of that: "b = 8"
  std::string device = {};                   // "gpu": this machine's GPU instead of its processor
  session::Format format = session::Format::text;
  std::function<void(std::string_view)> on_note = {};  // told what is being measured, a line each
};
session::Reply run(const Profile& request);

}  // namespace weft::command
