#include "weft/communication/comm/call.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "weft/base/hash.h"

namespace weft::comm {
namespace {

using enum Kind;

// All sizes in bytes stay below this, so that the sum of two never overflows.
constexpr std::int64_t kMostBytes = std::int64_t{1} << 60;
constexpr std::size_t kShownCounts = 8;

std::int64_t block(const Call& call, std::int32_t rank) {
  return call.counts.empty() ? call.count : call.counts[static_cast<std::size_t>(rank)];
}

// Total elements in the blocks of ranks [0, ranks).
std::int64_t blocks(const Call& call, std::int32_t ranks) {
  if (call.counts.empty()) return call.count * ranks;
  std::int64_t total = 0;
  for (std::int32_t rank = 0; rank < ranks; ++rank) total += block(call, rank);
  return total;
}

// all_to_all: total elements that `rank` sends to, or receives from, all ranks.
std::int64_t pairs(const Call& call, std::int32_t ranks, std::int32_t rank, bool input) {
  if (call.counts.empty()) return call.count * ranks;
  std::int64_t total = 0;
  for (std::int32_t other = 0; other < ranks; ++other)
    total += call.counts[static_cast<std::size_t>(input ? rank : other) * ranks + (input ? other : rank)];
  return total;
}

std::int64_t input_elements(const Call& call, std::int32_t ranks, std::int32_t rank) {
  switch (call.kind) {
    case reduce_scatter:
    case scatter: return blocks(call, ranks);
    case all_gather:
    case gather: return block(call, rank);
    case all_to_all: return pairs(call, ranks, rank, true);
    case barrier:
    case custom: return 0;
    default: return call.count;
  }
}

std::int64_t output_elements(const Call& call, std::int32_t ranks, std::int32_t rank) {
  switch (call.kind) {
    case reduce_scatter:
    case scatter: return block(call, rank);
    case all_gather:
    case gather: return blocks(call, ranks);
    case all_to_all: return pairs(call, ranks, rank, false);
    case barrier:
    case custom: return 0;
    default: return call.count;
  }
}

Status check_counts(const Call& call, std::int32_t ranks) {
  const std::size_t one_each = static_cast<std::size_t>(ranks);
  const std::size_t expected = collective::has_one_block(call.kind) ? one_each
                               : call.kind == all_to_all            ? one_each * one_each
                                                                    : 0;
  if (!call.counts.empty() && call.counts.size() != expected)
    return user_error(
        fmt::format("{} of {} ranks needs {} counts, found {}", collective::name(call.kind), ranks, expected,
                    call.counts.size()),
        expected == 0 ? "all its blocks have `count` elements" : "one per rank, or one per pair");
  // The elements of all ranks together: an upper bound of every buffer that is easy to check.
  const std::int64_t most = kMostBytes / static_cast<std::int64_t>(device::size_of(call.type));
  std::int64_t total = 0;
  const auto add = [&](std::int64_t count, std::int64_t times) -> Status {
    if (count < 0) return user_error(fmt::format("count is negative: {}", count));
    if (count > (most - total) / times)
      return user_error(fmt::format("count is too large: {} elements of {}", count, device::name(call.type)));
    total += count * times;
    return {};
  };
  if (call.counts.empty()) return add(call.count, collective::has_block_per_rank(call.kind) ? ranks : 1);
  for (const std::int64_t count : call.counts) WEFT_TRY_STATUS(add(count, 1));
  return {};
}

// In place, data received from a rank replaces the data sent to that rank.
Status check_swaps(const Call& call, std::int32_t ranks) {
  for (std::int32_t from = 0; from < ranks; ++from) {
    for (std::int32_t to = 0; to < from; ++to) {
      const std::int64_t there = call.counts[static_cast<std::size_t>(from) * ranks + to];
      const std::int64_t back = call.counts[static_cast<std::size_t>(to) * ranks + from];
      if (there != back)
        return user_error(
            fmt::format("an in-place all_to_all needs equal counts both ways: {} from rank {} to {}, {} back",
                        there, from, to, back),
            "use a separate output");
    }
  }
  return {};
}

// Whether the call uses its reduction operation.
bool computes(const Call& call) {
  return collective::reduces(call.kind) || call.kind == custom || call.purpose == Purpose::scan ||
         call.purpose == Purpose::exclusive_scan;
}

Status check_rank(std::string_view what, std::int32_t rank, std::int32_t ranks) {
  if (rank >= 0 && rank < ranks) return {};
  return user_error(fmt::format("{} is not in the group: {} of {} ranks", what, rank, ranks),
                    fmt::format("ranks are 0 to {}", ranks - 1));
}

}  // namespace

std::string_view name(Purpose purpose) {
  constexpr std::string_view kNames[] = {"", "scan", "exclusive_scan", "user operation", "per-rank counts"};
  return kNames[static_cast<std::size_t>(purpose)];
}

bool has_root(Kind kind) {
  return kind == broadcast || kind == reduce || kind == gather || kind == scatter || kind == send;
}

bool has_input(const Call& call, std::int32_t rank) {
  if (call.kind == barrier) return false;
  return (call.kind != broadcast && call.kind != scatter && call.kind != send) || rank == call.root;
}

bool has_output(const Call& call, std::int32_t rank) {
  if (call.kind == barrier) return false;
  if (call.kind == send) return rank == call.peer;
  return (call.kind != reduce && call.kind != gather) || rank == call.root;
}

std::int64_t input_bytes(const Call& call, std::int32_t ranks, std::int32_t rank) {
  if (!has_input(call, rank)) return 0;
  return input_elements(call, ranks, rank) * static_cast<std::int64_t>(device::size_of(call.type));
}

std::int64_t output_bytes(const Call& call, std::int32_t ranks, std::int32_t rank) {
  if (!has_output(call, rank)) return 0;
  return output_elements(call, ranks, rank) * static_cast<std::int64_t>(device::size_of(call.type));
}

std::int64_t message_bytes(const Call& call, std::int32_t ranks) {
  const std::int64_t element = static_cast<std::int64_t>(device::size_of(call.type));
  if (call.kind != all_to_all || call.counts.empty())
    return element * std::max(input_elements(call, ranks, 0), output_elements(call, ranks, 0));
  std::int64_t most = 0;
  for (std::int32_t rank = 0; rank < ranks; ++rank)
    most = std::max({most, input_elements(call, ranks, rank), output_elements(call, ranks, rank)});
  return element * most;
}

Status check(const Call& call, std::int32_t ranks, std::int32_t rank) {
  if (call.kind > custom || static_cast<std::size_t>(call.type) >= device::kElementTypes ||
      static_cast<std::size_t>(call.op) >= device::kReduceOps ||
      static_cast<std::size_t>(call.priority) >= kPriorities)
    return user_error("a call has an unknown kind, type, operation or priority");
  if (device::is_bitwise(call.op) && !device::is_whole(call.type) && computes(call))
    return user_error(
        fmt::format("{} needs an integer type, not {}", device::name(call.op), device::name(call.type)));
  if (call.timeout.count() < 0)
    return user_error(fmt::format("timeout is negative: {} ms", call.timeout.count()));
  WEFT_TRY_STATUS(check_counts(call, ranks));
  if (has_root(call.kind))
    WEFT_TRY_STATUS(check_rank(call.kind == send ? "sender" : "root", call.root, ranks));
  if (call.kind == send) {
    WEFT_TRY_STATUS(check_rank("receiver", call.peer, ranks));
    if (call.root == call.peer) return user_error(fmt::format("rank {} sends to itself", call.root));
  }
  // A rank that neither sends nor receives may have null buffers.
  if (call.kind == all_to_all && !call.counts.empty() && call.input != nullptr && call.input == call.output)
    WEFT_TRY_STATUS(check_swaps(call, ranks));
  const std::int64_t input = input_bytes(call, ranks, rank), output = output_bytes(call, ranks, rank);
  if (call.input == nullptr && input > 0)
    return user_error(fmt::format("input of {} is null", describe(call)));
  if (call.output == nullptr && output > 0)
    return user_error(fmt::format("output of {} is null", describe(call)));
  return check_overlap(call, rank, input, output);
}

Status check_overlap(const Call& call, std::int32_t rank, std::int64_t input, std::int64_t output) {
  const auto from = reinterpret_cast<std::uintptr_t>(call.input);
  const auto to = reinterpret_cast<std::uintptr_t>(call.output);
  if (input == 0 || output == 0 || from + static_cast<std::uintptr_t>(input) <= to ||
      to + static_cast<std::uintptr_t>(output) <= from || in_place(call, rank))
    return {};
  return user_error(fmt::format("input and output of {} overlap", describe(call)),
                    "use a separate output, or call it in place");
}

bool in_place(const Call& call, std::int32_t rank) {
  if (!has_input(call, rank) || !has_output(call, rank) || call.input == nullptr) return false;
  const std::int64_t element = static_cast<std::int64_t>(device::size_of(call.type));
  const std::int64_t before = collective::has_one_block(call.kind) ? blocks(call, rank) * element : 0;
  const auto* const input = static_cast<const std::byte*>(call.input);
  const auto* const output = static_cast<const std::byte*>(call.output);
  return collective::shared_buffer(call.kind) == collective::Buffer::output ? input == output + before
                                                                            : output == input + before;
}

std::string describe(const Call& call) {
  std::string text(collective::name(call.kind));
  if (call.purpose != Purpose::itself) text = fmt::format("{}: {}", name(call.purpose), text);
  if (call.kind != barrier) {
    if (computes(call)) text += fmt::format(" {}", device::name(call.op));
    text += fmt::format(" {} x ", device::name(call.type));
    if (call.counts.empty())
      text += fmt::format("{}", call.count);
    else
      text += fmt::format("[{}{}]",
                          fmt::join(call.counts.first(std::min(call.counts.size(), kShownCounts)), ", "),
                          call.counts.size() > kShownCounts ? ", ..." : "");
  }
  if (call.kind == broadcast || call.kind == scatter || call.kind == send)
    text += fmt::format(" from rank {}", call.root);
  if (call.kind == reduce || call.kind == gather) text += fmt::format(" to rank {}", call.root);
  if (call.kind == send) text += fmt::format(" to rank {}", call.peer);
  if (call.priority != Priority::normal) text += fmt::format(", {} priority", name(call.priority));
  return text;
}

std::uint64_t fingerprint(const Call& call) {
  const auto word = [](auto value) { return static_cast<std::uint64_t>(value); };
  Hasher hasher;
  hasher.number(
      word(call.purpose) << 40 | word(call.kind) << 32 | word(call.priority) << 24 |
      (call.kind == barrier ? 0 : word(call.type) << 16 | (computes(call) ? word(call.op) << 8 : 0)));
  if (has_root(call.kind))
    hasher.number(word(call.root) << 32 |
                  (call.kind == send ? word(static_cast<std::uint32_t>(call.peer)) : 0));
  if (call.kind != barrier && call.counts.empty()) hasher.number(word(call.count));
  if (!call.counts.empty()) hasher.number(call.counts.size());
  for (const std::int64_t count : call.counts) hasher.number(word(count));
  return std::max<std::uint64_t>(hasher.digest().low, 1);
}

}  // namespace weft::comm
