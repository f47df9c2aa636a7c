// weft/app/command/improve.h -- `weft improve`: what a configuration costs, and a better one.
//
//   weft improve --megatron '--tensor-model-parallel-size 8 ...' --model config.json --on superpod
//
// Exactly one of the recipe formats is given. Batch size and sequence length come from the
// configuration; `batch` and `sequence` supply them if it does not. The better configuration is
// written as the given text with what changes.
#pragma once
#include <cstdint>
#include <functional>
#include <string>

#include "weft/app/session/session.h"

namespace weft::command {

struct Improve {
  std::string megatron;    // flags, a command that contains them, or a file with either
  std::string deepspeed;   // ds_config.json
  std::string torchtitan;  // job.toml
  std::string nemo;        // NeMo's YAML, or overrides: trainer.strategy.tensor_model_parallel_size=8
  std::string bridge;      // Megatron Bridge's, likewise: model.tensor_model_parallel_size=8
  std::string accelerate;  // Hugging Face Accelerate's FSDP configuration
  std::string maxtext;     // MaxText's YAML, or overrides: ici_fsdp_parallelism=8
  std::string model;       // a config.json, a script (its last model is used), or a shipped model
  std::string stack;       // the software that runs the configuration; empty: that of its format
  std::string measured;    // "step=1.31s, memory=61GiB", or a trainer's log; empty: nothing was measured
  std::string save_stack;  // file for the stack that the measured step calibrates
  std::string on;          // a cluster's name, or a script (its last cluster is used)
  std::int64_t batch = 0, sequence = 0;
  double seconds = 0;        // time limit of everything; 0: until nothing better is found
  bool memory_only = false;  // only the memory of the given configuration
  std::string to;            // file for the better configuration
  session::Format format = session::Format::text;
  std::size_t width = explain::kUsualWidth;
  std::function<bool()> interrupted = {};
  // Progress of the search, for a terminal.
  std::function<void(const explain::Progress&)> on_progress = {};
};
session::Reply run(const Improve& request);

}  // namespace weft::command
