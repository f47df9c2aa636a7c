// weft/runtime/run/own_ranks.h -- a command that needs ranks starts itself again, once for each.
//
//   weft tune ──▶ weft tune --ranks 4    RANK=0  ─┐  each finds from the environment that it is a rank,
//                 weft tune --ranks 4    RANK=1   │  joins the job and takes part; what rank 0 writes to its
//                 ...                            ─┘  standard output is the answer
//
// Included by the files of run/ only.
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
  own_rank,      // started by run_own_ranks() for this command
  launched_rank  // one of several that a launcher started
};

// Which part this process has in a command. `counts_ranks`: the command says how many ranks to start, so a
// launcher's environment that happens to be there is not meant.
Part part_in(std::string_view command, bool counts_ranks);

// Joins the job that the environment describes.
Result<std::shared_ptr<transport::Job>> join_from_environment();

struct OwnRanks {
  std::string command;                 // "tune"
  std::vector<std::string> arguments;  // after it
  std::int32_t ranks = 2;
  std::chrono::milliseconds timeout{0};
  std::function<void(std::string_view)> on_note = {};  // lines that rank 0 writes to its standard error
};
// What rank 0 wrote. A rank that fails is the error, in its own words where it left any.
Result<std::string> run_own_ranks(const OwnRanks& request);

}  // namespace weft::run
