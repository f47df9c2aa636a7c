// weft/device/cuda/row_sums.h -- kernels that add up what a loop over rows left of its sums, in one order and in f64.
//
// Blocks left an addend each for every place, or every row left its own.
#pragma once
#include <span>
#include <string>
#include <string_view>

#include "weft/device/cuda/row_source.h"

namespace weft::device::cuda {

// Addends of an element, where every row left one.
std::int64_t addends_of_rows(const program::RowLoop& loop, const program::Accumulator& accumulator);

// Where every row left addends, and many: `sum.name` for segments of them, then `sum.join` for those.
std::string sum_of_rows(const program::RowLoop& loop, const program::Accumulator& accumulator,
                        const SumSource& sum);

// All sums of the loop in one kernel, a row of the grid each: kSumsAtOnce(addends of the first, its result, those of the
// second, .., how many blocks left addends; of no meaning where rows did).
inline constexpr std::string_view kSumsAtOnce = "weft_sums";
// What one of its blocks has: threads along places, and as many times as many that share a place's addends.
inline constexpr unsigned kSummedPlaces = 32;
std::string sums_at_once(const program::RowLoop& loop, std::span<const SumSource> sums, bool of_blocks);

}  // namespace weft::device::cuda
