// weft/runtime/measure/profile_links.h -- measures latency and bandwidth between the ranks of a job.
//
//   one pair at a time   a ──▶ b ──▶ a          half of a round trip of 8 bytes
//                        a ══▶ b   b ══▶ a      a stream per direction, until the last byte is acknowledged
//   all together         0 ══▶ 1 ══▶ 2 ══▶ 0    each rank sends to the next and receives from the previous
//
// While a pair is measured all other ranks sleep. Measures every pair for up to kMostRanksInPairs
// ranks; for more, each rank's pair with the next rank and with the one half the ring away.
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
  std::chrono::milliseconds latency{5}, stream{20};  // time per measurement
};

// Collective over `members` (job ranks), which form the endpoint's group. All ranks return all
// links; ranks in the result are positions in the group.
Result<std::vector<cost::LinkTime>> measure_links(transport::Job& job, std::span<const std::int32_t> members,
                                                  transport::Endpoint& endpoint, const LinkEffort& effort);

// The pairs to measure one at a time.
std::vector<std::pair<std::int32_t, std::int32_t>> pairs_of(std::int32_t ranks);

}  // namespace weft::measure
