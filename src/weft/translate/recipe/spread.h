// weft/translate/recipe/spread.h -- converts a recipe to a distribution over a cluster, and back.
//
//   tensor 8, pipeline 2, data 4, ZeRO 1        node_a=2: stage; node_b=4: slice b, shard optimizer;
//   on node=8, gpu=8                      <->   gpu=8: slice h, f, v; micro=16; schedule one_f_one_b
//
// A recipe numbers devices through its axes in order, the first the fastest; a cluster numbers them
// through its nodes. So degrees are assigned to the cluster's axes from the innermost out.
// Properties of a recipe that a distribution cannot express are reported in `notes`; the reverse in
// `lost`.
#pragma once
#include <string>
#include <vector>

#include "weft/base/result.h"
#include "weft/parallel/distribute/distribution.h"
#include "weft/parallel/distribute/index_roles.h"
#include "weft/plan/cluster/cluster.h"
#include "weft/translate/recipe/recipe.h"

namespace weft::recipe {

struct SpreadRecipe {
  distribute::Distribution distribution;
  // The given cluster. If stages are both within nodes and across them, one whose outer axis has all stages; likewise
  // for ranks that exchange tokens of experts.
  cluster::Cluster cluster;
  std::vector<std::string> notes;  // what the estimate does not model exactly
};

// What a model sends to its experts: sent[b, p, d], with p divided into experts and their capacities.
struct TokenSlots {
  std::vector<std::string> slots = {};   // p
  std::vector<std::string> widths = {};  // d
};

// Fails if a degree does not divide the nodes evenly, or slices an index that the model lacks.
// REQUIRES: check(recipe, cluster.devices()) holds.
Result<SpreadRecipe> spread(const Recipe& recipe, const distribute::IndexRoles& roles,
                            const cluster::Cluster& cluster, const TokenSlots& sent = {});

struct GatheredRecipe {
  Recipe recipe;                  // from the distribution; otherwise as `like`
  std::vector<std::string> lost;  // what a recipe cannot express
};

// `like`: a recipe for the same model and batch.
GatheredRecipe gather(const distribute::Distribution& distribution, const distribute::IndexRoles& roles,
                      const Recipe& like);

}  // namespace weft::recipe
