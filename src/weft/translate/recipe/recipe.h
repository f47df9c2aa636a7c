// weft/translate/recipe/recipe.h -- how somebody trains a model today, in no launcher's words.
//
//   --tensor-model-parallel-size 8 ...      \                     / --tensor-model-parallel-size 8 ...
//   {"zero_optimization": {"stage": 1}}      >  Recipe  ->  ...  <  {"zero_optimization": {"stage": 1}}
//   [parallelism] tensor_parallel_degree=8  /                     \ [parallelism] tensor_parallel_degree = 8
//
// Readers and writers of the three languages are in languages.h. A field that a text does not give is 0 where it
// has no default of its own; check() finds what does not go together.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weft/base/result.h"

namespace weft::recipe {

enum class Recompute : std::uint8_t { none, selective, full };
enum class Precision : std::uint8_t { f32, f16, bf16, fp8 };

// What the model's own flags say, where the training's flags have them too.
struct ModelShape {
  std::int64_t layers = 0, hidden = 0, heads = 0, key_heads = 0, inner = 0, words = 0, experts = 0;

  friend bool operator==(const ModelShape&, const ModelShape&) = default;
};

// The order in which numbers of devices count through the axes, the fastest first.
constexpr std::string_view kUsualOrder = "tp-cp-ep-dp-pp";
constexpr std::string_view kPipelineInside = "tp-cp-ep-pp-dp";

struct Recipe {
  std::int64_t devices = 0;  // 0: not said

  // Degrees. Devices are tensor x pipeline x context x data; expert divides data x context x tensor.
  std::int64_t tensor = 1, pipeline = 1, context = 1, expert = 1;
  std::int64_t expert_tensor = 0;   // of the experts; 0: as tensor
  std::int64_t virtual_stages = 1;  // of each pipeline stage
  std::int64_t data = 0;            // 0: what is left of the devices
  std::int64_t copies = 1;  // of data that keep whole copies: what is sharded is sharded over data / copies

  std::int64_t micro_batch = 0;   // examples of one pass of one replica
  std::int64_t global_batch = 0;  // examples of a step
  std::int64_t sequence = 0;      // tokens of an example

  bool sequence_parallel = false;  // activations between tensor-parallel parts are sliced along the sequence
  Recompute recompute = Recompute::none;
  std::int64_t recompute_layers = 0;  // of a stage, where full recomputation is of some; 0: of all
  int zero = 0;                       // shards: 1 the optimizer's states, 2 gradients too, 3 parameters too
  bool offload_optimizer = false, offload_parameters = false;  // to the host's memory
  Precision precision = Precision::f32;
  bool overlap_reduce = false, overlap_gather = false;
  std::int64_t bucket = 0;  // elements that gradients are reduced by; 0: the launcher's own choice
  std::string order = std::string(kUsualOrder);
  ModelShape model;

  // What is of the language alone and no concern of a plan: "--lr" "1e-4". Its writer prints it again.
  std::vector<std::pair<std::string, std::string>> others;
  std::vector<std::string> notes;  // of the reader

  // 0 where it is not known.
  std::int64_t data_degree() const;
  std::int64_t micro_batches() const;
};

// As two recipes for one cluster are compared: without notes and others.
bool same_plan(const Recipe& a, const Recipe& b);

// Fails with the first contradiction, its numbers last. `devices`: of the cluster, 0 where none is named.
Status check(const Recipe& recipe, std::int64_t devices = 0);

std::string_view name(Recompute recompute);
std::string_view name(Precision precision);

}  // namespace weft::recipe
