#include "weft/communication/comm/heap.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <iterator>

#include <fmt/format.h>

#include "weft/base/machine.h"
#include "weft/base/units.h"

namespace weft::comm {
namespace {

// Every rank maps the heaps of all ranks, and no heap can exceed the machine's memory. Together
// they reserve twice that much address space per process, so that each rank may use twice its
// share. If address space is limited (ulimit -v), they reserve a quarter of the limit.
std::size_t addresses_for_all() {
  const std::size_t wanted = 2 * static_cast<std::size_t>(total_memory());
  rlimit limit{};
  if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return wanted;
  return std::min(wanted, static_cast<std::size_t>(limit.rlim_cur) / 4);
}

// Large allocations are aligned to huge pages.
constexpr std::size_t kHuge = 2 << 20;
std::size_t alignment_of(std::size_t bytes) {
  return bytes >= kHuge ? kHuge : static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
}

std::size_t round_up(std::size_t value, std::size_t unit) { return (value + unit - 1) / unit * unit; }

}  // namespace

Result<Heap> Heap::create(std::int32_t ranks) {
  constexpr std::size_t kLeast = 4 << 20;
  const std::size_t share =
      round_up(addresses_for_all() / static_cast<std::size_t>(std::max(ranks, 1)), kHuge);
  for (std::size_t bytes = std::min(static_cast<std::size_t>(total_memory()), share);; bytes /= 4) {
    Result<transport::Segment> segment = transport::Segment::create(bytes, transport::Backing::sparse);
    if (segment.ok()) {
      Heap heap;
      heap.segment_ = std::move(segment).value();
      return heap;
    }
    // Address space may be smaller than memory (ulimit -v): try less.
    if (bytes / 4 < kLeast) return std::move(segment).error();
  }
}

Result<void*> Heap::allocate(std::size_t bytes) {
  const std::size_t size =
      round_up(std::max<std::size_t>(bytes, 1), static_cast<std::size_t>(sysconf(_SC_PAGESIZE)));
  const std::size_t alignment = alignment_of(size);
  std::size_t offset = 0;
  auto next = taken_.begin();
  for (; next != taken_.end() && next->first < offset + size; ++next) {
    offset = round_up(next->first + next->second, alignment);
  }
  if (size < bytes || offset > segment_.size() || size > segment_.size() - offset) {
    return environment_error(
        fmt::format("not enough space for {} of shared memory", print_bytes(static_cast<double>(bytes))));
  }
  // Allocate the pages now: later, a write on a full machine would raise SIGBUS.
  if (fallocate(segment_.descriptor(), 0, static_cast<off_t>(offset), static_cast<off_t>(size)) != 0) {
    return environment_error(fmt::format("cannot allocate {} of shared memory: {}",
                                         print_bytes(static_cast<double>(bytes)), std::strerror(errno)));
  }
  taken_.emplace_hint(next, offset, size);
  return static_cast<void*>(segment_.data() + offset);
}

bool Heap::free(void* memory) {
  if (!holds(memory)) return false;
  const auto found = taken_.find(static_cast<std::size_t>(static_cast<std::byte*>(memory) - segment_.data()));
  if (found == taken_.end()) return false;
  // If this fails, the pages stay allocated until the heap is destroyed.
  (void)fallocate(segment_.descriptor(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                  static_cast<off_t>(found->first), static_cast<off_t>(found->second));
  taken_.erase(found);
  return true;
}

bool Heap::holds(const void* memory) const {
  const std::byte* place = static_cast<const std::byte*>(memory);
  return std::less_equal<>()(segment_.data(), place) &&
         std::less<>()(place, segment_.data() + segment_.size());
}

}  // namespace weft::comm
