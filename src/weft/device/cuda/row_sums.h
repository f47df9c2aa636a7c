// weft/device/cuda/row_sums.h -- kernels that add up what a loop over rows left of its sums, in one order and in f64.
#pragma once
#include <span>
#include <string>

#include "weft/device/cuda/row_source.h"

namespace weft::device::cuda {

// Where every row left addends: `sum.name` for segments of them, then `sum.join` for those. Says how many there are of
// an element.
std::string sums_of_rows(const program::RowLoop& loop, const program::Accumulator& accumulator,
                         SumSource& sum);

// Where every block left an addend for each place: all sums of the loop in one kernel, kSumsOfBlocks(addends of the first,
// its result, those of the second, .., how many blocks left addends), a row of the grid each.
inline constexpr std::string_view kSumsOfBlocks = "weft_sums";
// What one of its blocks has: threads along places, and as many times as many that share a place's addends.
inline constexpr unsigned kSummedPlaces = 32;
std::string sums_of_blocks(const program::RowLoop& loop, std::span<const SumSource> sums);

}  // namespace weft::device::cuda
