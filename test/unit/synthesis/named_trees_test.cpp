// Trees by name: moves that compute the collective, the same each time, for every topology shape.
#include "weft/collectives/synthesis/named_trees.h"

#include <gtest/gtest.h>

#include <string>

#include "weft/collectives/chunks/check_moves.h"
#include "weft/collectives/compile/compile.h"

namespace weft::synthesis {
namespace {

using collective::Kind;

Result<collective::Moves> made(std::string_view name) {
  auto reference = collective::parse_reference(name);
  EXPECT_TRUE(reference.ok()) << name;
  return named_trees(*reference);
}

TEST(NamedTrees, ComputeTheirCollective) {
  for (const char* kind : {"all_gather", "reduce_scatter", "all_reduce", "broadcast", "reduce"})
    for (const char* wires :
         {"ranks=2", "ranks=5, shape=ring", "ranks=7, shape=full", "ranks=6, shape=mesh, sides=[2, 3]",
          "ranks=9, shape=torus, sides=[3, 3], pieces=3", "ranks=8, shape=hybrid_cube_mesh",
          "ranks=3, shape=switch, pieces=2"}) {
      const std::string name = std::string(kind) + "_trees(" + wires + ")";
      const auto moves = made(name);
      ASSERT_TRUE(moves.ok()) << name << ": " << moves.error().message;
      EXPECT_EQ(collective::name(moves->collective.kind), kind);
      ASSERT_TRUE(collective::check_moves(*moves).ok()) << name;
      EXPECT_FALSE(collective::first_wrong(*moves)) << name;
      EXPECT_EQ(*moves, *made(name)) << name;
    }
}

TEST(NamedTrees, SupportARoot) {
  const auto moves = made("broadcast_trees(ranks=8, shape=hybrid_cube_mesh, root=5)");
  ASSERT_TRUE(moves.ok()) << moves.error().message;
  EXPECT_EQ(moves->collective.root, 5);
  EXPECT_FALSE(collective::first_wrong(*moves));
}

TEST(NamedTrees, ANameRoundTrips) {
  cluster::Link link;
  link.shape = cluster::Shape::torus;
  link.sides = {4, 2};
  const auto name = name_of_trees(Kind::all_reduce, link, 4);
  ASSERT_TRUE(name);
  EXPECT_EQ(*name, "all_reduce_trees(pieces=4, shape=torus, sides=[4, 2])");
  EXPECT_EQ(kind_of_trees("all_reduce_trees"), Kind::all_reduce);
  EXPECT_TRUE(check_trees(*collective::parse_reference(*name)).ok());
  EXPECT_FALSE(name_of_trees(Kind::all_to_all, link, 1));
  EXPECT_FALSE(kind_of_trees("all_to_all_trees"));
  EXPECT_FALSE(kind_of_trees("all_reduce_ring"));
}

TEST(NamedTrees, RejectOtherNames) {
  const auto complaint = [](std::string_view name) {
    const auto moves = made(name);
    return moves.ok() ? std::string("fine") : moves.error().message;
  };
  EXPECT_EQ(complaint("all_reduce_trees"), "all_reduce_trees needs a number of ranks");
  EXPECT_EQ(complaint("all_reduce_trees(ranks=8, shape=star)"), "unknown link shape: star");
  EXPECT_EQ(complaint("all_reduce_trees(ranks=8, shape=torus, sides=[3, 3])"),
            "a torus of these sides has 9 devices, not 8");
  EXPECT_EQ(complaint("all_reduce_trees(ranks=8, colour=red)"), "all_reduce_trees has no parameter colour");
  EXPECT_EQ(complaint("all_reduce_trees(ranks=1)"), "ranks of synthesized trees is a number from 2 to 64");
  EXPECT_EQ(complaint("broadcast_trees(ranks=4, root=4)"), "the root must be one of 4 devices, found 4");
}

}  // namespace
}  // namespace weft::synthesis
