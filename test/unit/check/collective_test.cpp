// Collectives: their names, their blocks, and the location of a finding.
#include <gtest/gtest.h>

#include <string>

#include "weft/collectives/check/check.h"
#include "weft/collectives/chunks/collective.h"
#include "weft/collectives/chunks/program.h"

namespace weft::collective {
namespace {

TEST(CollectiveKind, ParsesEveryName) {
  ASSERT_EQ(kind_names().size(), static_cast<std::size_t>(Kind::custom) + 1);
  for (std::size_t i = 0; i < kind_names().size(); ++i) {
    const Kind kind = static_cast<Kind>(i);
    EXPECT_EQ(name(kind), kind_names()[i]);
    EXPECT_EQ(*parse_kind(name(kind)), kind);
    EXPECT_EQ(*parse_kind(field_name(kind)), kind);
    EXPECT_EQ(field_name(kind).find('_'), std::string::npos);
  }
  EXPECT_EQ(field_name(Kind::reduce_scatter), "reducescatter");
  EXPECT_EQ(*parse_kind("All-To-AllV"), Kind::all_to_all);
  EXPECT_EQ(*parse_kind("sendrecv"), Kind::send);
}

TEST(CollectiveKind, SuggestsTheNearestNameForAnUnknownOne) {
  const auto near = parse_kind("alreduce");
  ASSERT_FALSE(near.ok());
  EXPECT_EQ(near.error().message, "unknown collective: alreduce");
  EXPECT_EQ(near.error().hint, "did you mean 'all_reduce'?");
  EXPECT_EQ(parse_kind("").error().hint.substr(0, 28), "collectives are all_reduce, ");
  EXPECT_FALSE(parse_kind("customv").ok());
}

TEST(CollectiveKind, FindsTheBufferWithABlockPerRank) {
  using enum Kind;
  for (const Kind kind : {all_gather, gather, reduce_scatter, scatter}) {
    EXPECT_TRUE(has_one_block(kind)) << name(kind);
    EXPECT_TRUE(has_block_per_rank(kind)) << name(kind);
    // The shared buffer has a block for every rank.
    Collective collective;
    collective.kind = kind;
    collective.ranks = 3;
    collective.chunks = 2;
    EXPECT_EQ(extent(collective, shared_buffer(kind), 0), 6) << name(kind);
  }
  EXPECT_TRUE(has_block_per_rank(all_to_all));
  EXPECT_FALSE(has_one_block(all_to_all));
  for (const Kind kind : {all_reduce, broadcast, reduce, send, barrier, custom})
    EXPECT_FALSE(has_block_per_rank(kind)) << name(kind);
}

TEST(CollectiveKind, BlocksAreConsecutive) {
  Collective collective;
  collective.kind = Kind::all_gather;
  collective.ranks = 3;
  collective.chunks = 2;
  EXPECT_EQ(first_of_block(collective, 2), 4);
  collective.counts = {3, 1, 4};
  EXPECT_EQ(first_of_block(collective, 0), 0);
  EXPECT_EQ(first_of_block(collective, 2), 4);
  EXPECT_EQ(first_of_block(collective, 3), 8);
}

TEST(Placement, EitherPlacementBecomesInPlace) {
  EXPECT_EQ(single_placement(Placement::either), Placement::in_place);
  EXPECT_EQ(single_placement(Placement::in_place), Placement::in_place);
  EXPECT_EQ(single_placement(Placement::out_of_place), Placement::out_of_place);
}

TEST(Finding, PrintsTheLocationFirst) {
  EXPECT_EQ(print(Finding{Verdict::race, {5, 0, 7}, "races"}), "gpu 5 tb 0 step 7: races");
  EXPECT_EQ(print(Finding{Verdict::malformed, {}, "has no ranks"}), "has no ranks");
}

}  // namespace
}  // namespace weft::collective
