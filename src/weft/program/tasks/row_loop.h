// weft/program/tasks/row_loop.h -- many nodes fused into one pass over rows.
//
//   y = x + r          row 0   [ . . . . . . . ]     A row is short enough for the L1 cache, so every
//   n, s = norm(y)     row 1   [ . . . . . . . ]     value of the group is read and written once,
//   z = n * gain       ..                            whatever the number of nodes that use it.
//   d = sum(z) -> [d]
//
// The values of the group are registers: a *run* holds one element per position of the row, a
// *single* one for the whole row. Reductions along the row give singles. Sums over rows accumulate
// and are ready at the end of the loop. Registers are f32. A value of a narrower type is rounded to
// it before the loop computes with it, as when it is stored, so results do not depend on what is
// fused.
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "weft/base/inline_vector.h"
#include "weft/plan/graph/signature.h"
#include "weft/program/tasks/place.h"

namespace weft::program {

// An operand in memory that a loop reads or writes.
struct RowOperand {
  plan::ValueId value;
  Place place;
  InlineVector<std::int64_t, 6> outer;  // step of each outer loop
  std::int64_t along = 0;               // step along the row: 0 single, 1 run, else strided
  bool partial = false;                 // an accumulator with a copy per chunk
};

enum class RowStep : std::uint8_t {
  load,        // result = memory
  store,       // memory = operands[0]
  number,      // result = number
  position,    // result = the position along one loop
  spread,      // result = the single operands[0] along the whole row
  compute,     // result = op(operands): pointwise, or a cast to boolean
  round,       // result = operands[0] rounded to `dtype`
  reduce,      // result = reduction over the row of operands[0] and number
  dot,         // result = sum over the row of operands[0] * operands[1]
  softmax,     // result = softmax along the row of operands[0]
  layer_norm,  // result, second = layer norm along the row of operands[0]; number is epsilon
  rms_norm,    // likewise
  accumulate,  // memory (monoid)= operands[0], or operands[0] * operands[1] if there are two
};

std::string_view name(RowStep step);

struct RowInstruction {
  static constexpr std::uint16_t kNone = 0xffff;

  RowStep step = RowStep::load;
  plan::Monoid monoid = plan::Monoid::none;
  plan::NodeId node = {};  // the node that it computes; invalid for loads and stores
  const plan::Operator* op = nullptr;
  std::uint16_t result = kNone, second = kNone;  // registers
  std::array<std::uint16_t, 3> operands = {kNone, kNone, kNone};
  std::uint16_t memory = kNone;  // for load, store and accumulate
  double number = 0;
  plan::DType dtype = plan::DType::f32;  // for round
  // position: of an outer loop, or every `repeat` elements of the row up to `size`; counted from
  // `first`
  std::int32_t loop = -1;
  std::int64_t repeat = 1, size = 0, first = 0;
};

// How an accumulator is finished: the chunks' copies are combined in order and divided.
struct Accumulator {
  std::uint16_t memory = 0;  // the operand that accumulate writes
  BufferId partials;         // chunks x elements; invalid if a single chunk writes the result itself
  Place result;
  std::int64_t elements = 0;
  plan::Monoid monoid = plan::Monoid::sum;
  double divisor = 1;
};

// Rows shortened by a mask such as `t <= s`: everything stored beyond (outer loop's position) +
// offset is zero, and adds nothing to sums along the row.
struct RowEnd {
  std::size_t loop = 0;  // number of the outer loop
  std::int64_t offset = 0;

  friend bool operator==(const RowEnd&, const RowEnd&) = default;
};

struct RowLoop {
  InlineVector<std::int64_t, 6> outer;  // sizes, slowest first
  std::int64_t length = 1;              // of a row
  std::int64_t block = 1;  // elements of a row processed at a time; the row if steps need it whole
  std::vector<RowOperand> operands;
  std::vector<RowInstruction> code;
  std::vector<bool> is_run;  // by register: a run or a single
  std::vector<Accumulator> accumulators;
  std::optional<RowEnd> end = {};  // only if a row is one block

  std::int64_t rows() const;
  std::int64_t blocks() const { return (length + block - 1) / block; }  // of a row
};

}  // namespace weft::program
