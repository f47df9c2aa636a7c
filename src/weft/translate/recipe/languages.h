// weft/translate/recipe/languages.h -- readers and writers of launchers' configurations.
//
//   read_megatron     torchrun --nproc-per-node 8 pretrain_gpt.py --tensor-model-parallel-size 8 ...
//   read_deepspeed    ds_config.json
//   read_torchtitan   job.toml, if Weft is built with toml++
//   read_nemo         NeMo 2: trainer.strategy.tensor_model_parallel_size=8; NeMo 1: YAML
//   read_bridge       Megatron Bridge: model.tensor_model_parallel_size=8, or YAML
//   read_accelerate   Hugging Face Accelerate's FSDP configuration, YAML
//   read_maxtext      MaxText: base.yml with changes, or ici_fsdp_parallelism=8
//
// Readers fail on contradictory options, and on an unknown option that is nearly a known one. Other
// options are kept and listed in a note. settings_X() are the settings that state a recipe's plan;
// print_X() adds the recipe's other options and reports what the language cannot express.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "weft/base/result.h"
#include "weft/translate/recipe/recipe.h"
#include "weft/translate/recipe/settings.h"

namespace weft::recipe {

struct Written {
  std::string text;
  std::vector<std::string> lost;  // cannot be expressed: "rank order tp-cp-ep-pp-dp"
};

// `flags` is a command or only its flags; the launcher's own flags are read too.
Result<Recipe> read_megatron(std::string_view flags);
Settings settings_megatron(const Recipe& recipe);
Written print_megatron(const Recipe& recipe);

// `devices`: of the cluster, since the file does not state it. 0: not known.
Result<Recipe> read_deepspeed(std::string_view json, std::int64_t devices = 0);
Settings settings_deepspeed(const Recipe& recipe);
Written print_deepspeed(const Recipe& recipe);

Result<Recipe> read_torchtitan(std::string_view toml, std::int64_t devices = 0);
Settings settings_torchtitan(const Recipe& recipe);
Written print_torchtitan(const Recipe& recipe);

Result<Recipe> read_nemo(std::string_view text);
Settings settings_nemo(const Recipe& recipe);
Written print_nemo(const Recipe& recipe);

Result<Recipe> read_bridge(std::string_view text);
Settings settings_bridge(const Recipe& recipe);
Written print_bridge(const Recipe& recipe);

Result<Recipe> read_accelerate(std::string_view yaml);
Settings settings_accelerate(const Recipe& recipe);
Written print_accelerate(const Recipe& recipe);

Result<Recipe> read_maxtext(std::string_view text, std::int64_t devices = 0);
Settings settings_maxtext(const Recipe& recipe);
Written print_maxtext(const Recipe& recipe);

}  // namespace weft::recipe
