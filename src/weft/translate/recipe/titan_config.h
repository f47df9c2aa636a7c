// weft/translate/recipe/titan_config.h -- a plan as a Python configuration of torchtitan.
//
//   MODEL = ""                                       torchrun .. -m torchtitan.train
//   PARALLELISM = {"tensor_parallel_degree": 8, ..}      --module weft_plan --config config
//   SCHEDULE = """0F0,0F1,..
//
// torchtitan after 0.2.2 has no job.toml: a function returns its Trainer.Config. The file has such a
// function, config(). Stage cuts and schedules are those of the plan, so unequal stages and schedules
// that torchtitan has no name for can be expressed.
#pragma once
#include "weft/translate/recipe/languages.h"
#include "weft/translate/recipe/spread.h"
#include "weft/translate/recipe/torch_plan.h"

namespace weft::recipe {

// `plan` has the stages, `gathered` the degrees and batches of the same plan.
Written print_titan_config(const TorchPlan& plan, const GatheredRecipe& gathered);

}  // namespace weft::recipe
