// Placements for torch.distributed.tensor: a mesh, and the placement of each kind of parameter on
// its dims.
#include <algorithm>

#include <fmt/format.h>

#include "weft/base/number.h"
#include "weft/formats/value.h"
#include "weft/translate/recipe/languages.h"

namespace weft::recipe {
namespace {

struct Placed {
  std::string_view what;
  std::string_view tensor;  // its placement on the tensor-parallel dim
};

// [outputs, inputs], as torch stores a Linear's weight: a column-parallel map shards its outputs,
// dim 0.
constexpr Placed kPlaced[] = {
    {"embedding.weight", "Shard(0)"},        {"attention.query.weight", "Shard(0)"},
    {"attention.key.weight", "Shard(0)"},    {"attention.value.weight", "Shard(0)"},
    {"attention.output.weight", "Shard(1)"}, {"mlp.gate.weight", "Shard(0)"},
    {"mlp.up.weight", "Shard(0)"},           {"mlp.down.weight", "Shard(1)"},
    {"norm.weight", "Replicate()"},          {"head.weight", "Shard(0)"},
};

using Words = std::vector<std::string>;

// The words in the first parentheses after `mark`, without quotes; a nested form such as Shard(0)
// is one word.
Result<Words> words_behind(std::string_view text, std::string_view mark) {
  const std::size_t at = text.find(mark);
  const std::size_t open = at == std::string_view::npos ? at : text.find('(', at + mark.size());
  if (open == std::string_view::npos)
    return user_error(fmt::format("expected a list in parentheses after {}, found none", mark));
  Words words(1);
  int depth = 1;
  for (std::size_t i = open + 1; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '(') ++depth;
    if (c == ')' && --depth == 0) {
      if (words.back().empty()) words.pop_back();  // after a trailing comma
      return words;
    }
    if (c == ',' && depth == 1)
      words.emplace_back();
    else if (c != ' ' && c != '"')
      words.back() += c;
  }
  return user_error(fmt::format("the list after {} is not closed", mark));
}

std::string_view place_on(const Words& names, const Words& places, std::string_view dim) {
  std::size_t place = 0;
  for (const std::string& name : names) {
    if (name == dim) return place < places.size() ? std::string_view(places[place]) : std::string_view();
    if (name != "pp") ++place;  // each stage has its own mesh
  }
  return {};
}

}  // namespace

Result<Recipe> read_dtensor(std::string_view text) {
  WEFT_TRY(sizes, words_behind(text, "init_device_mesh(\"cuda\","));
  WEFT_TRY(names, words_behind(text, "mesh_dim_names="));
  if (sizes.size() != names.size())
    return user_error(fmt::format("expected as many names as dims of the mesh, found {} and {}", names.size(),
                                  sizes.size()));
  Recipe recipe;
  std::int64_t copies = 1, shards = 1;
  recipe.devices = 1;
  std::size_t stages = names.size(), data = names.size();
  for (std::size_t d = 0; d < names.size(); ++d) {
    const auto read = read_number<std::int64_t>(sizes[d], 1, 1 << 24);
    if (!read)
      return user_error(fmt::format("expected a size of the mesh, found '{}'", formats::shown(sizes[d])));
    const std::int64_t size = *read;
    if (__builtin_mul_overflow(recipe.devices, size, &recipe.devices))
      return user_error("the mesh has too many devices");
    if (names[d] == "pp") recipe.pipeline = size, stages = d;
    if (names[d] == "cp") recipe.context = size;
    if (names[d] == "tp") recipe.tensor = size;
    if (names[d] == "dp_replicate") copies = size, data = d;
    if (names[d] == "dp_shard") shards = size, data = d;
  }
  recipe.data = copies * shards;
  WEFT_TRY(weight, words_behind(text, "\"norm.weight\":"));
  WEFT_TRY(activation, words_behind(text, "\"activation[batch, sequence, features]\":"));
  if (shards > 1) recipe.zero = place_on(names, weight, "dp_shard") == "Shard(0)" ? 3 : 1;
  if (recipe.zero > 0) recipe.copies = copies;
  recipe.sequence_parallel = place_on(names, activation, "tp") == "Shard(1)";
  if (stages < names.size() && data < stages) recipe.order = kPipelineInside;
  WEFT_TRY_STATUS(check(recipe));
  return recipe;
}

Written print_dtensor(const Recipe& recipe) {
  Written written;
  struct Dim {
    std::string name;
    std::int64_t size;
  };
  // Outermost first.
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
    written.lost.push_back(fmt::format("pipeline {}: one mesh per stage", recipe.pipeline));
  if (recipe.virtual_stages > 1)
    written.lost.push_back(fmt::format("virtual stages {}", recipe.virtual_stages));
  if (recipe.expert > 1)
    written.lost.push_back(fmt::format("expert {}: experts use a separate mesh", recipe.expert));
  if (recipe.recompute != Recompute::none)
    written.lost.push_back(fmt::format("{} recomputation", name(recipe.recompute)));
  if (recipe.offload_optimizer) written.lost.emplace_back("optimizer states in host memory");
  if (recipe.zero == 1 || recipe.zero == 2)
    written.lost.push_back("sharded optimizer states of replicated parameters");
  if (recipe.micro_batches() > 1) written.lost.push_back("micro-batches");
  return written;
}

}  // namespace weft::recipe
