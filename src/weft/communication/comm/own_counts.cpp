// Calls of ranks that know only their own counts: an all_gather of the counts precedes the call.
#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "weft/communication/comm/communicator.h"

namespace weft::comm {
namespace {

using Counts = std::vector<std::int64_t>;

// The counts of all ranks, concatenated.
Result<Counts> tell_counts(Communicator& group, const Counts& mine) {
  Counts all(mine.size() * static_cast<std::size_t>(group.size()));
  WEFT_TRY_STATUS(group.run({.kind = Kind::all_gather,
                             .input = mine.data(),
                             .output = all.data(),
                             .count = static_cast<std::int64_t>(mine.size()),
                             .type = ElementType::i64,
                             .purpose = Purpose::own_counts}));
  return all;
}

Status check_length(std::string_view what, std::span<const std::int64_t> counts, std::int32_t ranks) {
  if (counts.size() == static_cast<std::size_t>(ranks)) return {};
  return user_error(
      fmt::format("{}: expected one for each of {} ranks, found {}", what, ranks, counts.size()));
}

}  // namespace

// All ranks check all counts, so that all refuse a wrong one.
Status Communicator::all_to_all(const void* input, std::span<const std::int64_t> give, void* output,
                                std::span<const std::int64_t> take, ElementType type) {
  WEFT_TRY_STATUS(check_length("send counts", give, size()));
  WEFT_TRY_STATUS(check_length("receive counts", take, size()));
  Counts mine(give.begin(), give.end());
  mine.insert(mine.end(), take.begin(), take.end());
  WEFT_TRY(all, tell_counts(*this, mine));
  const auto ranks = static_cast<std::size_t>(size());
  Counts pairs;
  for (std::size_t from = 0; from < ranks; ++from) {
    for (std::size_t to = 0; to < ranks; ++to) {
      const std::int64_t given = all[from * 2 * ranks + to], taken = all[to * 2 * ranks + ranks + from];
      if (given < 0 || given != taken)
        return user_error(fmt::format("counts do not match: rank {} sends {} to rank {}, which expects {}",
                                      from, given, to, taken));
      pairs.push_back(given);
    }
  }
  return run({.kind = Kind::all_to_all,
              .input = input,
              .output = output,
              .type = type,
              .counts = pairs,
              .purpose = Purpose::own_counts});
}

Result<Counts> Communicator::all_gather(const void* input, std::int64_t count, void* output,
                                        std::int64_t room, ElementType type) {
  WEFT_TRY(all, tell_counts(*this, {count, room}));
  Counts counts;
  for (std::size_t rank = 0; rank < all.size(); rank += 2) {
    if (all[rank] < 0)
      return user_error(fmt::format("count of rank {} is negative: {}", rank / 2, all[rank]));
    // run() reports a sum that exceeds any memory.
    counts.push_back(std::min(all[rank], std::int64_t{1} << 61));
  }
  for (std::size_t rank = 1; rank < all.size(); rank += 2) {
    std::int64_t left = all[rank];
    for (const std::int64_t each : counts) left = each > left ? -1 : left - each;
    if (left < 0)
      return user_error(fmt::format("rank {} has room for {} elements of an all_gather of {}", rank / 2,
                                    all[rank], fmt::join(counts, " + ")));
  }
  WEFT_TRY_STATUS(run({.kind = Kind::all_gather,
                       .input = input,
                       .output = output,
                       .type = type,
                       .counts = counts,
                       .purpose = Purpose::own_counts}));
  return counts;
}

}  // namespace weft::comm
