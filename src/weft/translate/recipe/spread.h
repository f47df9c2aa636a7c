// weft/translate/recipe/spread.h -- a recipe as a distribution of a cluster's devices, and back.
//
//   tensor 8, pipeline 2, data 4, ZeRO 1        node_a=2: stage; node_b=4: slice b, shard optimizer;
//   on node=8, gpu=8                      <->   gpu=8: slice h, f, v; micro=16; schedule one_f_one_b
//
// Numbers of devices count through the axes of a recipe in its order, the first the fastest, and those of a cluster
// through its nodes: each degree is laid over the cluster's axes from the inside. What a recipe has and a distribution
// has not is said in notes; the other way round, in `lost`.
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
  // The one that was given, or, where stages lie both within nodes and across them, one whose outer axis has them all.
  cluster::Cluster cluster;
  std::vector<std::string> notes;  // what is not priced as it is
};

// Fails where a degree does not lie evenly on nodes, or slices what the model has not.
// REQUIRES: check(recipe, cluster.devices()) holds.
Result<SpreadRecipe> spread(const Recipe& recipe, const distribute::IndexRoles& roles,
                            const cluster::Cluster& cluster);

struct GatheredRecipe {
  Recipe
      recipe;  // its degrees, batches, sharding, what is done again and where states lie; all else as `like`
  std::vector<std::string> lost;  // what no recipe says
};

// `like`: of the same model and batch.
GatheredRecipe gather(const distribute::Distribution& distribution, const distribute::IndexRoles& roles,
                      const Recipe& like);

}  // namespace weft::recipe
