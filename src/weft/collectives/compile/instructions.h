// weft/collectives/compile/instructions.h -- intermediate form between moves and program.
//
//   rank 1
//     1  receive_copy_send output[0]  from 0 (0)  to 2 (3)
//     4  send output[1]               to 2 (5)
//
// The number in parentheses is the other end of the message. After every pass the list is a valid
// sequential order: an instruction follows its dependences and the instruction that sends to it.
// Slots are resolved (see resolve() in program.h).
//
//   split    one or two instructions per move        fuse    messages forwarded directly
//   assign   channels and threadblocks               order   the list is the execution order
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "weft/collectives/chunks/collective.h"
#include "weft/collectives/chunks/program.h"

namespace weft::collective {

struct Instruction {
  Op op = Op::nop;
  std::int32_t rank = 0;
  Slot source, target;  // if the op uses only one, both are that one
  std::int32_t count = 1;
  std::int32_t giver = -1;    // the instruction that sends what this one receives
  std::int32_t taker = -1;    // the instruction that receives what this one sends
  std::int32_t sent = -1;     // the move that it sends
  std::int32_t done = -1;     // the move that it receives, or does locally
  std::int32_t channel = -1;  // requested by a move, later assigned; -1: any
  std::int32_t block = -1;    // in Instructions::blocks
};

// A threadblock as in program.h, without its steps.
struct InstructionBlock {
  std::int32_t rank = 0;
  std::int32_t send_to = -1, receive_from = -1, channel = 0;
};

struct Instructions {
  std::string name;
  Collective collective;
  Placement placement = Placement::out_of_place;
  std::vector<std::int32_t> input, output, scratch;  // chunks, per rank

  std::vector<Instruction> list;
  std::vector<std::int64_t> first;       // instruction i waits for after[first[i]] up to after[first[i + 1]],
  std::vector<std::int32_t> after;       // all on its own rank; sorted
  std::vector<InstructionBlock> blocks;  // grouped by rank

  std::int32_t size() const { return static_cast<std::int32_t>(list.size()); }
  std::span<const std::int32_t> dependences(std::int32_t instruction) const {
    return std::span(after).subspan(static_cast<std::size_t>(first[instruction]),
                                    static_cast<std::size_t>(first[instruction + 1] - first[instruction]));
  }
};

// The instructions that wait for each instruction: the reverse of the dependences.
struct Successors {
  std::vector<std::int64_t> first;
  std::vector<std::int32_t> list;

  std::span<const std::int32_t> of(std::int32_t instruction) const {
    return std::span(list).subspan(static_cast<std::size_t>(first[instruction]),
                                   static_cast<std::size_t>(first[instruction + 1] - first[instruction]));
  }
};
Successors successors(const Instructions& instructions);

bool fused(Op op);  // both receives and sends

// Per rank, with what is known: channels and blocks after `assign`, execution order after `order`.
std::string print(const Instructions& instructions);

}  // namespace weft::collective
