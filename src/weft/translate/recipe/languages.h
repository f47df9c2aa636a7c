// weft/translate/recipe/languages.h -- readers and writers of launchers' configurations.
//
//   read_megatron     torchrun --nproc-per-node 8 pretrain_gpt.py --tensor-model-parallel-size 8 ...
//   read_deepspeed    ds_config.json
//   read_torchtitan   job.toml, if Weft is built with toml++
//   print_dtensor     the placement of each kind of parameter on the mesh, for torch.distributed.tensor
//
// Readers fail on contradictory options, and on an unknown option that resembles a known one. Other
// unknown options are kept and noted. Writers report what the language cannot express.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "weft/base/result.h"
#include "weft/translate/recipe/recipe.h"

namespace weft::recipe {

struct Written {
  std::string text;
  std::vector<std::string> lost;  // cannot be expressed: "rank order tp-cp-ep-pp-dp"
};

// `flags` is a command or only its flags; the launcher's own flags are read too.
Result<Recipe> read_megatron(std::string_view flags);
Written print_megatron(const Recipe& recipe);

// `devices`: of the cluster, since the file does not state it. 0: not known.
Result<Recipe> read_deepspeed(std::string_view json, std::int64_t devices = 0);
Written print_deepspeed(const Recipe& recipe);

Result<Recipe> read_torchtitan(std::string_view toml);
Written print_torchtitan(const Recipe& recipe);

Written print_dtensor(const Recipe& recipe);
// Reads the output of print_dtensor: degrees, sharding and axis order, without batches.
Result<Recipe> read_dtensor(std::string_view text);

}  // namespace weft::recipe
