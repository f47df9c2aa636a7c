// weft/translate/recipe/languages.h -- recipes in the words of launchers.
//
//   read_megatron     torchrun --nproc-per-node 8 pretrain_gpt.py --tensor-model-parallel-size 8 ...
//   read_deepspeed    ds_config.json
//   read_torchtitan   job.toml, where Weft is built with toml++
//   print_dtensor     how each kind of parameter is placed on the mesh, for torch.distributed.tensor
//
// Readers fail where a text says two things that exclude each other, and where a word is not known but nearly one that
// is; other words that are not known are kept and noted. Writers say what the language has no words for.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "weft/base/result.h"
#include "weft/translate/recipe/recipe.h"

namespace weft::recipe {

struct Written {
  std::string text;
  std::vector<std::string> lost;  // "rank order tp-cp-ep-pp-dp": no form here
};

// A command or only its flags; the launcher's own are read too.
Result<Recipe> read_megatron(std::string_view flags);
Written print_megatron(const Recipe& recipe);

// `devices`: of the cluster; the file does not say them. 0: not known.
Result<Recipe> read_deepspeed(std::string_view json, std::int64_t devices = 0);
Written print_deepspeed(const Recipe& recipe);

Result<Recipe> read_torchtitan(std::string_view toml);
Written print_torchtitan(const Recipe& recipe);

Written print_dtensor(const Recipe& recipe);
// What print_dtensor printed: degrees, sharding and the order of axes; batches are not in it.
Result<Recipe> read_dtensor(std::string_view text);

}  // namespace weft::recipe
