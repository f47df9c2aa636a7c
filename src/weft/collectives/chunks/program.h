// weft/collectives/chunks/program.h -- a chunk program: what every threadblock of every rank does, step by step.
//
//   rank 0  block 0  send to 1, receive from 2, channel 0
//                      0  send                     input[0]
//                      1  receive_reduce_copy_send input[2]
//                      2  receive                  input[1]    after 1.4    publish
//
// A threadblock runs its steps in order. It sends to one rank at most and receives from one at most; a
// connection is (sender, receiver, channel), belongs to one block at either end, and is a FIFO of a few
// slots. `after b.s` waits for step s of block b of the same rank; only a step that publishes can be
// seen, and a later published step of b serves as well.
//
// What a step does, M being the message it takes from its connection, S its source, T its target:
//
//   nop                                            (waits)
//   copy                      T = S
//   reduce                    T = T + S
//   send                      send S
//   receive                   T = M
//   receive_copy_send         T = M       send M
//   receive_reduce_copy       T = S + M
//   receive_reduce_send                   send S + M
//   receive_reduce_copy_send  T = S + M   send S + M
//
// A step of count n does so for n chunks in a row. `send to 1 over 4 9` asks for a way: links 4 and 9 of the topology
// that the program was made for. Results do not depend on it, times do.
#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "weft/collectives/chunks/collective.h"

namespace weft::collective {

enum class Op : std::uint8_t {
  nop,
  copy,
  reduce,
  send,
  receive,
  receive_copy_send,
  receive_reduce_copy,
  receive_reduce_send,
  receive_reduce_copy_send
};
inline constexpr std::size_t kOps = 9;

std::string_view name(Op op);  // "receive_reduce_copy_send"

bool sends(Op op);
bool receives(Op op);
bool reads_source(Op op);   // reads S
bool reads_target(Op op);   // reads T before it writes it: reduce alone
bool writes_target(Op op);  // writes T

struct Slot {
  Buffer buffer = Buffer::input;
  std::int32_t index = 0;

  friend auto operator<=>(const Slot&, const Slot&) = default;
};

struct Step {
  Op op = Op::nop;
  Slot source, target;  // as far as the op has them; the others are equal to them or input[0]
  std::int32_t count = 1;
  std::int32_t wait_block = -1;  // -1: waits for nobody
  std::int32_t wait_step = -1;
  bool publishes = false;

  friend bool operator==(const Step&, const Step&) = default;
};

struct Threadblock {
  std::int32_t send_to = -1;       // -1: sends nothing
  std::int32_t receive_from = -1;  // -1: receives nothing
  std::int32_t channel = 0;
  std::vector<Step> steps;
  std::vector<std::int32_t> links =
      {};  // of the topology, that what it sends runs over; none: the shortest way

  friend bool operator==(const Threadblock&, const Threadblock&) = default;
};

struct RankProgram {
  // How many chunks each buffer has. In place, the buffer that is part of the other may be given as 0.
  std::int32_t input_chunks = 0, output_chunks = 0, scratch_chunks = 0;
  std::vector<Threadblock> blocks;

  friend bool operator==(const RankProgram&, const RankProgram&) = default;
};

enum class Protocol : std::uint8_t { simple, ll, ll128 };

std::string_view name(Protocol protocol);  // "Simple", as the field writes it
// How many chunk-sized transfers a connection of today's runtimes holds: NCCL_STEPS is 8, and a
// transfer takes 4 of them with Simple, 1 with LL and LL128.
constexpr std::int32_t fifo_slots(Protocol protocol) { return protocol == Protocol::simple ? 2 : 8; }

// Which memory input and output are. In place, they share it: all_reduce, all_to_all, broadcast,
// reduce, send and custom have input[k] = output[k]; all_gather and gather have the input of rank r
// at output[r*C], reduce_scatter and scatter the output of rank r at input[r*C].
enum class Placement : std::uint8_t { out_of_place, in_place, either };

std::string_view name(Placement placement);

// The placement to run a program with when one is enough: in place where either will do.
constexpr Placement any_one(Placement placement) {
  return placement == Placement::either ? Placement::in_place : placement;
}

struct Program {
  std::string name;
  Collective collective;
  Protocol protocol = Protocol::simple;
  Placement placement = Placement::out_of_place;
  std::int32_t channels = 1;
  std::int64_t min_bytes = 0, max_bytes = 0;  // the message sizes it is meant for; 0: no limit
  std::vector<RankProgram> ranks;

  friend bool operator==(const Program&, const Program&) = default;
};

// Where a slot really lies, input and output told apart only where they are different memory: in
// place an all_gather's input[c] is output[r*C + c], and a reduce_scatter's output[c] is
// input[r*C + c]; otherwise output[k] in place is input[k].
Slot resolve(const Collective& collective, Placement placement, std::int32_t rank, Slot slot);

// How many chunks of memory `rank` has there once slots are resolved: in place, the shared memory is
// counted under the buffer that resolve() names and the other has none.
std::int32_t memory_chunks(const Program& program, Placement placement, std::int32_t rank, Buffer buffer);

struct Count {
  std::int64_t steps = 0, blocks = 0, messages = 0, chunks_sent = 0;
  std::int32_t most_blocks = 0;  // of a rank
  std::int32_t most_steps = 0;   // of a block
};
Count count(const Program& program);

}  // namespace weft::collective
