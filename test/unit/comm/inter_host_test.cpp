// The inter-host traffic of algorithms, and that the choice between hosts takes it into account.

#include "weft/communication/comm/inter_host.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "weft/collectives/algorithm/library.h"
#include "weft/communication/comm/choice/choice.h"

namespace {

using namespace weft;
using namespace weft::comm;

InterHost of(const std::string& algorithm, std::int32_t hosts) {
  const auto reference = collective::parse_reference(algorithm);
  EXPECT_TRUE(reference.ok()) << algorithm;
  const auto& library = collective::shipped_algorithms();
  const auto moves = collective::trace(*library.find(reference->name), reference->arguments, library);
  EXPECT_TRUE(moves.ok()) << algorithm;
  return inter_host_of(*moves, hosts);
}

TEST(InterHost, CountsInterHostBytesAndSteps) {
  // Of the 2 (N - 1) ring steps of a block, those that leave a host are inter-host.
  const InterHost ring = of("all_reduce_ring(ranks=4)", 2);
  EXPECT_EQ(ring.steps, 3);
  EXPECT_DOUBLE_EQ(ring.wire, 1.5);
  const InterHost alone = of("all_reduce_ring(ranks=4)", 1);
  EXPECT_EQ(alone.steps, 0);
  EXPECT_DOUBLE_EQ(alone.wire, 0);
  // Flat: both ranks send everything to both ranks of the other host. Hierarchical: each sends half
  // to its counterpart and gets half back.
  const InterHost flat = of("all_reduce_all_pairs_one_shot(ranks=4)", 2);
  EXPECT_EQ(flat.steps, 1);
  EXPECT_DOUBLE_EQ(flat.wire, 4);
  const InterHost levels = of("all_reduce_hierarchical(ranks=4, local=2, across='all_pairs_two_shot')", 2);
  EXPECT_EQ(levels.steps, 2);
  EXPECT_DOUBLE_EQ(levels.wire, 1);
  const InterHost streamed = of("all_reduce_hierarchical_streamed(ranks=4, local=2)", 2);
  EXPECT_EQ(streamed.steps, 2);
  EXPECT_DOUBLE_EQ(streamed.wire, 1);
}

TEST(InterHost, CountsMovesThatASliceWaitsFor) {
  // One connection carries the contribution and, once all contributions have arrived on the other
  // host, the sum.
  EXPECT_EQ(of("all_reduce_all_pairs_two_shot(ranks=4)", 4).in_turn, 1);
  EXPECT_EQ(of("all_reduce_hierarchical(ranks=4, local=2, across='all_pairs_one_shot')", 2).in_turn, 1);
  EXPECT_EQ(of("all_reduce_ring(ranks=2)", 2).in_turn, 1);
  EXPECT_EQ(of("all_gather_ring(ranks=4)", 2).in_turn, 1);
  // Sums have their own connections; receives from another host delay no sends to one; no data
  // follows; no data leaves the host.
  EXPECT_EQ(of("all_gather_hierarchical(ranks=4, local=2)", 2).in_turn, 0);
  EXPECT_EQ(of("all_reduce_hierarchical_streamed(ranks=4, local=2)", 2).in_turn, 0);
  EXPECT_EQ(of("all_reduce_all_pairs_one_shot(ranks=4)", 4).in_turn, 0);
  EXPECT_EQ(of("all_reduce_ring(ranks=4)", 1).in_turn, 0);
}

// The algorithm chosen without measurements, with its ranks.
std::string chosen_for(const Setting& setting, std::int64_t bytes) {
  const std::string chosen =
      ChoiceTable::defaults().choose(setting, bytes, candidates_for(setting, bytes)).algorithm;
  return chosen.ends_with(')')
             ? fmt::format("{}, ranks={})", chosen.substr(0, chosen.size() - 1), setting.ranks)
             : fmt::format("{}(ranks={})", chosen, setting.ranks);
}

TEST(InterHost, LargeCallsPipelineTheirSlices) {
  for (const std::int32_t hosts : {2, 4})
    for (const std::int32_t local : {1, 2}) {
      const Setting setting{
          .kind = Kind::all_reduce, .ranks = hosts * local, .hosts = hosts, .transport = "mixed"};
      for (const std::int64_t bytes : {1 << 20, 1 << 24}) {
        const std::string chosen = chosen_for(setting, bytes);
        EXPECT_EQ(of(chosen, hosts).in_turn, 0) << chosen << ' ' << bytes;
      }
    }
}

TEST(InterHost, LargeGathersMinimizeInterHostBytes) {
  const Setting setting{.kind = Kind::all_gather, .ranks = 4, .hosts = 2, .transport = "mixed"};
  const std::string chosen = chosen_for(setting, 1 << 24);
  EXPECT_DOUBLE_EQ(of(chosen, 2).wire, 0.5) << chosen;  // each block once
}

TEST(InterHost, LargeCallsMinimizeInterHostBytes) {
  const Setting setting{.kind = Kind::all_reduce, .ranks = 8, .hosts = 4, .transport = "tcp"};
  const ChoiceTable table = ChoiceTable::defaults();
  const auto chosen = [&](std::int64_t bytes) {
    return table.choose(setting, bytes, candidates_for(setting, bytes)).algorithm;
  };
  EXPECT_EQ(chosen(1 << 24), "all_reduce_hierarchical_streamed(local=2)");
}

// When the number of messages dominates: one from each host to each other host.
TEST(InterHost, SmallCallsMinimizeInterHostMessages) {
  const ChoiceTable table = ChoiceTable::defaults();
  for (const auto& [kind, expected] : {std::pair(Kind::all_reduce, "all_reduce_leaders(local=2)"),
                                       std::pair(Kind::reduce_scatter, "reduce_scatter_leaders(local=2)"),
                                       std::pair(Kind::all_gather, "all_gather_leaders(local=2)")}) {
    const Setting setting{.kind = kind, .ranks = 8, .hosts = 4, .transport = "mixed"};
    EXPECT_EQ(table.choose(setting, 1024, candidates_for(setting, 1024)).algorithm, expected);
    EXPECT_NE(table.choose(setting, 1 << 20, candidates_for(setting, 1 << 20)).algorithm, expected);
  }
}

}  // namespace
