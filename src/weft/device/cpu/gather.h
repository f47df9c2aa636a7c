// weft/device/cpu/gather.h -- gathers rows of a table by position, and scatter-adds rows by
// position.
//
//   table      positions 2 0 7     gather: row 2, row 0, zeros       a position outside the table
//   row 0                                                            selects no row
//   row 1      scatter-add: y[2] += x[0], y[0] += x[1], x[2] is dropped
//   row 2
//
// A table that is a slice of another begins at its row `first`. Positions and table may share
// indices, for example one table per sequence of a batch: these loops advance in both.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace weft::device::cpu {

// Strided rows: a row number is split into parts, slowest first, each with its own step.
struct RowParts {
  struct Part {
    std::int64_t size = 1, step = 0;
  };
  std::vector<Part> parts;

  std::int64_t at(std::int64_t number) const {
    if (parts.size() == 1) return number * parts[0].step;
    std::int64_t offset = 0;
    for (std::size_t i = parts.size(); i-- > 0; number /= parts[i].size)
      offset += number % parts[i].size * parts[i].step;
    return offset;
  }
};

// y[p.., t..] = table[p.., row positions[p..], t..]
struct Gather {
  struct Loop {
    std::int64_t size = 1, table = 0;  // stride in the table
  };

  // Loops over the positions and inside a row, in the order of y; `row` has the strides of rows in
  // the table.
  Gather(std::vector<Loop> positions, std::span<const Loop> inside, std::int64_t rows, RowParts row);

  std::vector<Loop> positions;
  bool joined = false;  // some of the loops also advance in the table
  std::int64_t rows = 0, first = 0;
  RowParts row;
  std::size_t width = 4;  // bytes per element, whatever its type
  // A row, in the form strided_copy() expects.
  std::vector<std::int64_t> sizes, from, to;
  std::int64_t elements = 1;
  bool together = true;  // a row is contiguous
};

// Gathers the rows of positions [begin, end); their share of y is contiguous.
void gather(const Gather& gather, const std::int32_t* positions, std::int64_t begin, std::int64_t end,
            const std::byte* table, std::byte* y);
void gather(const Gather& gather, const std::int64_t* positions, std::int64_t begin, std::int64_t end,
            const std::byte* table, std::byte* y);

// y[n, ..] = the sum of x over the points whose position is n, in loop order.
struct ScatterAdd {
  struct Loop {
    std::int64_t size = 1, positions = 0, x = 0, y = 0;  // strides
  };
  std::vector<Loop> loops;  // slowest first
  std::int64_t run = 1;     // elements contiguous in both x and y, inside the loops
  std::int64_t rows = 0, first = 0;
  RowParts row;
  // Items are along y's slowest index: one of the loops, or the rows that positions select.
  std::int64_t cut = kRows;
  std::int64_t items = 1, item = 1;  // number of items, and their stride in y
  static constexpr std::int64_t kRows = -1;
};

// Clears and computes items [begin, end). The result does not depend on how items are grouped.
void scatter_add(const ScatterAdd& scatter, const std::int32_t* positions, std::int64_t begin,
                 std::int64_t end, const float* x, float* y);
void scatter_add(const ScatterAdd& scatter, const std::int64_t* positions, std::int64_t begin,
                 std::int64_t end, const float* x, float* y);

}  // namespace weft::device::cpu
