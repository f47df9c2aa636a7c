// weft/program/tasks/row_loop.h -- many nodes as one pass over rows.
//
//   y = x + r          row 0   [ . . . . . . . ]     A row is short enough to stay in the nearest cache,
//   n, s = norm(y)     row 1   [ . . . . . . . ]     so every value of the group is read and written
//   z = n * gain       ..                            once, however many nodes it passes through.
//   d = sum(z) -> [d]
//
// The values of the group are registers: a *run* holds an element for each place of the row, a
// *single* one for the whole row. Reductions along the row give singles; sums over the rows
// gather in accumulators, which are ready when the loop is. Registers are f32: a value of a narrower
// type that the loop computes with is rounded to it first, as it is where it is stored, so its bits do
// not depend on what runs together.
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "weft/base/inline_vector.h"
#include "weft/plan/graph/signature.h"
#include "weft/program/tasks/place.h"

namespace weft::program {

// What a loop reads or writes in memory.
struct RowOperand {
  plan::ValueId value;
  Place place;
  InlineVector<std::int64_t, 6> outer;  // how far each outer loop moves
  std::int64_t along = 0;               // how far the row moves: 0 single, 1 a run, else strided
  bool partial = false;                 // an accumulator that each chunk has a copy of
};

enum class RowStep : std::uint8_t {
  load,        // result = memory
  store,       // memory = operands[0]
  number,      // result = number
  position,    // result = the place along one loop
  spread,      // result = the single operands[0], all along the row
  compute,     // result = op(operands): a pointwise operator, or a cast to truth
  round,       // result = operands[0] as `dtype` holds it
  reduce,      // result = the monoid over the row of operands[0], over number
  dot,         // result = the sum over the row of operands[0] * operands[1]
  softmax,     // result = softmax along the row of operands[0]
  layer_norm,  // result, second = layer norm along the row of operands[0]; number is epsilon
  rms_norm,    // likewise
  accumulate,  // memory (monoid)= operands[0], or operands[0] * operands[1] where there are two
};

std::string_view name(RowStep step);

struct RowInstruction {
  static constexpr std::uint16_t kNone = 0xffff;

  RowStep step = RowStep::load;
  plan::Monoid monoid = plan::Monoid::none;
  plan::NodeId node = {};  // whose work it is; invalid for loads and stores
  const plan::Operator* op = nullptr;
  std::uint16_t result = kNone, second = kNone;  // registers
  std::array<std::uint16_t, 3> operands = {kNone, kNone, kNone};
  std::uint16_t memory = kNone;  // of load, store and accumulate
  double number = 0;
  plan::DType dtype = plan::DType::f32;  // of round
  // position: of an outer loop, or every `repeat` places of the row up to `size`; counted from `first`
  std::int32_t loop = -1;
  std::int64_t repeat = 1, size = 0, first = 0;
};

// An accumulator's way home: the chunks' copies are combined in order and divided.
struct Accumulator {
  std::uint16_t memory = 0;  // the operand that accumulate writes
  BufferId partials;         // chunks x elements; invalid when the only chunk writes the result itself
  Place result;
  std::int64_t elements = 0;
  plan::Monoid monoid = plan::Monoid::sum;
  double divisor = 1;
};

// Rows that a mask cuts short, as `t <= s` does: all that is stored past place (outer loop's place) + offset
// is zero, and what is summed along the row has nothing to add there.
struct RowEnd {
  std::size_t loop = 0;  // of the outer ones
  std::int64_t offset = 0;

  friend bool operator==(const RowEnd&, const RowEnd&) = default;
};

struct RowLoop {
  InlineVector<std::int64_t, 6> outer;  // sizes, slowest first
  std::int64_t length = 1;              // of a row
  std::int64_t block = 1;  // how much of a row is worked at a time; the row where steps need it whole
  std::vector<RowOperand> operands;
  std::vector<RowInstruction> code;
  std::vector<bool> is_run;  // a register: a run or a single
  std::vector<Accumulator> accumulators;
  std::optional<RowEnd> end = {};  // only where a row is one block

  std::int64_t rows() const;
  std::int64_t blocks() const { return (length + block - 1) / block; }  // of a row
};

}  // namespace weft::program
