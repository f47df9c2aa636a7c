#include "weft/program/memory/pack.h"

#include <algorithm>
#include <functional>
#include <utility>

#include <fmt/format.h>

#include "weft/base/units.h"
#include "weft/program/memory/boxes.h"
#include "weft/program/memory/first_fit.h"
#include "weft/program/memory/peak_step.h"
#include "weft/program/memory/preference.h"
#include "weft/program/memory/search.h"
#include "weft/program/memory/skyline.h"
#include "weft/program/memory/waiting_boxes.h"

namespace weft::memory {
namespace {

// Larger groups use only the n log n packers.
constexpr std::size_t kMostCollisions = 1'000'000;  // 16 MB, and a few ms per order
constexpr std::size_t kMostSearched = 1'000;        // boxes: the search recurses this deep

Status accept(std::span<const Buffer> buffers, const PackOptions& options) {
  if (options.alignment < 1)
    return user_error(fmt::format("the alignment must be at least 1, found {}", options.alignment));
  std::int64_t total = 0;
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    const Buffer& buffer = buffers[i];
    if (buffer.size < 0)
      return user_error(fmt::format("the size of buffer {} must not be negative, found {}", i, buffer.size));
    if (buffer.dies < buffer.born)
      return user_error(fmt::format("buffer {} must not die before it is born: born at {}, dies at {}", i,
                                    buffer.born, buffer.dies));
    if (__builtin_add_overflow(total, buffer.size, &total) ||
        __builtin_add_overflow(total, options.alignment - 1, &total))
      return user_error("the sizes of all buffers must add up to less than 2^63 bytes");
  }
  return {};
}

// A group with its lowest packing so far.
struct Packed {
  const Piece* piece;
  std::vector<std::int64_t> offsets;  // above the group's base
  std::int64_t edge = kUnlimited;     // its highest top, above the bottom of all memory

  void improve(std::vector<std::int64_t> found) {
    const std::int64_t found_edge = piece->base + highest_edge(*piece, found);
    if (found_edge < edge) edge = found_edge, offsets = std::move(found);
  }
};

// The best result of the heuristics, or the first that stays within `goal`.
Packed pack_quickly(const Piece& piece, std::int64_t goal) {
  Packed packed{&piece, {}};
  WaitingBoxes waiting(piece.boxes);
  for (const Preference preference : kPreferences) {
    packed.improve(fill_valleys(piece, waiting, ranked(piece.boxes, preference)));
    if (packed.edge <= goal) return packed;
  }
  const auto collisions = Collisions::among(piece, kMostCollisions);
  if (!collisions) return packed;
  for (const Preference preference : kPreferences) {
    packed.improve(first_fit(piece, *collisions, ranked(piece.boxes, preference)));
    if (packed.edge <= goal) return packed;
  }
  return packed;
}

bool searchable(const Packed& packed, std::int64_t effort) {
  return effort > 0 && packed.piece->boxes.size() <= kMostSearched;
}

// Searches for a packing within `edge` and keeps it.
Verdict search_within(Packed& packed, std::int64_t edge, std::int64_t share, std::int64_t& effort) {
  Outcome outcome = search(*packed.piece, edge - packed.piece->base, std::min(share, effort));
  effort -= outcome.effort;
  if (outcome.verdict == Verdict::found) packed.improve(std::move(outcome.offsets));
  return outcome.verdict;
}

// Searches for the lowest packing not below `goal`. The goal is tried first, since it is often
// reached. Then bisection continues, each time with a share of the remaining effort.
void search_lowest(Packed& packed, std::int64_t goal, std::int64_t& effort) {
  std::int64_t aim = goal, low = goal;
  while (low < packed.edge && searchable(packed, effort)) {
    if (search_within(packed, aim, (effort + 3) / 4, effort) != Verdict::found) low = aim + 1;
    aim = low + (packed.edge - 1 - low) / 2;
  }
}

Error too_crowded(std::span<const Buffer> buffers, const PackOptions& options, const PeakStep& crowd) {
  return environment_error(fmt::format("buffers alive at once exceed the capacity of {} bytes: {}",
                                       print_exact(options.capacity), describe(crowd, buffers)),
                           "reduce the largest buffers or free them earlier");
}

Error no_packing(std::span<const Buffer> buffers, const PackOptions& options, const PeakStep& crowd,
                 std::int64_t lowest_found, bool proved) {
  return environment_error(
      fmt::format("{} the capacity of {} bytes: the lowest found needs {} bytes; most bytes are live at {}",
                  proved ? "no packing fits" : "found no packing that fits", print_exact(options.capacity),
                  print_exact(lowest_found), describe(crowd, buffers)),
      proved ? "raise the capacity"
             : fmt::format("raise the effort, now {}, or the capacity", options.effort));
}

}  // namespace

Result<Packing> pack(std::span<const Buffer> buffers, const PackOptions& options) {
  WEFT_TRY_STATUS(accept(buffers, options));
  const PeakStep crowd = find_peak_step(buffers, options.alignment);
  if (crowd.bytes > options.capacity) return too_crowded(buffers, options, crowd);

  Pieces cut = cut_into_pieces(buffers, options.alignment);
  const bool limited = options.capacity != kUnlimited;
  std::int64_t goal = (limited ? options.capacity : crowd.bytes) / cut.unit;
  std::vector<Packed> all;
  for (const Piece& piece : cut.pieces) all.push_back(pack_quickly(piece, goal));

  // The group with the highest peak goes first: once its peak is final, the others need not be
  // lower.
  std::ranges::stable_sort(all, std::greater<>(), &Packed::edge);
  std::int64_t effort = options.effort;
  bool proved = false;
  for (Packed& packed : all) {
    if (packed.edge <= goal) break;
    if (limited) {
      if (searchable(packed, effort))
        proved = search_within(packed, goal, effort, effort) == Verdict::impossible;
      if (packed.edge > goal) break;
    } else {
      search_lowest(packed, goal, effort);
      goal = std::max(goal, packed.edge);
    }
  }

  for (const Packed& packed : all)
    for (std::size_t i = 0; i < packed.offsets.size(); ++i)
      cut.offsets[packed.piece->boxes[i].buffer] = packed.piece->base + packed.offsets[i];
  Packing packing{std::move(cut.offsets)};
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    packing.offsets[i] *= cut.unit;
    if (buffers[i].takes_place())
      packing.peak = std::max(packing.peak, packing.offsets[i] + buffers[i].padded_size(options.alignment));
  }
  if (packing.peak > options.capacity) return no_packing(buffers, options, crowd, packing.peak, proved);
  return packing;
}

}  // namespace weft::memory
