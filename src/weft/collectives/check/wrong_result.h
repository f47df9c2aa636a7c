// weft/collectives/check/wrong_result.h -- explains a wrong output and locates the faulty step.
//
//   gpu 5 tb 0 step 7: overwrites input[6] before any rank has read it, so output[6] of gpu 0 lacks it
//   gpu 0 tb 1 step 2: adds input[1] of gpu 1 to output[1] twice
//   gpu 6 tb 7 step 0: reads output[7], which was never written
//   gpu 1 tb 9 step 1: output[7] holds input[2] of gpu 1, expected input[3] of gpu 1
//
// The location is the step that introduced the fault, if known, or else the last step that wrote
// the output.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "weft/collectives/check/contributions.h"

namespace weft::collective {

// One term of a value: a chunk of a rank's input, or uninitialized memory.
struct Part {
  Contribution input;  // valid if is_input
  Cell cell;           // the cell that held it initially
  bool is_input = false;
  std::uint64_t times = 0;  // saturates

  // Equal contributions, whichever cell held them initially.
  friend bool operator==(const Part& a, const Part& b) {
    return a.is_input == b.is_input && a.times == b.times && (!a.is_input || a.input == b.input);
  }
};

// The terms of a value, sorted, inputs first. `inputs`: from input_cells().
std::vector<Part> expand_value(const Values& values, std::span<const InputCells> inputs, std::int32_t value);

// REQUIRES: output[index] of `rank` is wrong.
Finding explain_wrong_result(const Actions& actions, std::span<const std::int32_t> order,
                             const Values& values, std::int32_t rank, std::int32_t index);

// REQUIRES: output[index] of `rank` differs from its value out of place.
Finding alias_fault(const Actions& in_place, const Values& shared, std::int32_t rank, std::int32_t index,
                    std::span<const Part> here, std::span<const Part> there);

}  // namespace weft::collective
