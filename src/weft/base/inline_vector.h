// weft/base/inline_vector.h -- a vector with inline storage for its first N elements.
//
// Most lists in a plan are short, such as the indices of a tensor or the operands of a node. Up to
// N elements need no allocation. Trivial types only.
#pragma once
#include <algorithm>
#include <cstddef>
#include <initializer_list>
#include <memory>
#include <span>
#include <type_traits>

namespace weft {

template <class T, std::size_t N>
class InlineVector {
  static_assert(std::is_trivially_copyable_v<T> && std::is_trivially_destructible_v<T>);

 public:
  using value_type = T;
  using iterator = T*;
  using const_iterator = const T*;

  InlineVector() = default;
  InlineVector(std::initializer_list<T> items) { assign(items.begin(), items.end()); }
  explicit InlineVector(std::span<const T> items) { assign(items.begin(), items.end()); }
  InlineVector(const InlineVector& other) { assign(other.begin(), other.end()); }
  InlineVector(InlineVector&& other) noexcept { take(other); }
  InlineVector& operator=(const InlineVector& other) {
    if (this != &other) assign(other.begin(), other.end());
    return *this;
  }
  InlineVector& operator=(InlineVector&& other) noexcept {
    if (this != &other) take(other);
    return *this;
  }

  void push_back(const T& item) {
    const T copy = item;  // `item` may be stored in the memory that reserve() frees
    if (size_ == capacity_) reserve(capacity_ * 2);
    data()[size_++] = copy;
  }
  template <class Iterator>
  void assign(Iterator first, Iterator last) {
    clear();
    for (; first != last; ++first) push_back(*first);
  }
  void clear() { size_ = 0; }
  void reserve(std::size_t capacity) {
    if (capacity <= capacity_) return;
    auto larger = std::make_unique_for_overwrite<T[]>(capacity);
    std::copy(begin(), end(), larger.get());
    heap_ = std::move(larger);
    capacity_ = capacity;
  }

  T* data() { return heap_ ? heap_.get() : reinterpret_cast<T*>(inside_); }
  const T* data() const { return heap_ ? heap_.get() : reinterpret_cast<const T*>(inside_); }
  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  T* begin() { return data(); }
  T* end() { return data() + size_; }
  const T* begin() const { return data(); }
  const T* end() const { return data() + size_; }
  T& operator[](std::size_t i) { return data()[i]; }
  const T& operator[](std::size_t i) const { return data()[i]; }
  T& front() { return data()[0]; }
  const T& front() const { return data()[0]; }
  T& back() { return data()[size_ - 1]; }
  const T& back() const { return data()[size_ - 1]; }

 private:
  void take(InlineVector& other) {
    if (other.heap_) {
      heap_ = std::move(other.heap_);
      capacity_ = other.capacity_;
      size_ = other.size_;
      other.capacity_ = N;
    } else {
      assign(other.begin(), other.end());
    }
    other.size_ = 0;
  }

  alignas(T) std::byte inside_[N * sizeof(T)];  // NOLINT: elements are written before they are read
  std::unique_ptr<T[]> heap_;
  std::size_t size_ = 0, capacity_ = N;
};

}  // namespace weft
