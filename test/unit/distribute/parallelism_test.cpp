// Distributions described in the usual terms of the field.
#include "weft/parallel/distribute/parallelism.h"

#include <string>
#include <string_view>

#include <gtest/gtest.h>

namespace weft::distribute {
namespace {

const IndexRoles kRoles{.batch = {"b"},
                        .sequence = {"s"},
                        .model = {"h", "f", "v"},
                        .expert = {"x"},
                        .further = {{.index = "g", .beside = "h", .beside_size = 8}}};

std::string said(std::string_view distribution, std::int64_t rows = 0) {
  const auto read = read_distribution(distribution);
  EXPECT_TRUE(read.ok()) << distribution;
  return read.ok() ? print_parallelism(*read, kRoles, rows) : std::string();
}

TEST(Parallelism, NamesTheUsualKinds) {
  EXPECT_EQ(said("node=8: slice b"), "DP 8");
  EXPECT_EQ(said("gpu=8: slice h, f, v"), "TP 8");
  EXPECT_EQ(said("gpu=8: slice h, f, v, s"), "TP 8 (sequence parallel)");
  EXPECT_EQ(said("gpu=4: slice g, h, f"), "TP 4");
  EXPECT_EQ(said("gpu=4: slice s, ring attention"), "CP 4 (ring attention)");
  EXPECT_EQ(said("gpu=8: slice x, b"), "EP 8 · DP 8");
  EXPECT_EQ(said("gpu=8: slice x"), "EP 8");
}

TEST(Parallelism, NamesWhatIsSharded) {
  EXPECT_EQ(said("node=8: slice b, shard optimizer"), "DP 8 (ZeRO-1)");
  EXPECT_EQ(said("node=8: slice b, shard parameters"), "DP 8 (ZeRO-3)");
  EXPECT_EQ(said("node=4: slice b; gpu=8: slice b, shard parameters"), "DP 32 (ZeRO-3 over 8)");
  EXPECT_EQ(said("node=4: slice b, shard optimizer; gpu=8: slice b, shard parameters"),
            "DP 32 (ZeRO-3 over 8, ZeRO-1 over 4)");
}

TEST(Parallelism, CountsMicroBatchesPerReplica) {
  EXPECT_EQ(
      said("stage=8: stage, chunks=2; data=16: slice b, shard optimizer; gpu=8: slice h, f, v, s; micro=48; "
           "schedule zb_v",
           1536),
      "TP 8 (sequence parallel) · PP 8 x 2 chunks (zero-bubble V) · DP 16 (ZeRO-1) · micro-batch 2 x 48");
  EXPECT_EQ(said("stage=2: stage; data=2: slice b; micro=4", 16), "PP 2 (1F1B) · DP 2 · micro-batch 2 x 4");
  EXPECT_EQ(said("stage=2: stage; data=2: slice b; micro=4", 9), "PP 2 (1F1B) · DP 2 · 4 micro-batches");
  EXPECT_EQ(said("rank=1; micro=4", 16), "micro-batch 4 x 4");
}

TEST(Parallelism, DescribesOtherTechniques) {
  EXPECT_EQ(said("node=4: slice b; recompute layers"), "DP 4 · full recomputation");
  EXPECT_EQ(said("node=4: slice b; recompute selective"), "DP 4 · selective recomputation");
  EXPECT_EQ(said("node=4: slice b; replicate w on node"), "DP 4 · w replicated");
}

// AlexNet on slow links: dense layers slice the model, all others the batch.
TEST(Parallelism, NamesBothUsesOfAnAxis) {
  EXPECT_EQ(said("node=8: slice f, b"), "TP 8 (layers with f) · DP 8 (other layers)");
  EXPECT_EQ(said("node=8: slice f, b; slice b of f0 on node"),
            "TP 8 (layers with f) · DP 8 (other layers) · DP for f0");
  EXPECT_EQ(said("node=2: slice b; gpu=8: slice h, f, b"),
            "TP 8 (layers with h, f) · DP 2 · DP 16 (other layers)");
}

// Slices without a usual term keep their index names.
TEST(Parallelism, NamesOtherSlicesByTheirIndex) {
  EXPECT_EQ(said("gpu=4: slice y"), "4-way slices of y");
  EXPECT_EQ(said("gpu=4: slice s"), "4-way slices of s");
  EXPECT_EQ(said("gpu=4"), "4 redundant ranks");
  EXPECT_EQ(said("gpu=1: slice b"), "");
}

}  // namespace
}  // namespace weft::distribute
