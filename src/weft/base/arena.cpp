#include "weft/base/arena.h"

#include <algorithm>

#ifdef __linux__
#include <sys/mman.h>
#endif

namespace weft {
namespace {

constexpr std::size_t kHugePage = 2 * 1024 * 1024;
constexpr std::size_t kLargestBlock = 2 * kHugePage;

constexpr std::size_t round_up(std::size_t size, std::size_t step) { return (size + step - 1) / step * step; }

}  // namespace

// Block sizes double: a small arena stays small, and a large one needs few allocations.
void* Arena::allocate_block(std::size_t size) {
  const bool is_large = std::max(block_size_, size) >= kHugePage;
  const std::size_t alignment = is_large ? kHugePage : alignof(std::max_align_t);
  const std::size_t block = round_up(std::max(block_size_, size), alignment);
  std::unique_ptr<std::byte, Free> memory(static_cast<std::byte*>(std::aligned_alloc(alignment, block)));
  if (!memory) throw std::bad_alloc();
  std::byte* const place = memory.get();
  blocks_.push_back(std::move(memory));
#ifdef __linux__
  // Without huge pages, page faults on first use took a quarter of the time of a large parse.
  if (is_large) madvise(place, block, MADV_HUGEPAGE);
#endif
  next_ = place + size;
  end_ = place + block;
  block_size_ = std::min(block_size_ * 2, kLargestBlock);
  return place;
}

}  // namespace weft
