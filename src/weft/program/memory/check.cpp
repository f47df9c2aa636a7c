#include "weft/program/memory/check.h"

#include <algorithm>
#include <map>
#include <numeric>

#include <fmt/format.h>

#include "weft/base/units.h"

namespace weft::memory {
namespace {

// An address range in use, keyed by its start.
struct Use {
  std::int64_t end;
  std::size_t buffer;
};

Error overlap(std::span<const Buffer> buffers, const Packing& packing, std::size_t a, std::size_t b) {
  const auto place = [&](std::size_t i) {
    return fmt::format("{} at [{}, {})", i, print_exact(packing.offsets[i]),
                       print_exact(packing.offsets[i] + buffers[i].size));
  };
  return user_error(fmt::format("two buffers alive at step {} overlap: {} and {}",
                                std::max(buffers[a].born, buffers[b].born), place(std::min(a, b)),
                                place(std::max(a, b))));
}

}  // namespace

Status check(std::span<const Buffer> buffers, const Packing& packing, const PackOptions& options) {
  if (options.alignment < 1)
    return user_error(fmt::format("the alignment must be at least 1, found {}", options.alignment));
  if (packing.offsets.size() != buffers.size())
    return user_error(fmt::format("a packing needs one offset per buffer: {} offsets, {} buffers",
                                  packing.offsets.size(), buffers.size()));
  std::int64_t peak = 0;
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    const std::int64_t offset = packing.offsets[i];
    if (offset < 0 || offset % options.alignment != 0)
      return user_error(fmt::format("the offset of buffer {} must be a multiple of {}, found {}", i,
                                    options.alignment, offset));
    if (buffers[i].size <= 0 || buffers[i].dies <= buffers[i].born) continue;
    const std::int64_t over = buffers[i].size % options.alignment;
    const std::int64_t padding = over == 0 ? 0 : options.alignment - over;
    // Subtracts from the capacity instead of adding to the offset, so that invalid values cannot
    // overflow.
    if (offset > options.capacity - buffers[i].size - padding)
      return user_error(fmt::format("buffer {} ends above the capacity: {} bytes at {}, capacity {}", i,
                                    print_exact(buffers[i].size), print_exact(offset),
                                    print_exact(options.capacity)));
    peak = std::max(peak, offset + buffers[i].size + padding);
  }
  if (packing.peak != peak)
    return user_error(fmt::format("the peak must be where the highest buffer ends: {}, found {}",
                                  print_exact(peak), print_exact(packing.peak)));

  std::vector<std::size_t> births(buffers.size());
  std::iota(births.begin(), births.end(), std::size_t{0});
  std::erase_if(births,
                [&](std::size_t i) { return buffers[i].size <= 0 || buffers[i].dies <= buffers[i].born; });
  std::vector<std::size_t> deaths = births;
  std::ranges::stable_sort(births, {}, [&](std::size_t i) { return buffers[i].born; });
  std::ranges::stable_sort(deaths, {}, [&](std::size_t i) { return buffers[i].dies; });

  std::map<std::int64_t, Use> in_use;
  auto death = deaths.begin();
  for (const std::size_t i : births) {
    for (; buffers[*death].dies <= buffers[i].born; ++death) in_use.erase(packing.offsets[*death]);
    const std::int64_t offset = packing.offsets[i], end = offset + buffers[i].size;
    const auto above = in_use.lower_bound(offset);
    if (above != in_use.end() && above->first < end)
      return overlap(buffers, packing, i, above->second.buffer);
    if (above != in_use.begin() && std::prev(above)->second.end > offset)
      return overlap(buffers, packing, i, std::prev(above)->second.buffer);
    in_use.emplace_hint(above, offset, Use{end, i});
  }
  return {};
}

}  // namespace weft::memory
