// weft/app/command/bench.h -- `weft bench`: Weft's collectives and those of others, side by side in one run.
//
//   for each number of ranks and transport     start every side; its ranks sleep in read()
//     for each collective and size             find how many calls make a batch of some milliseconds
//       for each repetition, for each side     one batch: sides take turns, so what slows one slows all
//
// Times are medians over the repetitions of the slowest rank's time a call; results are checked before every
// batch. A side that hangs or dies is ended, reported and started anew; the bench goes on.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "weft/app/session/session.h"

namespace weft::command {

struct Bench {
  std::vector<std::string> collectives;  // "all-reduce"
  std::vector<std::int32_t> ranks = {2};
  std::string sizes = "256B..64MiB";
  std::vector<std::string> transports = {"shm"};
  std::string device = "cpu";             // gpu: all ranks on this machine's GPU, whatever the transports
  std::vector<std::string> against = {};  // openmpi, mpich, gloo
  std::string buffers = "private";        // private, allocated or both
  std::string type = "f32";
  std::int32_t repeats = 7;
  std::int32_t step = 4;    // from one size to the next
  std::int64_t limit = 20;  // seconds that a batch may take
  bool in_place = false;
  std::string programs;  // the folder with weft-peer-*; empty: where this program is
  std::string to;        // .svg: a plot, or one for each collective, number of ranks and transport; .json
  session::Format format = session::Format::text;
  // Told each table as it is done, instead of collecting it in the reply.
  std::function<void(std::string_view)> on_output = {};
};
session::Reply run(const Bench& request);

}  // namespace weft::command
