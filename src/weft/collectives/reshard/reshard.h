// weft/collectives/reshard/reshard.h -- a tensor goes from one mesh to another, where it lies otherwise.
//
//   source: 2 hosts, rows sliced               destination: 2 hosts, columns sliced
//
//     host 0  [ a b ]   device 0                 host 2  [ a ]   device 2        device 0 -> 2: a
//     host 1  [ c d ]   device 1                         [ c ]                   device 1 -> 3: d   at once
//                                                host 3  [ b ]   device 3        device 0 -> 3: b
//                                                        [ d ]                   device 1 -> 2: c   at once
//
// What is given is who holds which box and who needs which: holdings.h makes both from a mesh and a layout,
// so any two meshes will do, of other numbers of ranks, sharing hosts or devices or none.
//
// The time is that of the network between hosts: a host sends one thing at a time and receives one thing at
// a time, both at `bytes_per_second`; inside a host moves are free.
//
// How it is done:
//   cells.h     the boxes cut each other into cells, each held whole and needed whole
//   senders.h   a cell leaves its source hosts once; which of its replicas sends how much of it is a flow
//   routes.h    a cell that several hosts need goes on from host to host, in chunks, while it arrives
//   rounds.h    who sends to whom at what time, so that the busiest host is never idle
// replay.h judges the moves and shares no code with these.
#pragma once
#include <cstdint>
#include <vector>

#include "weft/base/result.h"
#include "weft/collectives/reshard/box.h"

namespace weft::reshard {

struct Holding {
  std::int32_t device = 0;
  Box box;
};

struct Reshard {
  std::vector<std::int64_t> sizes;
  std::int64_t element_bytes = 1;
  std::vector<Holding> sources, destinations;  // boxes of one device are disjoint
  std::vector<std::int32_t> hosts;             // of each device
};

struct Links {
  double bytes_per_second = 1.25e9;  // of a host, each way: 10 Gb/s
};

struct MoveOptions {
  // A message shorter than this would be all latency, so chunks of a pipeline are not cut below it.
  std::int64_t least_chunk_bytes = 64 << 10;
  // A longer list costs more to read than the pipeline saves.
  std::int64_t most_moves = 500'000;
};

struct Move {
  std::int32_t from = 0, to = 0;  // devices; they may be the same, where it has what it needs
  Box box;
  bool relay = false;  // `from` is a destination that passes on what an earlier move brought
};

// What an executor keeps to: a host sends in the order of the list and receives in that order.
struct MovePlan {
  std::vector<Move> moves;
  double lower_bound_seconds = 0;
};

// Fails when a box lies outside of the tensor, a device is none of the hosts', an element is needed that
// nobody holds, or there is too much of it.
Result<MovePlan> plan_moves(const Reshard& reshard, const Links& links = {}, const MoveOptions& options = {});

}  // namespace weft::reshard
