// weft/collectives/one_sided/memory_order.h -- which accesses of an MSCCL++ plan come before which, and who sees what.
//
//   block    threads   S --- nop --- nop --- end      a chain; what stands between two nops is done by
//                       \ put / \ signal / \ ...      many threads at once, so only the nops order it
//   signal   one thread for each channel of the operation: thread t does the t-th of every such
//            operation, and what one thread does stays in order
//   port     a queue per channel: a put reads its source and writes its target some time after it was
//            issued; the signal behind it on the same channel, and a flush, come after it
//   rank     caller | begin, all blocks, end | caller | begin ...: the plan is run several times
//
// Two orders over the same nodes: `control` is what happens before what, `data` what is also visible. A
// relaxed signal or wait is an edge of `control` alone. The k-th wait of a run goes with its k-th signal,
// which holds in every run because counters end where they began. A packet carries its own flag: whoever
// reads it comes after whoever wrote it in this run, and sees that packet and nothing else.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "weft/collectives/check/check.h"
#include "weft/collectives/check/happens_before.h"
#include "weft/collectives/one_sided/one_sided.h"

namespace weft::collective {

struct MemoryNode {
  enum class Kind : std::uint8_t { step, port_read, port_write, order, caller };
  Kind kind = Kind::order;
  Where where;
  std::int32_t run = 0;      // from 1; 0: what the caller did before the first
  std::int32_t segment = 0;  // counts the stretches between nops, of all blocks together
  std::int32_t issue = -1;   // port: the node that gave it to the queue
};

// One access of a node to one cell: a part of a chunk, or of that the slice one turn of a pipeline works on.
struct MemoryAccess {
  std::int64_t cell = 0;
  std::int64_t base = 0;  // the first cell of the operand: says which thread does which bytes
  std::int32_t node = 0;
  bool writes = false;
  bool packet = false;       // with its flag
  bool copies = false;       // packets: what was read from this very cell goes back to it
  bool in_packets = false;   // the operation goes packet by packet
  std::int64_t source = -1;  // packets: the one cell that they were made from; -1: they are a sum
  bool switched = false;     // a store through a switch, which needs no release: see one_sided_races.h
};

struct MemoryOrder {
  std::vector<MemoryNode> nodes;
  HappensBefore control, data;
  std::vector<std::int32_t> order;     // every block's steps as they are written
  std::vector<std::int32_t> position;  // of a node in `order`
  std::vector<MemoryAccess> accesses;  // but for those of the callers
  std::vector<std::vector<std::int32_t>>
      callers;                     // by rank: what the caller does before run 1, 2, ..., after
  std::optional<Finding> finding;  // a fault that was met on the way

  // What a cell is.
  struct Place {
    std::int32_t rank = 0;
    Buffer buffer = Buffer::input;
    std::int32_t index = 0;  // in chunks
  };
  std::int32_t parts = 1, slices = 1;
  std::vector<std::int64_t>
      first_cell;  // by rank and buffer (scratch twice: for even and odd runs), then the end
  Place place(std::int64_t cell) const;
};

struct MemoryTurns {
  std::int32_t runs = 2;   // how often the plan is run
  std::int32_t turns = 3;  // of every pipeline
  std::int32_t slots = 0;  // slices after which a pipeline comes back to the same scratch; 0: never
};

// REQUIRES: check_form(plan) and check_counters(plan) have found nothing, and the plan does not hang.
MemoryOrder memory_order(const OneSided& plan, const MemoryTurns& turns);

}  // namespace weft::collective
