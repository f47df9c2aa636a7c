#include "weft/transport/tcp/cores.h"

#include <algorithm>

namespace weft::transport::tcp {

namespace {

constexpr std::int32_t kLooksPerAge = 64;

// Of a word: see the header.
constexpr std::uint32_t kField = 1023;
constexpr int kRankBit = 10, kCoreBit = 20, kHopsBit = 30;
constexpr std::int32_t kMostHops = 3;
constexpr std::size_t kMostTried = 8;  // of those that something may be told of

std::uint32_t field(std::int32_t core) {
  return core >= 0 && core < static_cast<std::int32_t>(kField) ? static_cast<std::uint32_t>(core) + 1 : 0;
}

}  // namespace

Cores::Cores(std::int32_t rank, std::int32_t ranks, std::int32_t neighbours, std::int32_t cores)
    : rank_(rank),
      placement_(rank, ranks, neighbours, cores),
      hops_(static_cast<std::size_t>(ranks), kForgotten) {}

std::uint32_t Cores::tell(std::int32_t here) {
  const std::uint32_t mine = field(here);
  for (std::size_t tried = 0; tried < std::min(kMostTried, hops_.size()); ++tried) {
    told_ = told_ + 1 < hops_.size() ? told_ + 1 : 0;
    const std::uint32_t core = field(placement_.core_of(static_cast<std::int32_t>(told_)));
    if (hops_[told_] > kMostHops || core == 0 || told_ > kField) continue;
    return mine | static_cast<std::uint32_t>(told_) << kRankBit | core << kCoreBit |
           static_cast<std::uint32_t>(hops_[told_]) << kHopsBit;
  }
  return mine;
}

void Cores::hear(std::int32_t from, std::uint32_t word) {
  const auto learn = [this](std::size_t rank, std::uint32_t core, std::int32_t hops) {
    placement_.note(static_cast<std::int32_t>(rank), static_cast<std::int32_t>(core) - 1);
    hops_[rank] = hops;
  };
  if (const std::uint32_t its = word & kField; its > 0) learn(static_cast<std::size_t>(from), its, 0);
  const std::uint32_t core = word >> kCoreBit & kField;
  const std::size_t rank = word >> kRankBit & kField;
  const auto hops = static_cast<std::int32_t>(word >> kHopsBit) + 1;
  if (core == 0 || rank >= hops_.size() || rank == static_cast<std::size_t>(rank_)) return;
  if (hops <= hops_[rank]) learn(rank, core, hops);
}

ThreadPlacement& Cores::look() {
  if (++looks_ % kLooksPerAge != 0) return placement_;
  for (std::size_t rank = 0; rank < hops_.size(); ++rank)
    if (hops_[rank] < kForgotten && ++hops_[rank] == kForgotten)
      placement_.note(static_cast<std::int32_t>(rank), -1);
  return placement_;
}

}  // namespace weft::transport::tcp
