// weft/program/memory/spare.h -- the spare memory of neighbours: which stage sits where, and what goes over which link.
//
//   stage 0  overflows by 6 GiB        device 0 ==2 links== device 3    4 GiB of stage 0 lie on device 3,
//   stage 3  has room for 10 GiB       device 0 --1 link--- device 1    2 GiB on device 1, at the same time
//
// Early stages of a pipeline hold more micro-batches than late ones, so some overflow while others have room. What
// overflows is cut into stripes that travel over all links of its device at once, in proportion to their rates, as
// far as there is room at their ends; and stages are put on devices so that the slowest takes least time. After
// Zhou et al., "MPress: Democratizing Billion-Scale Model Training on Multi-GPU Servers" (HPCA'23).
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "weft/base/result.h"

namespace weft::memory {

// Bytes a second from a device to another, 0 where no link joins them.
struct LinkRates {
  std::size_t devices = 0;
  std::vector<double> rates;  // by from * devices + to

  double rate(std::size_t from, std::size_t to) const { return rates[from * devices + to]; }
};

struct StageMemory {
  std::int64_t overflow = 0;  // bytes that do not fit, or
  std::int64_t room = 0;      // bytes that are free
};

struct Stripe {
  std::int32_t from = 0, to = 0;  // stages
  std::int64_t bytes = 0;
};

struct SparePlan {
  std::vector<std::int32_t> device_of;  // by stage
  std::vector<Stripe> stripes;          // of a stage together its overflow; at an end no more than its room
  double seconds = 0;                   // until the last stripe is there, all at once
};

// The time of the slowest stripe with stages placed so, however they are cut; infinite where room or links do not
// suffice: the most of (overflow of some - room of others) / rate from the some to all but the others.
double spare_seconds(std::span<const StageMemory> stages, const LinkRates& links,
                     std::span<const std::int32_t> device_of);

// The best placement: of all where there are at most 8 stages, else by exchanging pairs while that helps. Fails
// where stages and devices differ in number, there are more than 20, or nothing holds the overflow.
Result<SparePlan> place_in_spare_memory(std::span<const StageMemory> stages, const LinkRates& links);

// What a micro-batch leaves on a stage between its F and its B.
struct SwapWindow {
  double forward_end = 0, backward_begin = 0;
};

// Which of these swaps cost nothing: sent away after F and back before B, one at a time in each direction of the
// link. A swap that does not fit is left out, and the others have its place.
std::vector<bool> free_swaps(std::span<const SwapWindow> windows, double seconds_away, double seconds_back);

}  // namespace weft::memory
