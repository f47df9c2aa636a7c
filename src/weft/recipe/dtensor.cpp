// Placements for torch.distributed.tensor: a mesh, and what each of its dims holds of each kind of parameter.
#include <algorithm>

#include <fmt/format.h>

#include "weft/recipe/languages.h"

namespace weft::recipe {
namespace {

struct Placed {
  std::string_view what;
  std::string_view tensor;  // along the tensor-parallel dim
};

// [outputs, inputs], as torch's Linear has its weight: columns of a map are its outputs, dim 0.
constexpr Placed kPlaced[] = {
    {"embedding.weight", "Shard(0)"},        {"attention.query.weight", "Shard(0)"},
    {"attention.key.weight", "Shard(0)"},    {"attention.value.weight", "Shard(0)"},
    {"attention.output.weight", "Shard(1)"}, {"mlp.gate.weight", "Shard(0)"},
    {"mlp.up.weight", "Shard(0)"},           {"mlp.down.weight", "Shard(1)"},
    {"norm.weight", "Replicate()"},          {"head.weight", "Shard(0)"},
};

}  // namespace

Written print_dtensor(const Recipe& recipe) {
  Written written;
  struct Dim {
    std::string name;
    std::int64_t size;
  };
  // The outermost first.
  const std::int64_t data = std::max<std::int64_t>(recipe.data_degree(), 1);
  const std::int64_t copies = recipe.zero == 0 ? data : recipe.copies;
  std::vector<Dim> dims;
  const auto add = [&](std::string dim, std::int64_t size) {
    if (size > 1) dims.push_back({std::move(dim), size});
  };
  const bool inside = recipe.order == kPipelineInside;
  if (!inside) add("pp", recipe.pipeline);
  add("dp_replicate", copies);
  add("dp_shard", data / copies);
  if (inside) add("pp", recipe.pipeline);
  add("cp", recipe.context);
  add("tp", recipe.tensor);
  std::vector<std::string> names, sizes;
  for (const Dim& dim : dims) {
    names.push_back(fmt::format("\"{}\"", dim.name));
    sizes.push_back(std::to_string(dim.size));
  }
  const char* const comma = dims.size() == 1 ? "," : "";
  written.text = fmt::format("mesh = init_device_mesh(\"cuda\", ({}{}), mesh_dim_names=({}{}))\n",
                             fmt::join(sizes, ", "), comma, fmt::join(names, ", "), comma);
  written.text += "placements = {\n";
  const auto line = [&](std::string_view what, std::string_view tensor, std::string_view shard,
                        std::string_view context) {
    std::vector<std::string> places;
    for (const Dim& dim : dims) {
      if (dim.name == "tp")
        places.emplace_back(tensor);
      else if (dim.name == "dp_shard")
        places.emplace_back(shard);
      else if (dim.name == "cp")
        places.emplace_back(context);
      else if (dim.name != "pp")
        places.emplace_back(what.starts_with("activation") ? "Shard(0)" : "Replicate()");
    }
    written.text +=
        fmt::format("    \"{}\": ({}{}),\n", what, fmt::join(places, ", "), places.size() == 1 ? "," : "");
  };
  for (const Placed& placed : kPlaced)
    line(placed.what, placed.tensor, recipe.zero == 3 ? "Shard(0)" : "Replicate()", "Replicate()");
  line("activation[batch, sequence, features]", recipe.sequence_parallel ? "Shard(1)" : "Replicate()",
       "Shard(0)", "Shard(1)");
  written.text += "}\n";
  if (recipe.pipeline > 1)
    written.lost.push_back(fmt::format("pipeline {}: a mesh of its own for each stage", recipe.pipeline));
  if (recipe.virtual_stages > 1)
    written.lost.push_back(fmt::format("virtual stages {}", recipe.virtual_stages));
  if (recipe.expert > 1)
    written.lost.push_back(fmt::format("expert {}: experts have a mesh of their own", recipe.expert));
  if (recipe.recompute != Recompute::none)
    written.lost.push_back(fmt::format("{} recomputation", name(recipe.recompute)));
  if (recipe.zero == 1 || recipe.zero == 2)
    written.lost.push_back("sharded optimizer states of replicated parameters");
  if (recipe.micro_batch > 0) written.lost.push_back("micro-batches");
  return written;
}

}  // namespace weft::recipe
