// weft/collectives/check/contributions.h -- the final content of every cell as a sum of inputs.
//
// A value is a number. Below the number of cells, it is the initial content of that cell; from
// there on it is the sum of two values. Copies share their value, so a program has one new value
// per sum:
//
//   cell  0 1 2 3 4 5        5 of them; value 1: the first content of cell 1
//   sums  6 = 1 + 4          7 = 6 + 2, which is cells 1, 4 and 2 once each
//
// Nothing is hashed or sampled: an output is expanded until only initial contents are left.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "weft/collectives/check/cell_numbers.h"
#include "weft/collectives/check/check.h"
#include "weft/collectives/chunks/actions.h"

namespace weft::collective {

struct Values {
  struct Sum {
    std::int32_t left, right;
    std::int32_t action;  // the action that computed it
  };
  explicit Values(const Actions& actions) : cells(actions) {}

  CellNumbers cells;
  std::vector<Sum> sums;             // the values from cells.size() on
  std::vector<std::int32_t> held;    // the final value of each cell
  std::vector<std::int32_t> writer;  // the last action that wrote each cell; -1: none

  bool is_sum(std::int32_t value) const { return value >= cells.size(); }
  const Sum& sum(std::int32_t value) const { return sums[value - cells.size()]; }
};

Values execute(const Actions& actions, std::span<const std::int32_t> order);

// The cells of a rank's input.
struct InputCells {
  std::int32_t first = 0, count = 0;

  bool contains(std::int32_t cell) const { return cell >= first && cell < first + count; }
};
std::vector<InputCells> input_cells(const Actions& actions, const CellNumbers& cells);  // per rank

// The cell that is output[index] of `rank`.
std::int32_t output_cell(const Actions& actions, const CellNumbers& cells, std::int32_t rank,
                         std::int32_t index);

// Finds an output that differs from the collective's specification. For a custom collective without
// WANTs it finds an output computed from uninitialized memory.
std::optional<Finding> find_wrong_result(const Actions& actions, std::span<const std::int32_t> order);

// Finds an output that differs because input and output share memory.
// REQUIRES: both are the same program.
std::optional<Finding> find_alias_fault(const Actions& in_place, const Actions& out_of_place,
                                        std::span<const std::int32_t> order);

}  // namespace weft::collective
