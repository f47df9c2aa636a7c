// weft/translate/recipe/model_shape.h -- a model's sizes in launchers' terms, from its indices.
//
//   tokens[b, s]  wte[v, d]  wq[d, h, e]  w1[d, f]    ->    hidden d, heads h, inner f, words v
//
//   hidden      the index in the most parameters
//   heads       the index that queries and keys share; with grouped queries, times the queries per key head
//   inner       of the model's other indices, the one in the most parameters
//   words       the rows of the table that the first gather reads
#pragma once
#include <cstdint>

#include "weft/parallel/distribute/index_roles.h"
#include "weft/plan/graph/graph.h"
#include "weft/translate/recipe/recipe.h"

namespace weft::recipe {

// A size that the model lacks is 0. `layers`: the number of equal layers.
ModelShape model_shape(const plan::Graph& graph, const distribute::IndexRoles& roles, std::int64_t layers);

}  // namespace weft::recipe
