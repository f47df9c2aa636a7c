// weft/collectives/synthesis/deal_shares.h -- fractions of a block as messages of a few chunks, streams taking turns.
//
//   shares 0.6, 0.4, ten chunks     0 0 0 | 1 1 | 0 0 0 | 1 1
//
// Messages differ in length: of equal ones those that start together end together, time after time, and no connection of
// a link would send while all of them come to their next step.
#pragma once
#include <cstdint>
#include <vector>

namespace weft::synthesis {

inline constexpr double kMeanMessage = 2.5;  // chunks

struct DealtMessage {
  std::int32_t stream = 0;
  std::int64_t first = 0, count = 1;  // chunks
};

// All chunks in order. Their numbers are the shares rounded so that the greatest remainders are served first; each
// stream's messages are spread evenly, so that any stretch of chunks has about its share.
// REQUIRES: shares add up to 1
std::vector<DealtMessage> deal_shares(const std::vector<double>& shares, std::int64_t chunks);

// The numbers alone.
std::vector<std::int64_t> round_shares(const std::vector<double>& shares, std::int64_t chunks);

}  // namespace weft::synthesis
