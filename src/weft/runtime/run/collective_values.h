// weft/runtime/run/collective_values.h -- test inputs of a collective and its expected outputs.
//
//   exact    small integers, so that every type holds every result exactly and outputs can be compared
//   rough    numbers with random digits, so that a different order of additions changes the last bits
//
// A value depends only on the rank and the position in its input, so every rank can compute the
// inputs of all others.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "weft/base/result.h"
#include "weft/collectives/chunks/program.h"
#include "weft/communication/comm/call.h"

namespace weft::run {

enum class Values : bool { exact, rough };

// A collective in terms of elements instead of chunks, with counts from `call`.
struct ElementCollective {
  const collective::Program& program;
  const comm::Call& call;

  std::int32_t ranks() const { return program.collective.ranks; }
  // The number of elements in a rank's input or output.
  std::int64_t elements(collective::Buffer buffer, std::int32_t rank) const;
};

void fill_input(const ElementCollective& what, std::int32_t rank, Values values, std::byte* input);

// The required output of `rank` for exact inputs. `wanted` marks the elements to compare: a custom
// collective may not specify all of them.
struct Expected {
  std::vector<std::byte> bytes;
  std::vector<bool> wanted;  // empty: all
};
Result<Expected> expected_output(const ElementCollective& what, std::int32_t rank);

}  // namespace weft::run
