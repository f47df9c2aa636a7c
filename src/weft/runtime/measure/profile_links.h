// weft/runtime/measure/profile_links.h -- latency and bandwidth between the ranks of a job, measured by all of them.
//
//   one pair at a time   a ──▶ b ──▶ a          half of a round trip of 8 bytes
//                        a ══▶ b   b ══▶ a      a stream each way, until the last byte is acknowledged
//   all together         0 ══▶ 1 ══▶ 2 ══▶ 0    every rank sends to the next and receives from the one before
//
// While a pair is measured all others sleep. Every pair of up to kMostRanksInPairs ranks; of more, each
// rank's pair with the next one and with the one farthest away.
#pragma once
#include <chrono>
#include <cstdint>
#include <span>
#include <vector>

#include "weft/base/result.h"
#include "weft/communication/transport/endpoint.h"
#include "weft/communication/transport/job.h"
#include "weft/predict/cost/statistics.h"

namespace weft::measure {

inline constexpr std::int32_t kMostRanksInPairs = 16;

struct LinkEffort {
  std::chrono::milliseconds latency{5}, stream{20};  // to spend on each
};

// Collective over `members` (job ranks), the endpoint's group. All ranks get all links, ranks being positions
// in the group.
Result<std::vector<cost::LinkTime>> measure_links(transport::Job& job, std::span<const std::int32_t> members,
                                                  transport::Endpoint& endpoint, const LinkEffort& effort);

// The pairs that are measured one at a time, for so many ranks.
std::vector<std::pair<std::int32_t, std::int32_t>> pairs_of(std::int32_t ranks);

}  // namespace weft::measure
