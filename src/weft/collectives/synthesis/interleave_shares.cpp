#include "weft/collectives/synthesis/interleave_shares.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "weft/base/random.h"
#include "weft/collectives/synthesis/index.h"

namespace weft::synthesis {

std::vector<std::int64_t> round_shares(const std::vector<double>& shares, std::int64_t chunks) {
  std::vector<std::int64_t> counts;
  std::vector<std::pair<double, std::int32_t>> remainders;
  for (std::size_t s = 0; s < shares.size(); ++s) {
    const double exact = shares[s] * static_cast<double>(chunks);
    counts.push_back(static_cast<std::int64_t>(exact + 1e-9));
    remainders.emplace_back(static_cast<double>(counts.back()) - exact, static_cast<std::int32_t>(s));
  }
  std::ranges::sort(remainders);
  std::int64_t left = chunks - std::accumulate(counts.begin(), counts.end(), std::int64_t{0});
  for (std::size_t i = 0; left > 0; ++i, --left) ++counts[at(remainders[i % remainders.size()].second)];
  return counts;
}

std::vector<StreamMessage> interleave_shares(const std::vector<double>& shares, std::int64_t chunks) {
  const std::vector<std::int64_t> counts = round_shares(shares, chunks);
  Random random(static_cast<std::uint64_t>(chunks));
  std::vector<std::pair<double, StreamMessage>> order;  // by position of the middle in its stream
  for (std::size_t s = 0; s < counts.size(); ++s)
    for (std::int64_t done = 0; done < counts[s];) {
      const std::int64_t left = counts[s] - done, drawn = random.between(2, 3);
      const std::int64_t count = left <= 3 ? left : left - drawn == 1 ? 2 : drawn;
      const double middle =
          (static_cast<double>(done) + 0.5 * static_cast<double>(count)) / static_cast<double>(counts[s]);
      order.push_back({middle, {static_cast<std::int32_t>(s), 0, count}});
      done += count;
    }
  std::ranges::stable_sort(order, {}, [](const auto& entry) { return entry.first; });
  std::vector<StreamMessage> dealt;
  std::int64_t next = 0;
  for (const auto& [middle, message] : order) {
    dealt.push_back({message.stream, next, message.count});
    next += message.count;
  }
  return dealt;
}

}  // namespace weft::synthesis
