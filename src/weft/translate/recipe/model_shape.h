// weft/translate/recipe/model_shape.h -- the model in the words of launchers, told by what its indices do.
//
//   tokens[b, s]  wte[v, d]  wq[d, h, e]  w1[d, f]    ->    hidden d, heads h, inner f, words v
//
//   hidden      of more parameters than any other index
//   heads       what queries and keys share; with key heads that queries share, times the queries of each
//   inner       of the model's other indices, that of the most parameters
//   words       of the table that the first gather reads
#pragma once
#include <cstdint>

#include "weft/parallel/distribute/index_roles.h"
#include "weft/plan/graph/graph.h"
#include "weft/translate/recipe/recipe.h"

namespace weft::recipe {

// What is not there is 0. `layers`: that are alike.
ModelShape model_shape(const plan::Graph& graph, const distribute::IndexRoles& roles, std::int64_t layers);

}  // namespace weft::recipe
