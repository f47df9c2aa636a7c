// weft/collectives/chunks/program.h -- a chunk program: the steps of all threadblocks of all ranks.
//
//   rank 0  block 0  send to 1, receive from 2, channel 0
//                      0  send                     input[0]
//                      1  receive_reduce_copy_send input[2]
//                      2  receive                  input[1]    after 1.4    publish
//
// A threadblock runs its steps in order. It sends to at most one rank and receives from at most
// one. A connection is (sender, receiver, channel), belongs to one block at either end, and is a
// FIFO of a few slots. `after b.s` waits for step s of block b of the same rank. Only a step that
// publishes can be waited for; a later published step of b also ends the wait.
//
// Effect of a step, where M is the message received from its connection, S its source, T its
// target:
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
// A step of count n does so for n consecutive chunks. `send to 1 over 4 9` requests a route: links
// 4 and 9 of the topology that the program was made for. Routes affect times, not results.
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
bool reads_target(Op op);   // reads T before writing it: only reduce
bool writes_target(Op op);  // writes T

struct Slot {
  Buffer buffer = Buffer::input;
  std::int32_t index = 0;

  friend auto operator<=>(const Slot&, const Slot&) = default;
};

struct Step {
  Op op = Op::nop;
  Slot source, target;  // equal if the op uses only one; input[0] if none
  std::int32_t count = 1;
  std::int32_t wait_block = -1;  // -1: does not wait
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
      {};  // route of its sends over the topology's links; empty: the shortest path

  friend bool operator==(const Threadblock&, const Threadblock&) = default;
};

struct RankProgram {
  // Chunks per buffer. In place, the buffer that is part of the other may be given as 0.
  std::int32_t input_chunks = 0, output_chunks = 0, scratch_chunks = 0;
  std::vector<Threadblock> blocks;

  friend bool operator==(const RankProgram&, const RankProgram&) = default;
};

enum class Protocol : std::uint8_t { simple, ll, ll128 };

std::string_view name(Protocol protocol);  // "Simple", as NCCL writes it
// The number of chunk-sized transfers that a connection of today's runtimes holds. NCCL_STEPS is 8;
// a transfer takes 4 of them with Simple, 1 with LL and LL128.
constexpr std::int32_t fifo_slots(Protocol protocol) { return protocol == Protocol::simple ? 2 : 8; }

// Whether input and output share memory. In place, all_reduce, all_to_all, broadcast, reduce, send
// and custom have input[k] = output[k]; all_gather and gather have the input of rank r at
// output[r*C]; reduce_scatter and scatter have the output of rank r at input[r*C].
enum class Placement : std::uint8_t { out_of_place, in_place, either };

std::string_view name(Placement placement);

// The placement to run a program with if one is enough: in place if both are allowed.
constexpr Placement single_placement(Placement placement) {
  return placement == Placement::either ? Placement::in_place : placement;
}

struct Program {
  std::string name;
  Collective collective;
  Protocol protocol = Protocol::simple;
  Placement placement = Placement::out_of_place;
  std::int32_t channels = 1;
  std::int64_t min_bytes = 0, max_bytes = 0;  // the intended message sizes; 0: no limit
  std::vector<RankProgram> ranks;

  friend bool operator==(const Program&, const Program&) = default;
};

// The canonical slot of a memory location. In place an all_gather's input[c] is output[r*C + c],
// and a reduce_scatter's output[c] is input[r*C + c]; otherwise output[k] in place is input[k].
Slot resolve(const Collective& collective, Placement placement, std::int32_t rank, Slot slot);

// The number of chunks of memory in the buffer of `rank` after slots are resolved. In place, shared
// memory counts for the buffer that resolve() returns; the other has none.
std::int32_t memory_chunks(const Program& program, Placement placement, std::int32_t rank, Buffer buffer);

struct Count {
  std::int64_t steps = 0, blocks = 0, messages = 0, chunks_sent = 0;
  std::int32_t most_blocks = 0;  // per rank
  std::int32_t most_steps = 0;   // per block
};
Count count(const Program& program);

}  // namespace weft::collective
