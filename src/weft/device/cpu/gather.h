// weft/device/cpu/gather.h -- rows of a table by their positions, and rows added back to where they came
// from.
//
//   table      positions 2 0 7     gather: row 2, row 0, zeros       a position outside the table
//   row 0                                                            names no row
//   row 1      scatter-add: y[2] += x[0], y[0] += x[1], x[2] is dropped
//   row 2
//
// A table that is a slice of another begins at its row `first`. Positions and table may share indices, as
// every sequence of a batch has a table of its own: these are loops that move in both.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace weft::device::cpu {

// Where rows lie apart: a row's number in parts, the slowest first, each of which moves by its own step.
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
    std::int64_t size = 1, table = 0;  // how far it moves in the table
  };

  // Loops of the positions and of a row, in the order of y; `row` is how far a row moves in the table.
  Gather(std::vector<Loop> positions, std::span<const Loop> inside, std::int64_t rows, RowParts row);

  std::vector<Loop> positions;
  bool joined = false;  // some of them move in the table
  std::int64_t rows = 0, first = 0;
  RowParts row;
  std::size_t width = 4;  // bytes of an element: what they mean does not matter
  // A row, as strided_copy() takes it.
  std::vector<std::int64_t> sizes, from, to;
  std::int64_t elements = 1;
  bool together = true;  // it lies in one piece
};

// What positions [begin, end) pick: y's share of them lies together.
void gather(const Gather& gather, const std::int32_t* positions, std::int64_t begin, std::int64_t end,
            const std::byte* table, std::byte* y);
void gather(const Gather& gather, const std::int64_t* positions, std::int64_t begin, std::int64_t end,
            const std::byte* table, std::byte* y);

// y[n, ..] = the sum of x over the points whose position is n, in the order of the loops.
struct ScatterAdd {
  struct Loop {
    std::int64_t size = 1, positions = 0, x = 0, y = 0;  // how far it moves in each
  };
  std::vector<Loop> loops;  // slowest first
  std::int64_t run = 1;     // elements that lie together in x and in y, inside the loops
  std::int64_t rows = 0, first = 0;
  RowParts row;
  // What items are, the slowest index of y: one of the loops, or the rows that positions name.
  std::int64_t cut = kRows;
  std::int64_t items = 1, item = 1;  // how many, and how far one moves in y
  static constexpr std::int64_t kRows = -1;
};

// Items [begin, end), cleared first. Each adds what it would add when all were done at once.
void scatter_add(const ScatterAdd& scatter, const std::int32_t* positions, std::int64_t begin,
                 std::int64_t end, const float* x, float* y);
void scatter_add(const ScatterAdd& scatter, const std::int64_t* positions, std::int64_t begin,
                 std::int64_t end, const float* x, float* y);

}  // namespace weft::device::cpu
