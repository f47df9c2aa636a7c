#include "weft/collectives/chunks/places.h"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>

namespace weft::collective {
namespace {

constexpr std::int64_t kMostBufferChunks = std::int64_t{1} << 30;  // per buffer

Status check_counts(const Collective& collective) {
  const std::vector<std::int32_t>& counts = collective.counts;
  const std::int64_t ranks = collective.ranks;
  if (!has_block_per_rank(collective.kind))
    return user_error(fmt::format("blocks cannot differ: {} has no counts", name(collective.kind)));
  const std::int64_t wanted = collective.kind == Kind::all_to_all ? ranks * ranks : ranks;
  if (static_cast<std::int64_t>(counts.size()) != wanted)
    return user_error(fmt::format("expected {} counts, one per {}, found {}", wanted,
                                  wanted == ranks ? "rank" : "pair of ranks", counts.size()));
  std::int64_t total = 0;
  for (const std::int32_t count : counts) {
    if (count < 0) return user_error(fmt::format("a count is negative: {}", count));
    total += count;
  }
  if (total > kMostBufferChunks)
    return user_error(fmt::format("buffers are too large: {} chunks, at most {}", total, kMostBufferChunks));
  return {};
}

Status check_wants(const Collective& collective) {
  for (const CustomWant& want : collective.wants) {
    const auto within = [&](std::int64_t rank, std::int64_t index) {
      return rank >= 0 && rank < collective.ranks && index >= 0 && index < kMostBufferChunks;
    };
    if (!within(want.rank, want.index))
      return user_error(fmt::format("there is no output[{}] of {}", want.index, want.rank));
    for (const Contribution& part : want.contributions)
      if (!within(part.rank, part.index))
        return user_error(fmt::format("there is no input[{}] of {}", part.index, part.rank));
  }
  return {};
}

}  // namespace

Status check_collective(const Collective& collective) {
  const std::int64_t ranks = collective.ranks, chunks = collective.chunks;
  if (ranks < 1 || ranks > kMostRanks)
    return user_error(fmt::format("expected 1 to {} ranks, found {}", kMostRanks, ranks));
  if (chunks < 1) return user_error(fmt::format("a block needs at least one chunk: {}", chunks));
  if (chunks * (has_block_per_rank(collective.kind) ? ranks : 1) > kMostBufferChunks)
    return user_error(fmt::format("buffers are too large: {} chunks per block, {} ranks", chunks, ranks));
  for (const auto& [what, rank] : {std::pair("root", collective.root), std::pair("peer", collective.peer)})
    if (rank < 0 || rank >= ranks)
      return user_error(fmt::format("{} is not a rank: {} of {}", what, rank, ranks));
  if (!collective.counts.empty()) WEFT_TRY_STATUS(check_counts(collective));
  return check_wants(collective);
}

Places::Places(const Collective& collective, bool in_place, std::int32_t inputs, std::int32_t outputs)
    : kind_(collective.kind), ranks_(collective.ranks), chunks_(collective.chunks), in_place_(in_place) {
  std::vector<std::int32_t>& input = extents_[0];
  std::vector<std::int32_t>& output = extents_[1];
  if (kind_ == Kind::custom) {
    input.assign(ranks_, inputs);
    output.assign(ranks_, outputs);
    for (const CustomWant& want : collective.wants) {
      output[want.rank] = std::max(output[want.rank], want.index + 1);
      for (const Contribution& part : want.contributions)
        input[part.rank] = std::max(input[part.rank], part.index + 1);
    }
  } else if (collective.counts.empty()) {
    input = {collective::extent(collective, Buffer::input, 0)};
    output = {collective::extent(collective, Buffer::output, 0)};
  } else if (kind_ == Kind::all_to_all) {
    input.assign(ranks_, 0);
    output.assign(ranks_, 0);
    for (std::size_t i = 0; i < collective.counts.size(); ++i) {
      input[i / ranks_] += collective.counts[i];
      output[i % ranks_] += collective.counts[i];
    }
  } else {
    firsts_.resize(ranks_);
    std::exclusive_scan(collective.counts.begin(), collective.counts.end(), firsts_.begin(), 0);
    const auto whole = static_cast<std::size_t>(shared_buffer(kind_));
    extents_[whole] = {firsts_.back() + collective.counts.back()};
    extents_[1 - whole] = collective.counts;
  }
  if (in_place_ && !has_one_block(kind_)) {  // shared memory is as long as the longer of the two buffers
    const std::size_t longest = std::max(input.size(), output.size());
    for (std::size_t i = 0; i < longest; ++i) input[i] = output[i] = std::max(input[i], output[i]);
  }
}

std::int32_t Places::extent(Buffer buffer, std::int32_t rank) const {
  const std::vector<std::int32_t>& extents = extents_[static_cast<std::size_t>(buffer)];
  return extents.size() == 1 ? extents[0] : extents[rank];
}

Place Places::resolve(Place place) const {
  const Buffer shared = shared_buffer(kind_);
  if (!in_place_ || place.buffer == Buffer::scratch || place.buffer == shared) return place;
  if (has_one_block(kind_)) place.index += firsts_.empty() ? chunks_ * place.rank : firsts_[place.rank];
  place.buffer = shared;
  return place;
}

}  // namespace weft::collective
