// weft/collectives/check/cell_numbers.h -- numbers every cell, one chunk of one rank's memory.
//
//   rank 0: input[0..3) output[0..3) scratch[0..1)   rank 1: input[0..3) ...
//           0 1 2       3 4 5        6                       7 8 9
//
// Data per cell is then kept in plain arrays.
#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

#include "weft/collectives/chunks/actions.h"

namespace weft::collective {

class CellNumbers {
 public:
  explicit CellNumbers(const Actions& actions) {
    first_.reserve(actions.memory.size() * 3 + 1);
    first_.push_back(0);
    for (const RankMemory& memory : actions.memory)
      for (const std::int32_t chunks : memory.chunks) first_.push_back(first_.back() + chunks);
  }

  std::int32_t size() const { return first_.back(); }

  std::int32_t first(std::int32_t rank, Buffer buffer) const {
    return first_[static_cast<std::size_t>(rank) * 3 + static_cast<std::size_t>(buffer)];
  }

  std::int32_t operator()(const Cell& cell) const { return first(cell.rank, cell.buffer) + cell.index; }

  Cell cell(std::int32_t number) const {
    const auto after = std::upper_bound(first_.begin(), first_.end(), number);
    const auto row = static_cast<std::int32_t>(after - first_.begin()) - 1;
    return {row / 3, static_cast<Buffer>(row % 3), false, number - first_[static_cast<std::size_t>(row)]};
  }

 private:
  std::vector<std::int32_t> first_;  // by rank and buffer, then the end
};

}  // namespace weft::collective
