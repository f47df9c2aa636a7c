#include "weft/translate/recipe/known_families.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace weft::recipe {
namespace {

constexpr std::int64_t kMostTensor = 8;
constexpr std::int64_t kVirtualStages[] = {1, 2, 3, 4, 5, 6, 8, 12};
constexpr std::int64_t kMicroBatches[] = {1, 2, 4};
constexpr Recompute kLadder[] = {Recompute::none, Recompute::selective, Recompute::full};

// Context parallelism is usual from this many tokens, with as many ranks as there are multiples.
constexpr std::int64_t kLongSequence = 4096;

std::vector<std::int64_t> doublings(std::int64_t most) {
  std::vector<std::int64_t> made;
  for (std::int64_t size = 1; size <= most; size *= 2) made.push_back(size);
  return made;
}

// Devices that must share a model so that its states fit, with optimizer states over all of them.
double least_model_ranks(const FamilySpace& space) {
  constexpr double kPerRank = 6, kSharded = 12, kForStates = 0.8;  // bytes per parameter; of memory
  if (space.memory_bytes <= 0) return 1;
  const double sharded = kSharded * space.parameters / static_cast<double>(space.like.devices),
               left = kForStates * space.memory_bytes - sharded;
  return left <= 0 ? static_cast<double>(space.like.devices)
                   : std::max(1.0, kPerRank * space.parameters / left);
}

class Families {
 public:
  explicit Families(const FamilySpace& space) : space_(space) {}

  std::vector<RecomputeLadder> run() {
    const Recipe& like = space_.like;
    for (const std::int64_t tensor :
         doublings(space_.slices_model ? std::min(kMostTensor, space_.per_node) : 1))
      for (const std::int64_t context :
           doublings(std::clamp<std::int64_t>(like.sequence / kLongSequence, 1, kMostTensor)))
        for (std::int64_t pipeline = 1; pipeline <= std::max<std::int64_t>(space_.layers, 1); ++pipeline) {
          if (like.devices % (tensor * context * pipeline) != 0) continue;
          Recipe recipe = plain();
          recipe.tensor = tensor;
          recipe.context = context;
          recipe.pipeline = pipeline;
          recipe.data = like.devices / (tensor * context * pipeline);
          recipe.sequence_parallel = tensor > 1;
          add_experts(recipe);
        }
    const double least = least_model_ranks(space_);
    const auto distance = [&](const RecomputeLadder& ladder) {
      const Recipe& one = ladder.front();
      const double ranks = static_cast<double>(one.tensor * one.pipeline);
      // Too few ranks need recomputation or do not fit at all.
      const double far = std::log2(ranks / least);
      return one.zero == 3 ? 1.0 : far < 0 ? -2 * far : far;
    };
    std::ranges::stable_sort(made_, {}, distance);
    return std::move(made_);
  }

 private:
  Recipe plain() const {
    Recipe recipe = space_.like;
    recipe.expert = recipe.virtual_stages = recipe.copies = 1;
    recipe.expert_tensor = recipe.recompute_layers = 0;
    recipe.zero = 1;
    recipe.offload_optimizer = recipe.offload_parameters = false;
    recipe.overlap_reduce = recipe.overlap_gather = true;
    recipe.order = kUsualOrder;
    recipe.stage_layers.clear();
    return recipe;
  }

  void add_experts(const Recipe& recipe) {
    add_stages(recipe);
    for (const std::int64_t expert : doublings(space_.experts)) {
      if (expert == 1 || space_.experts % expert != 0) continue;
      Recipe changed = recipe;
      changed.expert = expert;
      add_stages(changed);
      if (recipe.tensor == 1) continue;
      changed.expert_tensor = 1;
      add_stages(changed);
    }
  }

  void add_stages(Recipe recipe) {
    for (const std::int64_t chunks : kVirtualStages) {
      if (chunks > 1 && recipe.pipeline == 1) break;
      recipe.virtual_stages = chunks;
      const std::int64_t runs = recipe.pipeline * chunks;
      if (recipe.pipeline > 1) {
        auto layers = launcher_layers(space_.layers, runs);
        if (!layers || runs > space_.layers) continue;
        recipe.stage_layers = *std::move(layers);
      }
      add_sharding(recipe);
    }
  }

  void add_sharding(Recipe recipe) {
    add_batches(recipe);
    if (recipe.pipeline > 1) return;
    if (recipe.tensor == 1) {
      recipe.zero = 0;
      add_batches(recipe);
    }
    recipe.zero = 3;
    add_batches(recipe);
    const std::int64_t in_node =
        std::max<std::int64_t>(space_.per_node / (recipe.tensor * recipe.context), 1);
    if (recipe.expert > 1 || in_node == 1 || in_node >= recipe.data || recipe.data % in_node != 0) return;
    recipe.copies = recipe.data / in_node;
    add_batches(recipe);
  }

  void add_batches(Recipe recipe) {
    for (const std::int64_t rows : kMicroBatches) {
      recipe.micro_batch = rows;
      RecomputeLadder ladder;
      for (const Recompute what : kLadder) {
        recipe.recompute = what;
        if (check(recipe, space_.like.devices).ok()) ladder.push_back(recipe);
      }
      if (!ladder.empty()) made_.push_back(std::move(ladder));
    }
  }

  const FamilySpace& space_;
  std::vector<RecomputeLadder> made_;
};

}  // namespace

std::vector<RecomputeLadder> known_families(const FamilySpace& space) { return Families(space).run(); }

std::optional<std::vector<std::int64_t>> launcher_layers(std::int64_t layers, std::int64_t runs) {
  if (runs < 1 || layers < runs) return std::nullopt;
  if (layers % runs == 0) return std::vector<std::int64_t>();
  if (runs < 2) return std::nullopt;
  const std::int64_t most = (layers + runs - 1) / runs;
  std::vector<std::int64_t> made(static_cast<std::size_t>(runs), most);
  if ((layers + 2) % runs == 0) {
    --made.front();
    --made.back();
  } else {
    made.back() = layers - (runs - 1) * most;
  }
  if (made.front() < 1 || made.back() < 1) return std::nullopt;
  return made;
}

int complexity(const Recipe& recipe) {
  int parts = 0;
  const auto add = [&](bool has, int what) { parts += has ? what : 0; };
  add(recipe.tensor > 1, 2);
  add(recipe.context > 1, 2);
  add(recipe.expert > 1, 1);  // a model with experts needs it sooner or later
  add(recipe.pipeline > 1, 3);
  add(recipe.virtual_stages > 1, 1);
  add(!recipe.stage_layers.empty(), 1);
  add(recipe.zero == 1 || recipe.zero == 2, 1);
  add(recipe.zero == 3, 2);
  add(recipe.zero > 0 && recipe.copies > 1, 1);
  add(recipe.recompute != Recompute::none, 1);
  add(recipe.recompute_layers > 0, 1);
  add(recipe.offload_optimizer, 2);
  add(recipe.order != kUsualOrder, 1);
  return parts;
}

}  // namespace weft::recipe
