// weft/device/cuda/row_sums.h -- kernels that sum the addends of a loop over rows, in one order and
// in f64.
//
// Either each block wrote one addend per column, or each row wrote its own.
#pragma once
#include <span>
#include <string>
#include <string_view>

#include "weft/device/cuda/row_source.h"

namespace weft::device::cuda {

// Addends per element, if every row wrote one.
std::int64_t addends_of_rows(const program::RowLoop& loop, const program::Accumulator& accumulator);

// For many addends written by rows: `sum.name` sums segments of them, then `sum.join` sums the
// segments.
std::string sum_of_rows(const program::RowLoop& loop, const program::Accumulator& accumulator,
                        const SumSource& sum);

// All sums of the loop in one kernel, with one grid row per sum: kSumsAtOnce(addends of the first,
// its result, addends of the second, .., number of blocks that wrote addends; ignored if rows did).
inline constexpr std::string_view kSumsAtOnce = "weft_sums";
// Both dimensions of its blocks: this many elements, and this many threads that share an element's
// addends.
inline constexpr unsigned kSummedPlaces = 32;
std::string sums_at_once(const program::RowLoop& loop, std::span<const SumSource> sums, bool of_blocks);

}  // namespace weft::device::cuda
