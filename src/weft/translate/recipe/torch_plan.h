// weft/translate/recipe/torch_plan.h -- a plan as a Python file that a training script imports.
//
//   import weft_plan                                   MESH = {"dp_shard": 4, "tp": 2}
//   mesh = weft_plan.mesh()                            TENSOR = {"*.attention_wq_weight": "colwise", ..}
//   parts, schedule = weft_plan.apply(model, mesh)
//
// The file states the plan as values, followed by the functions of torch_plan.py, which apply them
// with parallelize_module, fully_shard, checkpoint_wrapper and PipelineStage. It needs PyTorch alone.
// Modules are found by the plan's names of their tensors: python -m weft.export derives those from a
// module's name. A tensor of a repeated layer has * for the number of the layer.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "weft/base/result.h"
#include "weft/parallel/distribute/distribute.h"
#include "weft/parallel/distribute/index_roles.h"
#include "weft/parallel/pipeline/schedule.h"
#include "weft/translate/recipe/languages.h"
#include "weft/translate/recipe/recipe.h"

namespace weft::recipe {

struct TorchPlan {
  std::string model, distribution;
  std::vector<std::pair<std::string, std::int64_t>> mesh;    // dims of the device mesh, outermost first
  std::vector<std::pair<std::string, std::string>> tensors;  // style by tensor: "colwise"
  bool sequence_parallel = false, reshard_after_forward = true;
  Recompute recompute = Recompute::none;
  Precision precision = Precision::f32;
  std::int64_t layers = 0, micro_batches = 1;
  std::vector<std::int64_t> stage_layers;                      // by stage, as PyTorch numbers them
  std::vector<std::pair<std::string, std::int32_t>> stage_of;  // tensors outside the layers
  pipeline::Route route = pipeline::Route::line;
  std::string schedule;                        // PyTorch's CSV, compute_only
  std::vector<std::string> lost, stages_lost;  // what the file does not express
};

// `model`: the plan for one device that `plan` distributes, with the same names. Fails if a stage boundary
// is not between repeated layers, or if PyTorch cannot run the schedule.
Result<TorchPlan> torch_plan(const plan::Graph& model, const distribute::DistributedPlan& plan,
                             const distribute::Distribution& distribution, Precision precision);

// What is known of a plan with stages that cannot be built, such as one whose experts need the whole batch
// at once: schedule and stages, with as equal numbers of layers as possible. Without mesh and tensors.
Result<TorchPlan> torch_stages(const plan::Graph& model, const distribute::Distribution& distribution,
                               Precision precision);

Written print_torch(const TorchPlan& plan);

}  // namespace weft::recipe
