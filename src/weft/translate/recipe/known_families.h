// weft/translate/recipe/known_families.h -- configurations that practitioners know, for a model and a cluster.
//
//   Megatron 3D     TP 1..8 within a node x PP x virtual stages, ZeRO-1
//   FSDP, HSDP      ZeRO-3 over all ranks, or within each node
//   data parallel   with ZeRO-0 and ZeRO-1
//   experts         EP over data ranks, with and without TP
//
// each with micro-batches of 1, 2 and 4 examples and with no, selective and full recomputation. A
// search estimates these first, so that no answer is slower than the best of them.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "weft/translate/recipe/recipe.h"

namespace weft::recipe {

struct FamilySpace {
  Recipe like;  // devices, batch, sequence, precision and order; other fields are replaced
  std::int64_t per_node = 1;
  std::int64_t layers = 0;   // 0: no pipelines
  std::int64_t experts = 0;  // 0: none
  bool slices_model = true;  // whether tensor parallelism is possible
  double parameters = 0;     // of the model
  double memory_bytes = 0;   // per device; 0: unknown
};

// Recipes that differ only in recomputation, by increasing work: the first that fits is the fastest.
using RecomputeLadder = std::vector<Recipe>;

// Most promising degrees first: those whose states just fit in memory.
std::vector<RecomputeLadder> known_families(const FamilySpace& space);

// Layers per virtual stage as launchers cut them if they do not divide: the embedding and the loss
// count as one layer each, or the last stage has fewer. Empty: equal numbers. Nothing if there is
// no such cut.
std::optional<std::vector<std::int64_t>> launcher_layers(std::int64_t layers, std::int64_t runs);

// How much there is to set up, debug and depend on: 0 for plain data parallelism.
int complexity(const Recipe& recipe);

}  // namespace weft::recipe
