// weft/app/command/bench.h -- `weft bench`: compares collectives with other libraries.
//
//   for each number of ranks and transport     start all libraries; their ranks block in read()
//     for each collective and size             calibrate the batch to a few milliseconds of calls
//       for each repetition, for each library  run one batch; interleaving spreads any disturbance
//
// Times are medians over the repetitions of the slowest rank's time per call. Results are checked
// before every batch. A library that hangs or crashes is killed, reported and restarted; the
// benchmark continues.
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
  std::string device = "cpu";             // gpu: all ranks on this machine's GPU; ignores transports
  std::vector<std::string> against = {};  // openmpi, mpich, gloo
  std::string buffers = "private";        // private, allocated or both
  std::string type = "f32";
  std::int32_t repeats = 7;
  std::int32_t step = 4;    // factor from one size to the next
  std::int64_t limit = 20;  // seconds allowed per batch
  bool in_place = false;
  std::string programs;  // folder of the weft-peer-* programs; empty: this program's folder
  std::string to;        // .svg: one plot per collective, number of ranks and transport; or .json
  session::Format format = session::Format::text;
  // Called with each table as soon as it is done; if empty, the reply collects them.
  std::function<void(std::string_view)> on_output = {};
};
session::Reply run(const Bench& request);

}  // namespace weft::command
