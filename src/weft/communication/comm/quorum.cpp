#include "weft/communication/comm/quorum.h"

#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "weft/communication/transport/rank_names.h"

namespace weft::comm {

Status check_quorum(std::span<const std::int32_t> members, std::span<const std::int32_t> left,
                    std::span<const transport::Death> deaths) {
  std::vector<std::int32_t> electorate, doubtful;
  for (const std::int32_t member : members) {
    const auto death = std::ranges::find(deaths, member, &transport::Death::rank);
    const bool stays = std::ranges::binary_search(left, member);
    if (!stays && death != deaths.end() && !death->presumed) continue;
    electorate.push_back(member);
    if (!stays) doubtful.push_back(member);
  }
  if (2 * left.size() > electorate.size()) return {};
  if (2 * left.size() == electorate.size() && std::ranges::binary_search(left, electorate.front())) return {};
  return environment_error(
      fmt::format("only {} of {} ranks are left; {} may be alive and continue without them", left.size(),
                  electorate.size(), transport::name_ranks(doubtful)),
      "shrink(Quorum::any), weft_shrink_any() in C, continues anyway");
}

}  // namespace weft::comm
