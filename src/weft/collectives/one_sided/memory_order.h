// weft/collectives/one_sided/memory_order.h -- order and visibility of an MSCCL++ plan's accesses.
//
//   block    threads   S --- nop --- nop --- end      a chain; many threads execute what is between two
//                       \ put / \ signal / \ ...      nops concurrently, so only the nops order it
//   signal   one thread per channel of the operation: thread t handles the t-th channel of every such
//            operation; the operations of one thread are ordered
//   port     a queue per channel: a put reads its source and writes its target some time after it was
//            issued; a later signal on the same channel, and a flush, come after it
//   rank     caller | begin, all blocks, end | caller | begin ...: the plan is run several times
//
// Two orders over the same nodes: `control` is happens-before, `data` also implies visibility. A
// relaxed signal or wait is an edge of `control` only. The k-th wait of a run matches its k-th
// signal in every run, because counters end at their initial values. A packet carries its own flag:
// its reader comes after its writer of the same run, and sees only that packet.
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
  std::int32_t run = 0;      // from 1; 0: the caller before the first run
  std::int32_t segment = 0;  // numbers the segments between nops, over all blocks
  std::int32_t issue = -1;   // port: the node that queued it
};

// One access of a node to one cell: a part of a chunk, or in a pipeline one iteration's slice of
// it.
struct MemoryAccess {
  std::int64_t cell = 0;
  std::int64_t base = 0;  // first cell of the operand: determines which thread handles which bytes
  std::int32_t node = 0;
  bool writes = false;
  bool packet = false;       // with its flag
  bool copies = false;       // packets: writes back what was read from this cell
  bool in_packets = false;   // the operation works packet by packet
  std::int64_t source = -1;  // packets: the only cell they were computed from; -1: a sum
  bool switched = false;     // a store through a switch, which needs no release: see one_sided_races.h
};

struct MemoryOrder {
  std::vector<MemoryNode> nodes;
  HappensBefore control, data;
  std::vector<std::int32_t> order;     // a run with every block's steps in program order
  std::vector<std::int32_t> position;  // per node: its index in `order`
  std::vector<MemoryAccess> accesses;  // without those of the callers
  std::vector<std::vector<std::int32_t>>
      callers;                     // per rank: the caller's node before run 1, 2, ..., and after the last
  std::optional<Finding> finding;  // a fault found while building

  // The location of a cell.
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

struct MemoryOrderOptions {
  std::int32_t runs = 2;   // runs of the plan
  std::int32_t turns = 3;  // iterations per pipeline
  std::int32_t slots = 0;  // slices after which a pipeline reuses scratch; 0: never
};

// REQUIRES: check_form(plan) and check_counters(plan) found nothing, and the plan does not
// deadlock.
MemoryOrder memory_order(const OneSided& plan, const MemoryOrderOptions& turns);

}  // namespace weft::collective
