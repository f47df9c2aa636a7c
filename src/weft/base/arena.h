// weft/base/arena.h -- an arena allocator for many small objects with one lifetime.
//
//   Arena arena;
//   const Node* node = arena.make<Node>(left, right);
//   std::span<const int> kept = arena.copy(std::span<const int>(scratch));
//
// Allocation bumps a pointer. Memory is freed with the arena only, and no destructors run, so only
// trivially destructible types are allowed. Moving an arena does not move its objects.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace weft {

class Arena {
 public:
  Arena() = default;
  Arena(Arena&& other) noexcept { *this = std::move(other); }
  Arena& operator=(Arena&& other) noexcept {
    blocks_ = std::move(other.blocks_);
    next_ = std::exchange(other.next_, nullptr);
    end_ = std::exchange(other.end_, nullptr);
    block_size_ = std::exchange(other.block_size_, kFirstBlock);
    return *this;
  }

  template <class T, class... Parts>
  T* make(Parts&&... parts) {
    static_assert(std::is_trivially_destructible_v<T>);
    return ::new (allocate(sizeof(T), alignof(T))) T{std::forward<Parts>(parts)...};
  }

  template <class T>
  std::span<const T> copy(std::span<const T> items) {
    static_assert(std::is_trivially_destructible_v<T>);
    if (items.empty()) return {};
    T* place = static_cast<T*>(allocate(items.size_bytes(), alignof(T)));
    std::uninitialized_copy(items.begin(), items.end(), place);
    return {place, items.size()};
  }

  std::string_view copy(std::string_view text) {
    const auto kept = copy(std::span<const char>(text));
    return {kept.data(), kept.size()};
  }

  // REQUIRES: `alignment` is a power of two, at most that of std::max_align_t
  void* allocate(std::size_t size, std::size_t alignment) {
    const std::size_t padding = (0 - reinterpret_cast<std::uintptr_t>(next_)) & (alignment - 1);
    if (static_cast<std::size_t>(end_ - next_) < size + padding) return allocate_block(size);
    std::byte* place = next_ + padding;
    next_ = place + size;
    return place;
  }

 private:
  static constexpr std::size_t kFirstBlock = 4 * 1024;

  struct Free {
    void operator()(std::byte* block) const { std::free(block); }
  };

  void* allocate_block(std::size_t size);

  std::vector<std::unique_ptr<std::byte, Free>> blocks_;
  std::byte* next_ = nullptr;
  std::byte* end_ = nullptr;
  std::size_t block_size_ = kFirstBlock;
};

}  // namespace weft
