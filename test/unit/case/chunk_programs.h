// Small chunk programs, and functions to build more of them.
#pragma once
#include <cstdint>
#include <initializer_list>
#include <utility>
#include <vector>

#include "weft/collectives/chunks/program.h"

namespace weft::collective {

inline Slot in(std::int32_t index) { return {Buffer::input, index}; }
inline Slot out(std::int32_t index) { return {Buffer::output, index}; }
inline Slot scratch(std::int32_t index) { return {Buffer::scratch, index}; }

inline Step step(Op op, Slot source, Slot target, std::int32_t count = 1) {
  Step made;
  made.op = op;
  made.source = source;
  made.target = target;
  made.count = count;
  return made;
}
inline Step send(Slot slot, std::int32_t count = 1) { return step(Op::send, slot, slot, count); }
inline Step receive(Slot slot, std::int32_t count = 1) { return step(Op::receive, slot, slot, count); }
inline Step copy(Slot from, Slot to, std::int32_t count = 1) { return step(Op::copy, from, to, count); }
inline Step reduce(Slot from, Slot to, std::int32_t count = 1) { return step(Op::reduce, from, to, count); }
inline Step after(std::int32_t block, std::int32_t place, Step made) {
  made.wait_block = block;
  made.wait_step = place;
  return made;
}
inline Step publish(Step made) {
  made.publishes = true;
  return made;
}

inline Threadblock block(std::int32_t send_to, std::int32_t receive_from, std::vector<Step> steps,
                         std::int32_t channel = 0) {
  return {send_to, receive_from, channel, std::move(steps)};
}

// Without threadblocks.
inline Program empty_program(Kind kind, std::int32_t ranks, std::int32_t chunks, Placement placement,
                             std::int32_t scratch_chunks = 0) {
  Program program;
  program.collective.kind = kind;
  program.collective.ranks = ranks;
  program.collective.chunks = chunks;
  program.placement = placement;
  for (std::int32_t rank = 0; rank < ranks; ++rank)
    program.ranks.push_back({extent(program.collective, Buffer::input, rank),
                             extent(program.collective, Buffer::output, rank),
                             scratch_chunks,
                             {}});
  return program;
}

// In-place ring all-reduce: one threadblock per rank, `width` chunks per transfer.
inline Program ring(std::int32_t ranks, std::int32_t width = 1) {
  Program program = empty_program(Kind::all_reduce, ranks, ranks * width, Placement::in_place);
  for (std::int32_t rank = 0; rank < ranks; ++rank) {
    const auto slot = [&](std::int32_t k) { return in(((rank - k) % ranks + ranks) % ranks * width); };
    const auto does = [&](Op op, std::int32_t k) { return step(op, slot(k), slot(k), width); };
    std::vector<Step> steps = {does(Op::send, 0)};
    for (std::int32_t k = 1; k < ranks - 1; ++k) steps.push_back(does(Op::receive_reduce_send, k));
    steps.push_back(does(Op::receive_reduce_copy_send, ranks - 1));
    for (std::int32_t k = 0; k < ranks - 2; ++k) steps.push_back(does(Op::receive_copy_send, k));
    steps.push_back(does(Op::receive, ranks - 2));
    program.ranks[rank].blocks = {block((rank + 1) % ranks, (rank + ranks - 1) % ranks, std::move(steps))};
  }
  return program;
}

// The same with one threadblock that sends and one that receives. No dependency within the rank
// orders a send of a partial sum before the arrival of the total for the same chunk: only the trip
// around the ring does.
inline Program ring_of_pairs(std::int32_t ranks) {
  Program program = empty_program(Kind::all_reduce, ranks, ranks, Placement::in_place);
  for (std::int32_t rank = 0; rank < ranks; ++rank) {
    const auto slot = [&](std::int32_t k) { return in(((rank - k) % ranks + 2 * ranks) % ranks); };
    std::vector<Step> sends, receives;
    for (std::int32_t k = 0; k < 2 * ranks - 2; ++k) {
      sends.push_back(k == 0 ? send(slot(k)) : after(1, k - 1, send(slot(k))));
      const Op op = k < ranks - 1 ? Op::receive_reduce_copy : Op::receive;
      receives.push_back(publish(step(op, slot(k + 1), slot(k + 1))));
    }
    program.ranks[rank].blocks = {block((rank + 1) % ranks, -1, std::move(sends)),
                                  block(-1, (rank + ranks - 1) % ranks, std::move(receives))};
  }
  return program;
}

// Every rank sends to all others at once. One threadblock per peer, and another for the rank's own
// chunk.
inline Program all_pairs(Kind kind, std::int32_t ranks, std::int32_t chunks, Placement placement) {
  Program program = empty_program(kind, ranks, chunks, placement);
  for (std::int32_t rank = 0; rank < ranks; ++rank) {
    const auto own = [&](std::int32_t peer) { return in(kind == Kind::all_to_all ? peer * chunks : 0); };
    std::vector<Threadblock>& blocks = program.ranks[rank].blocks;
    for (std::int32_t peer = 0; peer < ranks; ++peer)
      if (peer != rank)
        blocks.push_back(block(peer, peer, {send(own(peer), chunks), receive(out(peer * chunks), chunks)}));
    blocks.push_back(block(-1, -1, {copy(own(rank), out(rank * chunks), chunks)}));
  }
  return program;
}

// Rank 0 to 1 to 2 ..., `chunks` chunks one by one. All ranks but 0 hold them only in their output.
inline Program chain(std::int32_t ranks, std::int32_t chunks) {
  Program program = empty_program(Kind::broadcast, ranks, chunks, Placement::out_of_place);
  for (std::int32_t rank = 0; rank < ranks; ++rank) {
    std::vector<Step> steps, copies;
    for (std::int32_t chunk = 0; chunk < chunks; ++chunk) {
      const Op op = rank == 0 ? Op::send : rank == ranks - 1 ? Op::receive : Op::receive_copy_send;
      steps.push_back(step(op, rank == 0 ? in(chunk) : out(chunk), out(chunk)));
      copies.push_back(copy(in(chunk), out(chunk)));
    }
    program.ranks[rank].blocks.push_back(
        block(rank + 1 < ranks ? rank + 1 : -1, rank > 0 ? rank - 1 : -1, std::move(steps)));
    if (rank == 0) program.ranks[rank].blocks.push_back(block(-1, -1, std::move(copies)));
  }
  return program;
}

// Reduces through scratch: rank 1 sends all its chunks to rank 0, which adds them and sends the
// sums back.
inline Program there_and_back(std::int32_t chunks) {
  Program program = empty_program(Kind::all_reduce, 2, chunks, Placement::in_place, chunks);
  const std::int32_t last = chunks - 1;
  std::vector<Step> adds = {after(0, 0, step(Op::nop, in(0), in(0)))};
  for (std::int32_t chunk = 0; chunk < chunks; ++chunk)
    adds.push_back(publish(reduce(scratch(chunk), in(chunk))));
  program.ranks[0].blocks = {
      block(1, 1, {publish(receive(scratch(0), chunks)), after(1, last + 1, send(in(0), chunks))}),
      block(-1, -1, std::move(adds))};
  program.ranks[1].blocks = {block(0, 0, {send(in(0), chunks), receive(in(0), chunks)})};
  return program;
}

}  // namespace weft::collective
