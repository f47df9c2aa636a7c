// weft/collectives/algorithm/summation_service.h -- splits sums between workers and servers.
//
//   4 workers, 2 servers     worker  [=  own]                       server  [===  served]
//                            sends 1 + (n - 2) a of the data         n c
//
// n workers sum a fraction a of the data each; k servers, which hold no part of the model, sum a
// fraction c each: n a + k c = 1. Every worker sends its addends to the rank that sums them and
// receives the sums. A network card sends as much as it receives. All cards are equally loaded if
// a / c = (n - k s) / (2 s (n - 1)), where s is the bandwidth of a server's card relative to a
// worker's. If the servers have bandwidth to spare (k s >= n), workers sum nothing. With s = 1 this
// is BytePS's optimum.
//
// The algorithm is algorithms/custom_summation_service.algorithm. Its name in a plan holds the
// split: "custom_summation_service(own=1, served=3, servers=2)".
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace weft::collective {

inline constexpr std::string_view kSummationService = "custom_summation_service";

// In chunks. The data has workers * own + servers * served of them.
struct SummationService {
  std::int32_t servers = 1;
  std::int32_t own = 0, served = 1;

  std::int64_t chunks(std::int32_t workers) const {
    return std::int64_t{workers} * own + std::int64_t{servers} * served;
  }
  friend bool operator==(const SummationService&, const SummationService&) = default;
};

// Bytes per direction at the busiest card over bytes summed, in units of a worker's bandwidth.
double busiest_card(const SummationService& service, std::int32_t workers, double server_rate);

// The split that minimizes the load of the busiest card, with `own` and `served` at most `most`.
// Exact if the optimum is among these. Every chunk takes two of the 32 channels.
// REQUIRES: workers, servers, most >= 1, server_rate > 0.
inline constexpr std::int32_t kMostSplitChunks = 16;
SummationService best_split(std::int32_t workers, std::int32_t servers, double server_rate,
                            std::int32_t most = kMostSplitChunks);

std::string print(const SummationService& service);
// Empty if the name is of another algorithm.
std::optional<SummationService> find_summation_service(std::string_view algorithm);

}  // namespace weft::collective
