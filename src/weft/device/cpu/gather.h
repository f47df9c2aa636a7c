// weft/device/cpu/gather.h -- rows of a table by their positions, and rows added back to where they came
// from.
//
//   table      positions 2 0 7     gather: row 2, row 0, zeros       a position outside the table
//   row 0                                                            names no row
//   row 1      scatter_add: y[2] += x[0], y[0] += x[1], x[2] is dropped
//   row 2
//
// Rows are contiguous. A table that is a slice of another begins at its row `first`. Where positions and
// table share an index, each of its points is a call.
#pragma once
#include <cstdint>

namespace weft::device::cpu {

// y[i] = table[positions[i]] for i in [begin, end); y's row i is at y + i * width.
void gather_rows(const std::int32_t* positions, std::int64_t begin, std::int64_t end, const float* table,
                 std::int64_t table_rows, std::int64_t width, float* y, std::int64_t first = 0);

// y[n] = sum of x[i] over the i < count with positions[i] = n, in the order of i, for columns [begin, end)
// of the rows alone: threads part the columns, so that no two add to one element. Clears them first.
void scatter_add_rows(const std::int32_t* positions, std::int64_t count, const float* x,
                      std::int64_t table_rows, std::int64_t width, std::int64_t begin, std::int64_t end,
                      float* y, std::int64_t first = 0);

}  // namespace weft::device::cpu
