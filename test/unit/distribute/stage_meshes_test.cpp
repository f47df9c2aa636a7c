// Stages with separate meshes: their notation, its translation to axes common to all stages, and
// back.
#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "weft/parallel/distribute/distribution.h"
#include "weft/parallel/distribute/stage_meshes.h"

namespace weft::distribute {
namespace {

// The distribution as printed, checked to parse back to the same; or the error.
std::string read(std::string_view text) {
  const auto made = read_distribution(text);
  if (!made.ok()) return made.error().message;
  const std::string printed = print(*made);
  const auto again = read_distribution(printed);
  EXPECT_TRUE(again.ok()) << printed << ": " << again.error().message;
  if (again.ok()) EXPECT_EQ(*again, *made) << printed;
  return printed;
}

TEST(StageMeshes, AreSplitIntoCommonAxes) {
  EXPECT_EQ(read("stage=2: stage; stage 0 on data=4: slice b; stage 1 on data=2: slice b; stage 1 on gpu=2: "
                 "slice h"),
            "stage=2: stage; data=2: slice b; gpu=2: slice b, in stage 1 slice h");
  EXPECT_EQ(
      read("stage=4: stage, chunks=2; stage 0 on data=4: slice b; stages 1 to 3 on gpu=4: slice h, f, shard "
           "optimizer; micro=8; schedule interleaved"),
      "stage=4: stage, chunks=2; data=4: slice h, f, shard optimizer, in stage 0 slice b; micro=8; schedule "
      "interleaved");
  // The middle axis is an axis of neither stage.
  EXPECT_EQ(read("stage=2: stage; stage 0 on a=2: slice b; stage 0 on c=6: slice h; stage 1 on a=4: slice b; "
                 "stage 1 "
                 "on c=3: slice h"),
            "stage=2: stage; a=2: slice b; c=2: slice h, in stage 1 slice b; c_2=3: slice h");
}

TEST(StageMeshes, SupportEmptyAndRepeatedStages) {
  EXPECT_EQ(
      read("stage=4: stage; data=2: slice b, in stages 1 to 2 nothing, in stage 3 slice s, ring attention"),
      "stage=4: stage; data=2: slice b, in stages 1 to 2 nothing, in stage 3 slice s, ring attention");
  EXPECT_EQ(read("stage=2: stage; data=2: in stage 0 slice in, stage; gpu=2: slice in"),
            "stage=2: stage; data=2: in stage 0 slice in, stage; gpu=2: slice in");
}

TEST(StageMeshes, PrintEachStagesOwnMesh) {
  const auto made = read_distribution(
      "stage=2: stage; stage 0 on data=4: slice b; stage 1 on data=2: slice b; stage 1 on gpu=2: slice h, f; "
      "micro=2");
  ASSERT_TRUE(made.ok());
  EXPECT_EQ(print_stage_mesh(*made, 0), "data=4: slice b");
  EXPECT_EQ(print_stage_mesh(*made, 1), "data=2: slice b; gpu=2: slice h, f");
  EXPECT_FALSE(has_stage_meshes(as_in_stage(*made, 0)));
  EXPECT_TRUE(has_stage_meshes(*made));
}

TEST(StageMeshes, RejectInvalidMeshes) {
  EXPECT_EQ(read("stage=2: stage; stage 0 on data=4: slice b"),
            "stage 1 has no mesh, but other stages have their own");
  EXPECT_EQ(read("stage=2: stage; stage 0 on data=4: slice b; stage 1 on data=2: slice b"),
            "all stages need the same number of ranks: stage 0 has 4, stage 1 has 2");
  EXPECT_EQ(read("stage=2: stage; stage 0 on a=2: slice b; stage 0 on c=3: slice h; stage 1 on a=3: slice b; "
                 "stage 1 "
                 "on c=2: slice h"),
            "the meshes of two stages have blocks of 3 and of 2, which do not nest");
  EXPECT_EQ(read("stage=2: stage; stage 2 on data=4: slice b"), "there is no stage 2: stages are 0 to 1");
  EXPECT_EQ(read("stage=2: stage; data=2: slice b; stage 0 on data=4: slice b"),
            "stages have their own meshes or share axes: found both");
  EXPECT_EQ(read("stage 0 on data=4: slice b; micro=2"), "a stage has a mesh, but no axis is a stage axis");
  EXPECT_EQ(read("data=4: slice b, in stage 0 slice h"),
            "some stages use an axis differently, but no axis is a stage axis");
  EXPECT_EQ(read("stage=2: stage; data=4: slice b, in stage 2 slice h"),
            "data has another use in stage 2, but stages are 0 to 1");
  EXPECT_EQ(read("stage=2: stage; data=4: slice b, in stage 1 slice h, in stages 0 to 1 slice f"),
            "the use of data in stage 1 is given twice");
  EXPECT_EQ(read("stage=2: stage; stages 1 to 0 on data=4: slice b"), "stages 1 to 0 is an empty range");
  EXPECT_EQ(read("stage=2: stage; stage 0 on data=2: slice b; stage 0 on data=2: slice h; stage 1 on data=4"),
            "stage 0 has two axes data");
}

}  // namespace
}  // namespace weft::distribute
