#include "weft/collectives/synthesis/route_table.h"

namespace weft::synthesis {
namespace {

constexpr std::uint64_t kTurns = 12;  // channels whose route is compared

}  // namespace

std::int32_t RouteTable::number(std::int32_t from, std::int32_t to, const std::vector<std::int32_t>& links) {
  const auto [known, is_new] = only_.try_emplace({from, to});
  for (std::uint64_t turn = 0; is_new && turn < kTurns; ++turn) {
    const auto way = shortest_.route(from, to, turn);
    if (!way || (turn > 0 && *way != known->second)) {
      known->second.clear();
      break;
    }
    known->second = *way;
  }
  if (known->second == links) return -1;
  const auto [numbered, first] = numbers_.try_emplace(links, static_cast<std::int32_t>(routes_.size()));
  if (first) routes_.push_back(links);
  return numbered->second;
}

}  // namespace weft::synthesis
