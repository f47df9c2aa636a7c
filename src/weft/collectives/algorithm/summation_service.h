// weft/collectives/algorithm/summation_service.h -- sums by ranks that hold nothing: how much of them each is given.
//
//   4 workers, 2 servers     worker  [=  own]                       server  [===  served]
//                            sends 1 + (n - 2) a of the data         n c
//
// Every worker sends its addends to whoever sums them, a worker (a of the data each) or a server (c of it each), and
// gets the sums back: n a + k c = 1. A card is busy with what goes out of it, which is as much as what comes in. All
// are equally busy where a / c = (n - k s) / (2 s (n - 1)), s being the rate of a server's card over a worker's; where
// servers could do with more than there is (k s >= n), workers sum nothing. With s = 1 that is BytePS's optimum.
//
// The program is algorithms/custom_summation_service.algorithm; its name in a plan says it all:
// "custom_summation_service(own=1, served=3, servers=2)".
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace weft::collective {

inline constexpr std::string_view kSummationService = "custom_summation_service";

// In chunks of which workers * own + servers * served make up the data.
struct SummationService {
  std::int32_t servers = 1;
  std::int32_t own = 0, served = 1;

  std::int64_t chunks(std::int32_t workers) const {
    return std::int64_t{workers} * own + std::int64_t{servers} * served;
  }
  friend bool operator==(const SummationService&, const SummationService&) = default;
};

// What passes the busiest card each way, over the bytes that are summed and counted at a worker's rate.
double busiest_card(const SummationService& service, std::int32_t workers, double server_rate);

// The split with which the busiest card is least busy, in parts of at most `most` chunks: exact where the optimum is
// one of these. Every chunk takes two channels, of which there are 32. REQUIRES: workers, servers, most >= 1,
// server_rate > 0.
inline constexpr std::int32_t kMostOfPart = 16;
SummationService best_split(std::int32_t workers, std::int32_t servers, double server_rate,
                            std::int32_t most = kMostOfPart);

std::string print(const SummationService& service);
// Nothing where the name is of another algorithm.
std::optional<SummationService> find_summation_service(std::string_view algorithm);

}  // namespace weft::collective
