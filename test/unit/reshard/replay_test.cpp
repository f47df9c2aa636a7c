// The replay: what it accepts and what it rejects.
#include "weft/collectives/reshard/replay.h"

#include <gtest/gtest.h>

#include <string>

namespace weft::reshard {
namespace {

// Two rows of three elements on device 0; all of them go to devices 1 and 2.
Reshard rows_of_three() {
  const Box all = {{0, 2}, {0, 3}};
  return {.sizes = {2, 3},
          .element_bytes = 4,
          .sources = {{0, all}},
          .destinations = {{1, all}, {2, all}},
          .hosts = {0, 1, 2}};
}

const Box kFirstRow = {{0, 1}, {0, 3}}, kSecondRow = {{1, 1}, {0, 3}}, kBothRows = {{0, 2}, {0, 3}};

std::string verdict(const std::vector<Move>& moves) {
  const Status status = replay(rows_of_three(), moves);
  return status.ok() ? "right" : status.error().message;
}

TEST(Replay, FollowsMovesInTheirOrder) {
  EXPECT_EQ(
      verdict({{0, 1, kFirstRow}, {1, 2, kFirstRow, true}, {0, 1, kSecondRow}, {1, 2, kSecondRow, true}}),
      "right");
}

TEST(Replay, DetectsMissingElements) {
  EXPECT_EQ(verdict({{0, 1, kBothRows}, {1, 2, kFirstRow, true}}),
            "device 2 has nothing at [1, 0], expected 3");
}

TEST(Replay, RejectsForwardingBeforeArrival) {
  EXPECT_EQ(verdict({{0, 1, kFirstRow}, {1, 2, kBothRows, true}}),
            "move 1 reads what its sender does not hold: device 1, element [1, 0]");
  EXPECT_EQ(verdict({{1, 2, kBothRows}}),
            "move 0 reads what its sender does not hold: device 1, element [0, 0]");
}

TEST(Replay, RejectsRedundantMoves) {
  EXPECT_EQ(verdict({{0, 1, kFirstRow}, {0, 1, kBothRows}}),
            "move 1 writes what its receiver has already: device 1, element [0, 0]");
  EXPECT_EQ(verdict({{0, 0, kFirstRow}}),
            "move 0 writes what its receiver does not need: device 0, element [0, 0]");
  EXPECT_EQ(verdict({{0, 1, {{0, 2}}}}), "move 0 has a box of 1 dims, expected 2");
}

TEST(Replay, RejectsHugeTensors) {
  Reshard large = rows_of_three();
  large.sizes[0] = large.sources[0].box[0].size = std::int64_t{1} << 40;
  const Status status = replay(large, {});
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().message,
            "too large to replay: expected at most 16777216 elements on all devices, found 3298534883340");
}

}  // namespace
}  // namespace weft::reshard
