// weft/translate/recipe/recipe.h -- how a user trains a model today, independent of the launcher.
//
//   --tensor-model-parallel-size 8 ...      \                     / --tensor-model-parallel-size 8 ...
//   {"zero_optimization": {"stage": 1}}      >  Recipe  ->  ...  <  {"zero_optimization": {"stage": 1}}
//   [parallelism] tensor_parallel_degree=8  /                     \ [parallelism] tensor_parallel_degree = 8
//
// Readers and writers of the languages are in languages.h. A field that a text does not set
// is 0 unless it has another default. check() finds contradictions.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weft/base/result.h"

namespace weft::recipe {

enum class Recompute : std::uint8_t { none, selective, full };
enum class Precision : std::uint8_t { f32, f16, bf16, fp8, nvfp4 };

// The model's sizes, if the training flags state them.
struct ModelShape {
  std::int64_t layers = 0, hidden = 0, heads = 0, key_heads = 0, inner = 0, words = 0, experts = 0;

  friend bool operator==(const ModelShape&, const ModelShape&) = default;
};

// The order of axes in rank numbers, fastest first.
constexpr std::string_view kUsualOrder = "tp-cp-ep-dp-pp";
constexpr std::string_view kPipelineInside = "tp-cp-ep-pp-dp";

// Schedules other than 1F1B, by Weft's names: zero bubble with two stages per rank in a V, and all forward
// passes before the backward ones.
constexpr std::string_view kZeroBubble = "zb_v", kAllForward = "gpipe";

struct Recipe {
  std::int64_t devices = 0;   // 0: not stated
  std::int64_t per_node = 0;  // devices per node; 0: not stated

  // Parallel degrees. Devices are tensor x pipeline x context x data; expert divides data x context
  // x tensor.
  std::int64_t tensor = 1, pipeline = 1, context = 1, expert = 1;
  std::int64_t expert_tensor = 0;   // tensor parallelism of the experts; 0: as tensor
  std::int64_t virtual_stages = 1;  // per pipeline stage
  std::string schedule;             // "zb_v", "gpipe"; empty: 1F1B, interleaved if virtual_stages
  // Layers of each virtual stage, in the order in which a micro-batch passes them; empty: equal.
  std::vector<std::int64_t> stage_layers = {};
  std::int64_t data = 0;    // 0: the remaining devices
  std::int64_t copies = 1;  // replicas within data: state is sharded over data / copies ranks

  std::int64_t micro_batch = 0;    // examples per pass and replica
  std::int64_t global_batch = 0;   // examples per step
  std::int64_t default_batch = 0;  // the launcher's, if global_batch is not stated
  std::int64_t sequence = 0;       // tokens per example

  bool sequence_parallel = false;  // slice activations between tensor-parallel blocks along the sequence
  Recompute recompute = Recompute::none;
  std::int64_t recompute_layers = 0;  // per stage, if full recomputation is partial; 0: all
  int zero = 0;                       // ZeRO stage: 1 optimizer states, 2 and gradients, 3 and parameters
  bool offload_optimizer = false, offload_parameters = false;  // to host memory
  Precision precision = Precision::f32;
  bool overlap_reduce = false, overlap_gather = false;
  std::int64_t bucket = 0;  // elements per gradient bucket; 0: the launcher's default
  std::string order = std::string(kUsualOrder);
  ModelShape model;

  std::string dialect;  // an older form of the language that its writer keeps: "1" for NeMo 1

  // Options of the launcher that do not affect the plan: "--lr" "1e-4". Its writer prints them
  // again.
  std::vector<std::pair<std::string, std::string>> others;
  std::vector<std::string> notes;  // from the reader

  // 0 if it is not known.
  std::int64_t data_degree() const;
  std::int64_t micro_batches() const;
};

// Compares two recipes for one cluster, without notes and others.
bool same_plan(const Recipe& a, const Recipe& b);

// Fails with the first contradiction, with its numbers at the end. `devices`: of the cluster; 0 if
// there is no cluster.
Status check(const Recipe& recipe, std::int64_t devices = 0);

std::string_view name(Recompute recompute);
std::string_view name(Precision precision);
// Products by weights in eight or four bits, everything else in bf16.
bool is_narrow(Precision precision);

}  // namespace weft::recipe
