// weft/device/cpu/non_temporal.h -- copies and sums of buffers too large for the caches.
//
//   cache lines in this order         page 0   0  1  16 17 ...     a core prefetches within a page; several
//                                     page 1   2  3  18 19 ...     pages at once keep several times as many
//                                     ...                          cache lines in flight
//                                     page 7   14 15 30 31 ...
//
// A non-temporal store does not read its cache line first and does not evict data that is needed
// sooner. It only costs time for buffers that are cached: callers use it where they have measured
// that they are not.
#pragma once
#include <cstddef>
#include <span>

#include "weft/device/cpu/reduction.h"

namespace weft::device::cpu {

// Whether this architecture has non-temporal stores; elsewhere plain stores are used.
#if defined(__x86_64__)
inline constexpr bool kHasNonTemporal = true;
#else
inline constexpr bool kHasNonTemporal = false;
#endif

// The copy is visible to any thread that sees a later store. No overlap.
void copy_non_temporal(void* target, const void* source, std::size_t bytes);
// Copies from memory into the caches, for data that is read soon.
void copy_into_caches(void* target, const void* source, std::size_t bytes);

// reduce() and, for averages, finish_average(). Writes the result to all `targets`, and to `kept`,
// which stays in a cache, unless that is null. REQUIRES: at most kMostSources sources; targets may
// be among them.
void reduce_non_temporal(ElementType type, ReduceOp op, std::span<void* const> targets, void* kept,
                         std::span<const void* const> sources, std::size_t elements);
inline constexpr std::size_t kMostSources = 256;

}  // namespace weft::device::cpu
