// Reshards between random meshes and layouts: every element is traced, and every time is compared
// with its bound.
#include "weft/collectives/reshard/reshard.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <string>

#include "weft/base/random.h"
#include "weft/collectives/reshard/holdings.h"
#include "weft/collectives/reshard/replay.h"
#include "weft/collectives/reshard/timing.h"

namespace weft::reshard {
namespace {

using Sizes = std::vector<std::int64_t>;
using MeshShape = std::array<std::int32_t, 2>;  // hosts, devices of each

// Chunks as small as one element, so that small tensors are pipelined like large ones.
const MoveOptions kFine = {.least_chunk_bytes = 1};

std::vector<Box> made_boxes(const Sizes& sizes, const MeshShape& mesh, const Slicing& slicing) {
  auto boxes = boxes_of(sizes, mesh, slicing);
  EXPECT_TRUE(boxes.ok()) << boxes.error().message;
  return *boxes;
}

// From the first hosts to others.
Reshard between(const Sizes& sizes, const MeshShape& from, const Slicing& held, const MeshShape& to,
                const Slicing& needed) {
  Reshard made{.sizes = sizes, .element_bytes = 4, .sources = {}, .destinations = {}, .hosts = {}};
  made.sources = holdings_of(made_boxes(sizes, from, held), 0);
  made.destinations = holdings_of(made_boxes(sizes, to, needed), from[0] * from[1]);
  for (std::int32_t rank = 0; rank < from[0] * from[1]; ++rank) made.hosts.push_back(rank / from[1]);
  for (std::int32_t rank = 0; rank < to[0] * to[1]; ++rank) made.hosts.push_back(from[0] + rank / to[1]);
  return made;
}

MovePlan planned(const Reshard& reshard, const MoveOptions& options = kFine) {
  auto plan = plan_moves(reshard, {}, options);
  EXPECT_TRUE(plan.ok()) << plan.error().message;
  return *plan;
}

double ratio(const Reshard& reshard, const MovePlan& plan) {
  return time_moves(reshard, plan.moves, {}).seconds / plan.lower_bound_seconds;
}

void expect_correct(const Reshard& reshard, const MovePlan& plan) {
  const Status judged = replay(reshard, plan.moves);
  EXPECT_TRUE(judged.ok()) << judged.error().message;
}

TEST(Reshard, MatchesTheExampleInTheHeader) {
  const Reshard reshard = between({2, 2}, {2, 1}, {{0}, {}}, {2, 1}, {{}, {0}});
  const MovePlan plan = planned(reshard);
  expect_correct(reshard, plan);
  EXPECT_EQ(plan.moves.size(), 4u);
  EXPECT_DOUBLE_EQ(plan.lower_bound_seconds, 2 * 4 / 1.25e9);
  EXPECT_DOUBLE_EQ(ratio(reshard, plan), 1);
}

// One host sends 1 and three need it: in K chunks, (K + 2) / K.
TEST(Reshard, AChainIsAsFastAsOneHost) {
  const Reshard reshard = between({6400}, {1, 1}, {{}}, {3, 2}, {{}});
  const MovePlan plan = planned(reshard);
  expect_correct(reshard, plan);
  EXPECT_DOUBLE_EQ(plan.lower_bound_seconds, 6400 * 4 / 1.25e9);
  EXPECT_NEAR(ratio(reshard, plan), 102. / 100, 1e-9);
}

TEST(Reshard, TwoTreesReachManyHosts) {
  for (const std::int32_t hosts : {5, 6, 7, 8, 9, 12, 16}) {
    SCOPED_TRACE(hosts);
    const Reshard reshard = between({20'000}, {1, 1}, {{}}, {hosts, 1}, {{}});
    const MovePlan plan = planned(reshard);
    expect_correct(reshard, plan);
    EXPECT_LE(ratio(reshard, plan), 1.03);
  }
}

// Both replicas send half: twice as fast as one.
TEST(Reshard, ReplicasShareTheSending) {
  const Reshard reshard = between({1000}, {2, 1}, {{}}, {4, 1}, {{0}});
  const MovePlan plan = planned(reshard);
  expect_correct(reshard, plan);
  EXPECT_DOUBLE_EQ(plan.lower_bound_seconds, 500 * 4 / 1.25e9);
  EXPECT_NEAR(ratio(reshard, plan), 1, 1e-9);
}

// A tensor that is resharded to another number of ranks on the same hosts.
TEST(Reshard, DoesNotSendWhatAHostHas) {
  Reshard reshard{
      .sizes = {12}, .element_bytes = 8, .sources = {}, .destinations = {}, .hosts = {0, 0, 1, 1}};
  reshard.sources = holdings_of(made_boxes({12}, {2, 2}, {{0, 1}}), 0);
  reshard.destinations = holdings_of(made_boxes({12}, {1, 3}, {{1}}), 0);
  const MovePlan plan = planned(reshard);
  expect_correct(reshard, plan);
  // Device 0 keeps 0-2; device 1 sends it 3 and keeps 4-5; host 1 sends 6-7 to device 1 and keeps
  // the rest.
  EXPECT_DOUBLE_EQ(plan.lower_bound_seconds, 2 * 8 / 1.25e9);
  EXPECT_NEAR(ratio(reshard, plan), 1, 1e-9);
}

TEST(Reshard, EqualLayoutsMoveNothing) {
  Reshard reshard{.sizes = {5, 3}, .element_bytes = 4, .sources = {}, .destinations = {}, .hosts = {0, 1, 2}};
  reshard.sources = reshard.destinations = holdings_of(made_boxes({5, 3}, {3, 1}, {{0}, {}}), 0);
  const MovePlan plan = planned(reshard);
  expect_correct(reshard, plan);
  EXPECT_EQ(plan.lower_bound_seconds, 0);
  EXPECT_EQ(time_moves(reshard, plan.moves, {}).seconds, 0);
  for (const Move& move : plan.moves) EXPECT_EQ(move.from, move.to);
}

TEST(Reshard, AcceptsLayoutsOfPlans) {
  Symbols symbols;
  const Symbol b = symbols.intern("b"), d = symbols.intern("d");
  const plan::Dim dims[] = {{b, 10}, {d, 6}};
  const plan::Type type{plan::DType::f32, dims};
  const plan::Mesh from{{{"node", 2}, {"gpu", 2}}}, to{{{"gpu", 3}}};
  using plan::AxisLayout;
  auto held = boxes_of(type, {{AxisLayout::sliced(b), AxisLayout::sliced(b)}}, from);
  auto needed = boxes_of(type, {{AxisLayout::sliced(d, 1, 1)}}, to);  // with halos
  ASSERT_TRUE(held.ok() && needed.ok());
  const Reshard reshard{.sizes = {10, 6},
                        .element_bytes = 4,
                        .sources = holdings_of(*held, 0),
                        .destinations = holdings_of(*needed, 4),
                        .hosts = {0, 0, 1, 1, 2, 2, 3}};
  expect_correct(reshard, planned(reshard));

  const auto addends = boxes_of(type, {{AxisLayout::partial(plan::Monoid::sum)}}, to);
  ASSERT_FALSE(addends.ok());
  EXPECT_EQ(addends.error().message, "a reshard moves blocks; along gpu the value is partial");
}

Slicing random_slicing(Random& random, std::size_t dims) {
  Slicing slicing(dims);
  std::vector<std::int32_t> axes = {0, 1};
  if (random.below(2) == 0) std::swap(axes[0], axes[1]);
  for (const std::int32_t axis : axes)
    if (random.below(3) != 0) slicing[random.below(dims)].push_back(axis);
  return slicing;
}

MeshShape random_mesh(Random& random) {
  return {static_cast<std::int32_t>(random.between(1, 6)), static_cast<std::int32_t>(random.between(1, 3))};
}

Sizes random_sizes(Random& random, std::size_t dims) {
  Sizes sizes;
  for (std::size_t dim = 0; dim < dims; ++dim) sizes.push_back(random.between(dim == 0 ? 1 : 0, 9));
  return sizes;
}

TEST(Reshard, DeliversEveryElementBetweenRandomMeshes) {
  Random random(3);
  for (std::uint64_t round = 0; round < 400; ++round) {
    SCOPED_TRACE(round);
    const std::size_t dims = 1 + random.below(3);
    const Sizes sizes = random_sizes(random, dims);
    const Reshard reshard = between(sizes, random_mesh(random), random_slicing(random, dims),
                                    random_mesh(random), random_slicing(random, dims));
    expect_correct(reshard, planned(reshard));
    expect_correct(reshard, planned(reshard, {}));
    expect_correct(reshard, planned(reshard, {.least_chunk_bytes = 1, .most_moves = 1}));
  }
}

TEST(Reshard, DeliversEveryElementOnTheSameDevices) {
  Random random(4);
  for (std::uint64_t round = 0; round < 300; ++round) {
    SCOPED_TRACE(round);
    const std::size_t dims = 1 + random.below(3);
    const Sizes sizes = random_sizes(random, dims);
    const MeshShape from = random_mesh(random), to = random_mesh(random);
    Reshard reshard{.sizes = sizes, .element_bytes = 2, .sources = {}, .destinations = {}, .hosts = {}};
    reshard.sources = holdings_of(made_boxes(sizes, from, random_slicing(random, dims)), 0);
    reshard.destinations = holdings_of(made_boxes(sizes, to, random_slicing(random, dims)), 2);
    for (int device = 0; device < 24; ++device)
      reshard.hosts.push_back(static_cast<std::int32_t>(random.below(5)));
    expect_correct(reshard, planned(reshard));
  }
}

// Large enough that rounding to chunks does not matter.
TEST(Reshard, IsWithinFivePercentOfTheBound) {
  Random random(6);
  for (std::uint64_t round = 0; round < 200; ++round) {
    SCOPED_TRACE(round);
    const std::size_t dims = 1 + random.below(2);
    Sizes sizes;
    for (std::size_t dim = 0; dim < dims; ++dim)
      sizes.push_back(random.between(1000, 1'000'000'000 >> (8 * dims)));
    const Reshard reshard = between(sizes, random_mesh(random), random_slicing(random, dims),
                                    random_mesh(random), random_slicing(random, dims));
    const double found = ratio(reshard, planned(reshard));
    EXPECT_LE(found, 1.05);
    EXPECT_GE(found, 1 - 1e-9);
  }
}

std::string refusal(const Reshard& reshard) {
  const auto plan = plan_moves(reshard);
  return plan.ok() ? "accepted" : plan.error().message;
}

TEST(Reshard, RejectsInvalidReshards) {
  const Reshard good = between({4}, {2, 1}, {{0}}, {1, 1}, {{}});
  EXPECT_EQ(refusal(good), "accepted");
  Reshard bad = good;
  bad.sources.pop_back();
  EXPECT_EQ(refusal(bad), "device 2 needs an element that no source holds: [2]");
  bad = good;
  bad.hosts.pop_back();
  EXPECT_EQ(refusal(bad), "a device has no host: device 2 of 2");
  bad = good;
  bad.destinations[0].box[0].size = 5;
  EXPECT_EQ(refusal(bad), "a box is outside the tensor: dim 0 of device 2, from 0 for 5 of 4");
  bad = good;
  bad.destinations[0].box.push_back({0, 1});
  EXPECT_EQ(refusal(bad), "expected one share per dim, found 2 shares for 1 dims");
  bad = good;
  bad.element_bytes = 0;
  EXPECT_EQ(refusal(bad), "expected an element of at least one byte, found 0");
  bad = good;
  bad.sizes[0] = INT64_MAX;
  EXPECT_EQ(refusal(bad), "the tensor is too large: expected at most 1152921504606846976 bytes");
  const auto no_rate = plan_moves(good, {.bytes_per_second = 0});
  ASSERT_FALSE(no_rate.ok());
  EXPECT_EQ(no_rate.error().message, "a host's bandwidth is above 0, found 0");
}

TEST(Reshard, RejectsTooManyPieces) {
  const Reshard reshard = between({4096, 4096}, {4096, 1}, {{0}, {}}, {4096, 1}, {{}, {0}});
  EXPECT_EQ(refusal(reshard),
            "the layouts intersect in too many pieces: expected at most 4194304 pieces times their devices, "
            "found more");
}

TEST(Holdings, SlicesMayBeUnevenAndInAnyOrder) {
  const std::vector<Box> boxes = made_boxes({7}, {2, 3}, {{1, 0}});  // in three along axis 1, then in two
  ASSERT_EQ(boxes.size(), 6u);
  const Box expected[] = {{{0, 2}}, {{3, 2}}, {{6, 1}}, {{2, 1}}, {{5, 1}}, {{7, 0}}};
  for (std::size_t rank = 0; rank < 6; ++rank) EXPECT_EQ(boxes[rank], expected[rank]) << rank;
}

TEST(Holdings, RejectsWrongSlicings) {
  const auto refused = [](const Sizes& sizes, const MeshShape& mesh, const Slicing& slicing) {
    const auto boxes = boxes_of(sizes, mesh, slicing);
    return boxes.ok() ? "accepted" : boxes.error().message;
  };
  EXPECT_EQ(refused({4, 4}, {2, 2}, {{0}}), "expected one list of axes per dim, found 1 lists for 2 dims");
  EXPECT_EQ(refused({4}, {2, 2}, {{2}}), "dim 0 is sliced along an axis that the mesh lacks: axis 2 of 2");
  EXPECT_EQ(refused({4, 4}, {2, 2}, {{1}, {1}}),
            "an axis may slice only one dim: axis 1 is used again at dim 1");
  EXPECT_EQ(refused({4}, {0, 2}, {{}}), "an axis of a mesh has at least one rank, found 0");
  EXPECT_EQ(refused({4}, {1 << 30, 1 << 30}, {{}}),
            "the mesh is too large: expected at most 65536 ranks, found 1073741824 or more");
}

}  // namespace
}  // namespace weft::reshard
