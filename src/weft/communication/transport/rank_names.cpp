#include "weft/communication/transport/rank_names.h"

#include <algorithm>

#include <fmt/format.h>

#include "weft/base/units.h"

namespace weft::transport {

std::string name_ranks(std::span<const std::int32_t> ranks) {
  constexpr std::size_t kNamed = 8;
  const std::size_t named = std::min(ranks.size(), kNamed);
  std::string out;
  for (std::size_t i = 0; i < named; ++i) {
    if (i > 0) out += i + 1 == ranks.size() ? " and " : ", ";
    out += fmt::format("rank {}", ranks[i]);
  }
  if (ranks.size() > kNamed) out += fmt::format(", ... ({} ranks)", ranks.size());
  return out;
}

std::string print_time(std::chrono::milliseconds time) {
  return print_seconds(static_cast<double>(time.count()) / 1000.0);
}

}  // namespace weft::transport
