// weft/runtime/run/collective_values.h -- what ranks put into a collective that is tried out, and what comes out.
//
//   exact    whole numbers so small that every type holds every result exactly: right or wrong is no question
//   rough    numbers with all their digits, so that another order of additions shows in the last bit
//
// A value depends on its rank and its place in the rank's input, nothing else: every rank can tell what all
// others had.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "weft/base/result.h"
#include "weft/collectives/chunks/program.h"
#include "weft/communication/comm/call.h"

namespace weft::run {

enum class Values : bool { exact, rough };

// A collective of one kind, with elements for chunks: `call` says how many.
struct ElementCollective {
  const collective::Program& program;
  const comm::Call& call;

  std::int32_t ranks() const { return program.collective.ranks; }
  // Of a rank's input or output.
  std::int64_t elements(collective::Buffer buffer, std::int32_t rank) const;
};

void fill_input(const ElementCollective& what, std::int32_t rank, Values values, std::byte* input);

// What the output of `rank` must be where the inputs were exact. `wanted` tells which elements matter: a
// custom collective may promise nothing about some.
struct Expected {
  std::vector<std::byte> bytes;
  std::vector<bool> wanted;  // empty: all
};
Result<Expected> expected_output(const ElementCollective& what, std::int32_t rank);

}  // namespace weft::run
