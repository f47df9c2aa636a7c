// weft/collectives/reshard/reshard.h -- moves a tensor from one mesh and layout to another.
//
//   source: 2 hosts, rows sliced               destination: 2 hosts, columns sliced
//
//     host 0  [ a b ]   device 0                 host 2  [ a ]   device 2        device 0 -> 2: a
//     host 1  [ c d ]   device 1                         [ c ]                   device 1 -> 3: d   at once
//                                                host 3  [ b ]   device 3        device 0 -> 3: b
//                                                        [ d ]                   device 1 -> 2: c   at once
//
// The input says which device holds and which device needs each box. holdings.h derives this from a
// mesh and a layout, so any two meshes work: with different numbers of ranks, sharing all, some or
// no hosts and devices.
//
// The cost model counts only the network between hosts: a host sends one message at a time and
// receives one at a time, both at `bytes_per_second`. Moves within a host are free.
//
// Steps:
//   cells.h     intersect the boxes into cells, each held whole and needed whole
//   senders.h   a cell leaves its source hosts once; a flow divides it among its replicas
//   routes.h    a cell that several hosts need is forwarded from host to host in chunks while it arrives
//   rounds.h    schedule the transfers so that the busiest host is never idle
// replay.h verifies the moves and shares no code with these.
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
  std::vector<std::int32_t> hosts;             // per device
};

struct Links {
  double bytes_per_second = 1.25e9;  // per host and direction: 10 Gb/s
};

struct MoveOptions {
  // Latency would dominate shorter messages, so pipeline chunks are not cut below this size.
  std::int64_t least_chunk_bytes = 64 << 10;
  // With more moves, reading the list costs more than the pipeline saves.
  std::int64_t most_moves = 500'000;
};

struct Move {
  std::int32_t from = 0, to = 0;  // devices; equal if the device already holds the box
  Box box;
  bool relay = false;  // `from` is a destination that forwards data of an earlier move
};

// An executor must follow the list: each host sends in its order and receives in its order.
struct MovePlan {
  std::vector<Move> moves;
  double lower_bound_seconds = 0;
};

// Fails if a box is outside the tensor, a device has no host, no device holds a needed element, or
// the problem is too large.
Result<MovePlan> plan_moves(const Reshard& reshard, const Links& links = {}, const MoveOptions& options = {});

}  // namespace weft::reshard
