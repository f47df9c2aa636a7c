// weft/device/cpu/non_temporal.h -- copies and sums of stretches that are too long for the caches.
//
//   lines are taken in this order     page 0   0  1  16 17 ...     a core fetches ahead within a page, and
//                                     page 1   2  3  18 19 ...     several pages at once are several times
//                                     ...                          as many lines under way
//                                     page 7   14 15 30 31 ...
//
// A non-temporal store does not read its line from memory first, and leaves in the caches what is needed
// sooner. For stretches that are in a cache all this only costs: the caller has measured that they are not.
#pragma once
#include <cstddef>
#include <span>

#include "weft/device/cpu/reduction.h"

namespace weft::device::cpu {

// Whether processors of this kind have non-temporal stores; elsewhere the stores are the usual ones.
#if defined(__x86_64__)
inline constexpr bool kHasNonTemporal = true;
#else
inline constexpr bool kHasNonTemporal = false;
#endif

// What was written is seen by whoever sees anything that was written afterwards. No overlaps.
void copy_non_temporal(void* target, const void* source, std::size_t bytes);
// From memory to where it is read from soon.
void copy_into_caches(void* target, const void* source, std::size_t bytes);

// reduce() and, of averages, finish_average(). The result goes to all `targets`, and into `kept`, which stays
// in a cache, unless that is null. REQUIRES: at most kMostSources; targets may be among the sources.
void reduce_non_temporal(ElementType type, ReduceOp op, std::span<void* const> targets, void* kept,
                         std::span<const void* const> sources, std::size_t elements);
inline constexpr std::size_t kMostSources = 256;

}  // namespace weft::device::cpu
