// Tiled collectives: the plan keeps its meaning, along whatever index it is tiled.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "distribute_case.h"
#include "search_case.h"
#include "tile_case.h"
#include "weft/parallel/distribute/prove.h"
#include "weft/parallel/distribute/replay.h"
#include "weft/parallel/distribute/tiles.h"
#include "weft/plan/graph/text.h"
#include "weft/planner/search/tile/tile_exchanges.h"

namespace weft::search {
namespace {

using distribute::count;
using distribute::distributed;
using distribute::DistributedPlan;
using distribute::training_plan;

constexpr std::string_view kExchanges[] = {"all-reduce", "all-gather", "reduce-scatter", "all-to-all"};

int exchanges(const DistributedPlan& plan) {
  int found = 0;
  for (const std::string_view name : kExchanges) found += count(plan, name);
  return found;
}

void expect_equal(const train::TrainingPlan& model, const DistributedPlan& made) {
  EXPECT_EQ(distribute::difference<ops::Field>(model.graph, made), "");
  const auto proof = distribute::prove(model.graph, made);
  ASSERT_TRUE(proof.ok()) << proof.error().message;
  EXPECT_TRUE(proof->holds()) << proof->wrong->what;
  const auto again = plan::read(plan::print(made.graph), ops::all());
  ASSERT_TRUE(again.ok()) << again.error().message;
  EXPECT_EQ(plan::print(*again), plan::print(made.graph));
}

train::TrainingPlan small_gpt(std::int64_t b, std::int64_t s) {
  return training_plan(
      "char_gpt", {{"b", b, {}}, {"s", s, {}}, {"d", 8, {}}, {"h", 2, {}}, {"layers", 2, {}}, {"v", 7, {}}});
}

TEST(TilesOf, CoverAllAndDifferByAtMostOne) {
  for (const std::int64_t size : {1, 2, 7, 10, 64})
    for (std::int64_t tiles = 1; tiles <= std::min<std::int64_t>(size, 9); ++tiles) {
      std::int64_t end = 0;
      for (const distribute::Stretch& tile : distribute::tiles_of(size, tiles)) {
        EXPECT_EQ(tile.begin, end);
        EXPECT_GE(tile.end - tile.begin, size / tiles);
        EXPECT_LE(tile.end - tile.begin, (size + tiles - 1) / tiles);
        end = tile.end;
      }
      EXPECT_EQ(end, size);
    }
}

struct TileCase {
  std::string_view distribution, index;
  std::int64_t blocks, tiles;
};

// Tensor parallelism with all-reduces; with sequences sliced between them; both with batches sliced
// as well.
TEST(CutInTiles, TiledCollectivesAreProvenAndEqual) {
  const train::TrainingPlan model = small_gpt(5, 6);
  for (const TileCase& one :
       {TileCase{"gpu=2: slice h, f", "b", 1, 2}, TileCase{"gpu=2: slice h, f", "b", 1, 5},
        TileCase{"gpu=2: slice h, f", "s", 1, 4}, TileCase{"gpu=2: slice h, f, s", "b", 1, 2},
        TileCase{"gpu=2: slice h, f, s", "s", 2, 3},
        TileCase{"node=2: slice s; gpu=2: slice h, f", "b", 1, 3}}) {
    SCOPED_TRACE(fmt::format("{} in {} along {}", one.distribution, one.tiles, one.index));
    const DistributedPlan plain = distributed(model, one.distribution);
    for (const TileReach reach : {TileReach::near, TileReach::products, TileReach::all}) {
      const DistributedPlan made = tiled(plain, one.index, one.blocks, reach, one.tiles);
      EXPECT_GT(exchanges(made), exchanges(plain));
      expect_equal(model, made);
    }
  }
}

TEST(CutInTiles, TilesTheTokensOfExperts) {
  const train::TrainingPlan model = training_plan("mixtral_8x7b", {{"b", 4, {}},
                                                                   {"s", 6, {}},
                                                                   {"d", 8, {}},
                                                                   {"h", 2, {}},
                                                                   {"g", 1, {}},
                                                                   {"f", 3, {}},
                                                                   {"experts", 4, {}},
                                                                   {"layers", 1, {}},
                                                                   {"v", 5, {}}});
  const DistributedPlan plain = distributed(model, "gpu=2: slice x, b");
  ASSERT_GT(count(plain, "all-to-all"), 0);
  for (const TileReach reach : {TileReach::near, TileReach::products}) {
    const DistributedPlan made = tiled(plain, "b", 2, reach, 2);
    EXPECT_GT(count(made, "all-to-all"), count(plain, "all-to-all"));
    expect_equal(model, made);
  }
}

// Tiles at GPT-3's size become tiles of a small model on another mesh.
TEST(CutInTiles, IsProvenAtOtherSizes) {
  const train::TrainingPlan large =
                                training_plan("char_gpt", {{"b", 16, {}}, {"s", 512, {}}, {"layers", 2, {}}}),
                            small = small_gpt(5, 6);
  for (const TileCase& one :
       {TileCase{"gpu=6: slice h, f", "b", 1, 4}, TileCase{"gpu=2: slice h, f, v, s", "b", 1, 4},
        TileCase{"gpu=2: slice h, f, s", "s", 2, 3}}) {
    SCOPED_TRACE(one.distribution);
    for (const TileReach reach : {TileReach::near, TileReach::products, TileReach::all}) {
      const DistributedPlan made =
          tiled(distributed(large, one.distribution, {}), one.index, one.blocks, reach, one.tiles);
      const auto replayed = distribute::replay(made, large.graph, small.graph, plan::Mesh{{{"gpu", 2}}});
      ASSERT_TRUE(replayed.ok()) << replayed.error().message;
      const auto proof = distribute::prove(small.graph, *replayed);
      ASSERT_TRUE(proof.ok()) << proof.error().message;
      EXPECT_TRUE(proof->holds()) << proof->wrong->what;
    }
  }
}

TEST(CutInTiles, RejectsFewerElementsThanTiles) {
  const DistributedPlan plain = distributed(small_gpt(3, 6), "gpu=2: slice h, f");
  const TileIndex along{plain.graph.symbols().find("b"), 1};
  const auto made = cut_in_tiles(
      plain, tile_region(plain, along, collectives_to_cut(plain, along), TileReach::products), along, 4);
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.error().message, "b of 3 cannot be cut into 4 tiles");
}

// A norm needs all its features, and no node reads the gradient all-reduces early.
TEST(TileRegion, DoesNotTileWhatIsNeededWhole) {
  const DistributedPlan plain = distributed(small_gpt(4, 6), "gpu=2: slice h, f");
  const TileIndex along{plain.graph.symbols().find("d"), 1};
  for (std::size_t n = 0; n < plain.graph.node_count(); ++n) {
    const plan::NodeView node = plain.graph.view(plan::NodeId(n));
    if (node.op().name() == "layer-norm") EXPECT_FALSE(can_be_cut(plain, node.id(), along));
  }
  const DistributedPlan data = distributed(small_gpt(4, 6), "gpu=2: slice b");
  EXPECT_TRUE(collectives_to_cut(data, {data.graph.symbols().find("d"), 1}).empty());
}

// -- the planner stage ---------------------------------------------------------------------------

cluster::Cluster two_gpus(double bytes_per_second, double latency) {
  cluster::Cluster made{"pod", some_gpu(100e12), {}};
  cluster::Link link;
  link.name = "wire";
  link.bytes_per_second = bytes_per_second;
  link.latency_seconds = latency;
  made.axes.push_back({"gpu", 2, std::move(link)});
  return made;
}

TiledExchanges tiled_on(const cluster::Cluster& on, PredictedPlan& before, const TileOptions& options = {}) {
  static const train::TrainingPlan model = training_plan(
      "char_gpt", {{"b", 16, {}}, {"s", 512, {}}, {"d", 2048, {}}, {"h", 16, {}}, {"layers", 1, {}}});
  const Machine machine = machine_by_figures(on);
  before.plan = distributed(model, "gpu=2: slice h, f, v");
  const cost::StepCosts costs = machine.costs(before.plan.mesh).value();
  before.prediction = sim::predict(before.plan.graph, before.plan.mesh, before.plan.layouts, costs).value();
  auto found = tile_exchanges(before, machine, options);
  if (!found.ok()) throw std::runtime_error(found.error().message);
  return std::move(found).value();
}

TEST(TileExchanges, PaysOffIfTransfersTakeAsLongAsCompute) {
  const cluster::Cluster slow = two_gpus(20e9, 1e-6);
  PredictedPlan before;
  const TiledExchanges found = tiled_on(slow, before);
  ASSERT_TRUE(found.plan) << found.said;
  EXPECT_LT(found.plan->prediction.seconds, before.prediction.seconds);
  EXPECT_LT(found.plan->prediction.exposed_communication_seconds,
            before.prediction.exposed_communication_seconds);
  EXPECT_NE(found.said.find("tiles along"), std::string::npos) << found.said;
  PredictedPlan again;
  EXPECT_EQ(plan::print(tiled_on(slow, again).plan->plan.graph), plan::print(found.plan->plan.graph));
}

TEST(TileExchanges, SkipsHighLatencyAndHiddenCommunication) {
  PredictedPlan before;
  EXPECT_FALSE(tiled_on(two_gpus(20e9, 20e-3), before).plan);
  const TiledExchanges hidden = tiled_on(two_gpus(1e15, 1e-9), before);
  EXPECT_FALSE(hidden.plan);
  EXPECT_NE(hidden.said.find("exposed"), std::string::npos) << hidden.said;
}

TEST(TileExchanges, UseTheRequestedNumber) {
  PredictedPlan before;
  const TiledExchanges found = tiled_on(two_gpus(20e9, 1e-3), before, {.tiles = 3});
  ASSERT_TRUE(found.plan) << found.said;
  EXPECT_NE(found.said.find("in 3 tiles"), std::string::npos) << found.said;
}

}  // namespace
}  // namespace weft::search
