// weft/base/pool.h -- append-only storage with stable addresses.
//
// Returned spans stay valid while the pool grows, so code may read one node's lists while it adds
// the next node. Trivial types only: the pool never runs destructors.
#pragma once
#include <algorithm>
#include <cstddef>
#include <memory>
#include <span>
#include <type_traits>
#include <vector>

namespace weft {

template <class T>
class Pool {
  static_assert(std::is_trivially_copyable_v<T> && std::is_trivially_destructible_v<T>);

 public:
  // Copies `items` into the pool and returns the copy.
  std::span<T> keep(std::span<const T> items) {
    if (items.empty()) return {};
    if (used_ + items.size() > size_) {
      size_ = std::max(items.size(), std::min<std::size_t>(kLargest, std::max<std::size_t>(64, size_ * 2)));
      blocks_.push_back(std::make_unique_for_overwrite<T[]>(size_));
      used_ = 0;
    }
    T* place = blocks_.back().get() + used_;
    std::copy(items.begin(), items.end(), place);
    used_ += items.size();
    return {place, items.size()};
  }

 private:
  static constexpr std::size_t kLargest = 16384;
  std::vector<std::unique_ptr<T[]>> blocks_;
  std::size_t used_ = 0, size_ = 0;
};

}  // namespace weft
