#include "weft/collectives/chunks/collective.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>

#include <fmt/format.h>

#include "weft/base/letters.h"
#include "weft/base/nearest.h"

namespace weft::collective {
namespace {

constexpr std::array<std::string_view, 11> kKinds = {
    "all_reduce", "reduce_scatter", "all_gather", "all_to_all", "broadcast", "reduce",
    "gather",     "scatter",        "send",       "barrier",    "custom"};

// Chunks of the block of `rank`, for kinds with one block per rank.
std::int32_t block(const Collective& collective, std::int32_t rank) {
  return collective.counts.empty() ? collective.chunks : collective.counts[rank];
}

// The block that contains chunk `index` of a buffer with a block per rank, and the offset in it.
std::pair<std::int32_t, std::int32_t> locate(const Collective& collective, std::int32_t index) {
  if (collective.counts.empty()) return {index / collective.chunks, index % collective.chunks};
  std::int32_t rank = 0;
  while (index >= collective.counts[rank]) index -= collective.counts[rank++];
  return {rank, index};
}

// all_to_all: the number of chunks that `from` sends to `to`.
std::int32_t pair(const Collective& collective, std::int32_t from, std::int32_t to) {
  return collective.counts.empty()
             ? collective.chunks
             : collective.counts[static_cast<std::size_t>(from) * collective.ranks + to];
}

Want chunk(std::int32_t rank, std::int32_t index) { return {Want::What::chunk, rank, index, {}}; }
Want sum(std::int32_t index) { return {Want::What::sum, 0, index, {}}; }

Want want_of_all_to_all(const Collective& collective, std::int32_t rank, std::int32_t index) {
  if (collective.counts.empty())
    return chunk(index / collective.chunks, rank * collective.chunks + index % collective.chunks);
  std::int32_t from = 0;
  while (index >= pair(collective, from, rank)) index -= pair(collective, from++, rank);
  std::int32_t first = 0;
  for (std::int32_t to = 0; to < rank; ++to) first += pair(collective, from, to);
  return chunk(from, first + index);
}

Want want_of_custom(const Collective& collective, std::int32_t rank, std::int32_t index) {
  const auto key = [](const CustomWant& want) { return std::pair(want.rank, want.index); };
  const auto at = std::ranges::lower_bound(collective.wants, std::pair(rank, index), {}, key);
  if (at == collective.wants.end() || key(*at) != std::pair(rank, index)) return {};
  return {Want::What::listed, 0, 0, at->contributions};
}

}  // namespace

std::string_view name(Kind kind) { return kKinds[static_cast<std::size_t>(kind)]; }

std::string field_name(Kind kind) {
  std::string plain(name(kind));
  std::erase(plain, '_');
  return plain;
}

std::span<const std::string_view> kind_names() { return kKinds; }

std::optional<Kind> find_kind(std::string_view name) {
  std::string plain;
  for (const char letter : name)
    if (letter != '_' && letter != '-') plain += to_lower(letter);
  for (std::size_t i = 0; i < kKinds.size(); ++i) {
    const std::string known = field_name(static_cast<Kind>(i));
    if (plain == known || (plain == known + "v" && known != "custom")) return static_cast<Kind>(i);
  }
  if (plain == "sendrecv" || plain == "recv" || plain == "sendreceive") return Kind::send;
  return std::nullopt;
}

Result<Kind> parse_kind(std::string_view name) {
  if (const auto kind = find_kind(name)) return *kind;
  const std::string hint = did_you_mean(name, kKinds);
  return user_error(fmt::format("unknown collective: {}", name),
                    hint.empty() ? fmt::format("collectives are {}", fmt::join(kKinds, ", ")) : hint);
}

std::string_view name(Buffer buffer) {
  constexpr std::array<std::string_view, 3> kNames = {"input", "output", "scratch"};
  return kNames[static_cast<std::size_t>(buffer)];
}

bool reduces(Kind kind) {
  return kind == Kind::all_reduce || kind == Kind::reduce_scatter || kind == Kind::reduce ||
         kind == Kind::barrier;
}

bool has_one_block(Kind kind) {
  return kind == Kind::all_gather || kind == Kind::gather || kind == Kind::reduce_scatter ||
         kind == Kind::scatter;
}

bool has_block_per_rank(Kind kind) { return has_one_block(kind) || kind == Kind::all_to_all; }

Buffer shared_buffer(Kind kind) {
  return kind == Kind::all_gather || kind == Kind::gather ? Buffer::output : Buffer::input;
}

std::int32_t first_of_block(const Collective& collective, std::int32_t rank) {
  if (collective.counts.empty()) return collective.chunks * rank;
  return std::accumulate(collective.counts.begin(), collective.counts.begin() + rank, 0);
}

std::int32_t extent(const Collective& collective, Buffer buffer, std::int32_t rank) {
  using enum Kind;
  if (buffer == Buffer::scratch) return 0;
  const bool input = buffer == Buffer::input;
  const auto all = [&] { return first_of_block(collective, collective.ranks); };
  switch (collective.kind) {
    case all_reduce:
    case broadcast:
    case reduce:
    case send: return collective.chunks;
    case barrier: return 1;
    case reduce_scatter:
    case scatter: return input ? all() : block(collective, rank);
    case all_gather:
    case gather: return input ? block(collective, rank) : all();
    case all_to_all: {
      if (collective.counts.empty()) return collective.chunks * collective.ranks;
      std::int32_t total = 0;
      for (std::int32_t other = 0; other < collective.ranks; ++other)
        total += input ? pair(collective, rank, other) : pair(collective, other, rank);
      return total;
    }
    case custom: {
      std::int32_t most = 0;
      for (const CustomWant& want : collective.wants) {
        if (!input && want.rank == rank) most = std::max(most, want.index + 1);
        if (input)
          for (const Contribution& part : want.contributions)
            if (part.rank == rank) most = std::max(most, part.index + 1);
      }
      return most;
    }
  }
  return 0;
}

Want want(const Collective& collective, std::int32_t rank, std::int32_t index) {
  using enum Kind;
  if (index < 0 || index >= extent(collective, Buffer::output, rank)) return {};
  const bool at_root = rank == collective.root;
  switch (collective.kind) {
    case all_reduce:
    case barrier: return sum(index);
    case reduce: return at_root ? sum(index) : Want{};
    case reduce_scatter: return sum(first_of_block(collective, rank) + index);
    case all_gather:
    case gather: {
      if (collective.kind == gather && !at_root) return {};
      const auto [from, place] = locate(collective, index);
      return chunk(from, place);
    }
    case all_to_all: return want_of_all_to_all(collective, rank, index);
    case broadcast: return chunk(collective.root, index);
    case scatter: return chunk(collective.root, first_of_block(collective, rank) + index);
    case send: return rank == collective.peer ? chunk(collective.root, index) : Want{};
    case custom: return want_of_custom(collective, rank, index);
  }
  return {};
}

double bus_factor(Kind kind, std::int32_t ranks) {
  using enum Kind;
  const double share = static_cast<double>(ranks - 1) / ranks;
  switch (kind) {
    case all_reduce: return 2 * share;
    case reduce_scatter:
    case all_gather:
    case all_to_all:
    case gather:
    case scatter: return share;
    default: return 1;
  }
}

std::int64_t loop_chunks(const Collective& collective) {
  std::int64_t most = 1;
  for (std::int32_t rank = 0; rank < collective.ranks; ++rank) {
    most = std::max<std::int64_t>(most, extent(collective, Buffer::input, rank));
    most = std::max<std::int64_t>(most, extent(collective, Buffer::output, rank));
  }
  return most;
}

Extent chunk_extent(std::int64_t elements, std::int64_t chunks, std::int64_t index) {
  const std::int64_t size = elements / chunks, longer = elements % chunks;  // the first ones are longer
  return {index * size + std::min(index, longer), size + (index < longer ? 1 : 0)};
}

}  // namespace weft::collective
