#include "weft/device/cpu/non_temporal.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>

#include "weft/base/check.h"

#if defined(__x86_64__)
#include <emmintrin.h>
#endif

namespace weft::device::cpu {
namespace {

constexpr std::size_t kLine = 64, kPage = 4096;
// 4 pages do not hide the memory latency and 16 are no better than 8: measured on Sapphire Rapids.
constexpr std::size_t kPages = 8;
constexpr std::size_t kTwoLines = 2 * kLine;
// Block size of a sum: the smallest that keeps wide vectors busy.
constexpr std::size_t kSumBytes = 4 * kLine;

// Calls visit(offset, bytes) for all of [0, bytes), in blocks of `each` except for the last.
template <class Visit>
void visit_pages(std::size_t bytes, std::size_t each, Visit visit) {
  std::size_t at = 0;
  for (; at + kPages * kPage <= bytes; at += kPages * kPage)
    for (std::size_t line = 0; line < kPage; line += each)
      for (std::size_t page = 0; page < kPages; ++page) visit(at + page * kPage + line, each);
  for (; at < bytes; at += each) visit(at, std::min(each, bytes - at));
}

std::size_t bytes_to_next_line(const void* address) {
  return (kLine - reinterpret_cast<std::uintptr_t>(address) % kLine) % kLine;
}

// REQUIRES: `to` is aligned to a cache line.
inline void put(std::byte* to, const std::byte* from, std::size_t bytes) {
#if defined(__x86_64__)
  std::size_t at = 0;
  for (; at + kLine <= bytes; at += kLine) {
    const auto* const source = reinterpret_cast<const __m128i*>(from + at);
    auto* const target = reinterpret_cast<__m128i*>(to + at);
    const __m128i a = _mm_loadu_si128(source), b = _mm_loadu_si128(source + 1);
    const __m128i c = _mm_loadu_si128(source + 2), d = _mm_loadu_si128(source + 3);
    _mm_stream_si128(target, a);
    _mm_stream_si128(target + 1, b);
    _mm_stream_si128(target + 2, c);
    _mm_stream_si128(target + 3, d);
  }
  if (at != bytes) std::memcpy(to + at, from + at, bytes - at);
#else
  std::memcpy(to, from, bytes);
#endif
}

// Non-temporal stores are not otherwise ordered before a flag that is set after them.
void order_stores() {
#if defined(__x86_64__)
  _mm_sfence();
#endif
}

void reduce_all(ElementType type, ReduceOp op, void* target, std::span<const void* const> sources,
                std::size_t elements) {
  reduce(type, op, target, sources, elements);
  if (op == ReduceOp::avg) finish_average(type, target, elements, static_cast<std::int64_t>(sources.size()));
}

}  // namespace

void copy_non_temporal(void* target, const void* source, std::size_t bytes) {
  auto* to = static_cast<std::byte*>(target);
  const auto* from = static_cast<const std::byte*>(source);
  const std::size_t head = std::min(bytes_to_next_line(to), bytes);
  if (head != 0) std::memcpy(to, from, head);
  to += head, from += head;
  visit_pages(bytes - head, kTwoLines,
              [=](std::size_t at, std::size_t now) { put(to + at, from + at, now); });
  order_stores();
}

void copy_into_caches(void* target, const void* source, std::size_t bytes) {
  auto* const to = static_cast<std::byte*>(target);
  const auto* const from = static_cast<const std::byte*>(source);
  visit_pages(bytes, kTwoLines, [=](std::size_t at, std::size_t now) {
    now == kTwoLines ? std::memcpy(to + at, from + at, kTwoLines) : std::memcpy(to + at, from + at, now);
  });
}

void reduce_non_temporal(ElementType type, ReduceOp op, std::span<void* const> targets, void* kept,
                         std::span<const void* const> sources, std::size_t elements) {
  WEFT_CHECK(!sources.empty() && sources.size() <= kMostSources);
  const std::size_t element = size_of(type), bytes = elements * element;
  // Blocks are aligned to the cache lines of the first target.
  std::size_t head = targets.empty() ? 0 : std::min(bytes_to_next_line(targets[0]), bytes);
  if (head % element != 0) head = 0;
  alignas(kLine) std::array<std::byte, kSumBytes> room;
  std::array<const void*, kMostSources> terms;
  const auto sum = [&](std::size_t at, std::size_t now) {
    for (std::size_t term = 0; term < sources.size(); ++term)
      terms[term] = static_cast<const std::byte*>(sources[term]) + at;
    std::byte* const result = kept != nullptr ? static_cast<std::byte*>(kept) + at : room.data();
    reduce_all(type, op, result, std::span(terms).first(sources.size()), now / element);
    for (void* const target : targets) {
      std::byte* const to = static_cast<std::byte*>(target) + at;
      if (bytes_to_next_line(to) == 0)
        put(to, result, now);
      else
        std::memcpy(to, result, now);
    }
  };
  if (head != 0) sum(0, head);
  visit_pages(bytes - head, kSumBytes, [&](std::size_t at, std::size_t now) { sum(head + at, now); });
  order_stores();
}

}  // namespace weft::device::cpu
