// weft/app/command/improve.h -- `weft improve`: what somebody's configuration costs, and a better one in its own words.
//
//   weft improve --megatron '--tensor-model-parallel-size 8 ...' --model config.json --on superpod
//
// One of the three languages is given. The batch and the length of sequences are those of the configuration; what it
// does not say, `batch` and `sequence` do.
#pragma once
#include <cstdint>
#include <functional>
#include <string>

#include "weft/app/session/session.h"

namespace weft::command {

struct Improve {
  std::string megatron;    // flags, a command with them, or a file that holds either
  std::string deepspeed;   // ds_config.json
  std::string torchtitan;  // job.toml
  std::string model;       // a config.json, a script whose last model it is, or a name that ships
  std::string on;          // a cluster's name, or a script whose last cluster it is
  std::int64_t batch = 0, sequence = 0;
  double seconds = 0;  // for the search; 0: until nothing is better
  std::string to;      // a file for the better configuration
  session::Format format = session::Format::text;
  std::size_t width = explain::kUsualWidth;
  std::function<bool()> interrupted = {};
};
session::Reply run(const Improve& request);

}  // namespace weft::command
