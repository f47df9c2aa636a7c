// Tiled collectives on ranks: training gives the same results as with whole ones, and is
// reproducible.
#include <gtest/gtest.h>

#include "ranks_case.h"
#include "thorough.h"
#include "tile_case.h"

namespace weft::session {
namespace {

using distribute::DistributedPlan;
using search::TileReach;
using train::Optimizer;

struct RankTiles {
  std::string_view distribution, index;
  std::int64_t blocks, tiles;
  int ranks;
};

TEST(TilesOnRanks, AgreeWithOneRankAndAreReproducible) {
  const Learner model = learner(
      "char_gpt", {{"b", 5, {}}, {"s", 8, {}}, {"d", 8, {}}, {"h", 4, {}}, {"layers", 2, {}}, {"v", 8, {}}},
      Optimizer::momentum);
  constexpr int kSteps = 4;
  const auto alone = train_alone(model, kSteps);
  for (const RankTiles& one :
       {RankTiles{"rank=2: slice h, f, v", "b", 1, 2, 2}, RankTiles{"rank=2: slice h, f, v", "s", 1, 3, 2},
        RankTiles{"rank=2: slice h, f, v, s", "b", 1, 4, 2},
        RankTiles{"rank=2: slice h, f, v, s", "s", 2, 2, 2},
        RankTiles{"data=2: slice s; tensor=2: slice h, f, v", "b", 1, 2, 4}})
    for (const TileReach reach : {TileReach::near, TileReach::products, TileReach::all}) {
      SCOPED_TRACE(testing::Message()
                   << one.distribution << " along " << one.index << ", reach " << static_cast<int>(reach));
      const DistributedPlan made =
          search::tiled(spread(model, one.distribution), one.index, one.blocks, reach, one.tiles);
      const auto learned = train(model, made, on(one.ranks), kSteps);
      EXPECT_LT(apart(learned.weights, alone.weights).relative, 1e-4)
          << apart(learned.weights, alone.weights).worst;
      // The furthest reach moves the most.
      if (reach == TileReach::all || is_thorough())
        expect_same_bits(learned.weights, train(model, made, on(one.ranks), kSteps).weights);
    }
}

TEST(TilesOnRanks, ExpertsAgreeToo) {
  const Learner model = learner("mixtral_8x7b",
                                {{"b", 4, {}},
                                 {"s", 6, {}},
                                 {"d", 8, {}},
                                 {"h", 2, {}},
                                 {"g", 1, {}},
                                 {"f", 3, {}},
                                 {"experts", 4, {}},
                                 {"layers", 1, {}},
                                 {"v", 8, {}}},
                                Optimizer::momentum);
  const auto alone = train_alone(model, 4);
  const DistributedPlan made =
      search::tiled(spread(model, "rank=2: slice x, b"), "b", 2, TileReach::products, 2);
  const auto learned = train(model, made, on(2), 4);
  EXPECT_LT(apart(learned.weights, alone.weights).relative, 1e-4)
      << apart(learned.weights, alone.weights).worst;
}

}  // namespace
}  // namespace weft::session
