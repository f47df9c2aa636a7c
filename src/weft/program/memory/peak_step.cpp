#include "weft/program/memory/peak_step.h"

#include <algorithm>
#include <functional>
#include <utility>

#include <fmt/format.h>

#include "weft/base/units.h"

namespace weft::memory {

PeakStep find_peak_step(std::span<const Buffer> buffers, std::int64_t alignment) {
  std::vector<std::pair<std::int64_t, std::int64_t>> changes;  // step, and bytes allocated or freed there
  for (const Buffer& buffer : buffers) {
    if (!buffer.takes_place()) continue;
    const std::int64_t size = buffer.padded_size(alignment);
    changes.emplace_back(buffer.born, size);
    changes.emplace_back(buffer.dies, -size);
  }
  std::ranges::sort(changes);  // frees at a step precede allocations
  PeakStep crowd;
  std::int64_t alive = 0;
  for (const auto& [step, bytes] : changes) {
    alive += bytes;
    if (alive > crowd.bytes) crowd.step = step, crowd.bytes = alive;
  }
  for (std::uint32_t i = 0; i < buffers.size(); ++i)
    if (buffers[i].takes_place() && buffers[i].born <= crowd.step && crowd.step < buffers[i].dies)
      crowd.buffers.push_back(i);
  std::ranges::stable_sort(crowd.buffers, std::greater<>(), [&](std::uint32_t i) { return buffers[i].size; });
  return crowd;
}

std::string describe(const PeakStep& crowd, std::span<const Buffer> buffers) {
  constexpr std::size_t kNamed = 3;
  std::string text = fmt::format("step {} with {} bytes in {} buffer{}", crowd.step, print_exact(crowd.bytes),
                                 crowd.buffers.size(), crowd.buffers.size() == 1 ? "" : "s");
  const std::size_t named = std::min(kNamed, crowd.buffers.size());
  for (std::size_t i = 0; i < named; ++i) {
    const std::uint32_t buffer = crowd.buffers[i];
    text += i == 0 ? ", the largest " : i + 1 == named ? " and " : ", ";
    text += fmt::format("{} ({} bytes)", buffer, print_exact(buffers[buffer].size));
  }
  return text;
}

std::int64_t lower_bound(std::span<const Buffer> buffers, std::int64_t alignment) {
  return find_peak_step(buffers, alignment).bytes;
}

}  // namespace weft::memory
