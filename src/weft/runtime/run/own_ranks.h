// weft/runtime/run/own_ranks.h -- a command that restarts itself as several ranks.
//
//   weft tune ──▶ weft tune --ranks 4    RANK=0  ─┐  each learns from the environment that it is a rank,
//                 weft tune --ranks 4    RANK=1   │  joins the job and takes part; rank 0's standard
//                 ...                            ─┘  output is the result
//
// Included by app/command and the files of run/ only.
#pragma once
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "weft/base/result.h"
#include "weft/communication/transport/job.h"

namespace weft::run {

enum class Part : std::uint8_t {
  starts_ranks,  // an ordinary process
  own_rank,      // a rank started by run_own_ranks() for this command
  launched_rank  // a rank started by a launcher
};

// The role of this process in a command. `counts_ranks`: the command sets the number of ranks to
// start, so a launcher's environment is ignored.
Part part_in(std::string_view command, bool counts_ranks);

// Joins the job described by the environment.
Result<std::shared_ptr<transport::Job>> join_from_environment();

struct OwnRanks {
  std::string command;                 // "tune"
  std::vector<std::string> arguments;  // of the command
  std::int32_t ranks = 2;
  std::chrono::milliseconds timeout{0};
  std::function<void(std::string_view)> on_note = {};  // called with lines of rank 0's standard error
};
// Returns the output of rank 0. If a rank fails, returns its error message if it printed one.
Result<std::string> run_own_ranks(const OwnRanks& request);

}  // namespace weft::run
