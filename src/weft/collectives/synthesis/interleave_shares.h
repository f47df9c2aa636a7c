// weft/collectives/synthesis/interleave_shares.h -- divides a block into interleaved messages of streams.
//
//   shares 0.6, 0.4, ten chunks     0 0 0 | 1 1 | 0 0 0 | 1 1
//
// Messages differ in length. Equal messages that start together would end together every time, and
// no connection of a link would send while all of them proceed to their next step.
#pragma once
#include <cstdint>
#include <vector>

namespace weft::synthesis {

inline constexpr double kMeanMessage = 2.5;  // chunks

struct StreamMessage {
  std::int32_t stream = 0;
  std::int64_t first = 0, count = 1;  // chunks
};

// Messages that cover all chunks in order. Chunk counts are the shares rounded by largest
// remainder. Each stream's messages are spread evenly, so that any range of chunks has about its
// share.
// REQUIRES: shares add up to 1
std::vector<StreamMessage> interleave_shares(const std::vector<double>& shares, std::int64_t chunks);

// Only the chunk counts.
std::vector<std::int64_t> round_shares(const std::vector<double>& shares, std::int64_t chunks);

}  // namespace weft::synthesis
