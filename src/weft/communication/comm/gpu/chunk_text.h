// weft/communication/comm/gpu/chunk_text.h -- the chunk-program machine as a kernel: a block of threads for each threadblock.
//
//   block 0 of rank 0   [wait for 1.3][take a slot of 0 ──▶ 2][copy there][show it]
//   block 0 of rank 2   ..............................................[wait for it][add it up][give the slot back]
//
// All blocks of all ranks that it is launched for run at once, and wait for each other by counters in the device's
// memory: how many messages a connection was sent, how many were taken from it, how far a block has published.
// The kernel is comm/chunk/chunk_cursor.cpp, message by message; what it computes has the same bits.
#pragma once
#include <cstdint>
#include <string>

#include "weft/device/element_type.h"

namespace weft::comm::gpu {

// The tables that the kernel walks, as it has them.
struct ChunkStep {
  std::int32_t op = 0;  // collective::Op
  std::int32_t count = 1;
  std::int32_t wait_block = -1;  // of all blocks of the launch
  std::int32_t wait_step = 0, wait_steps = 0;
  std::int32_t publishes = 0;
  std::int64_t first = 0;  // its first chunk
};
struct ChunkPlaces {
  std::uint64_t source = 0, target = 0, addend = 0;
  std::int64_t elements = 0;
};
struct ChunkBlock {
  std::int32_t first_step = 0, steps = 0;
  std::int32_t in = -1, out = -1;  // connections
};

// What is said by counters, eight bytes each: two for a connection, one for a block, and one that tells of a block
// that waited too long, by its number from 1 on. So far apart that no two share a line.
inline constexpr std::int64_t kCounterBytes = 128;
inline constexpr std::int64_t counters(std::int64_t connections, std::int64_t blocks) {
  return 2 * connections + blocks + 1;
}

//   weft_chunks(blocks, steps, places, counters, slots, connections, slices, slot_count, slot_bytes, limit_ns)
//   weft_divide(numbers, elements, count)
// `threads` of each block, of which a processor has room for `resident` blocks.
std::string chunk_text(device::ElementType type, device::ReduceOp op, int threads, int resident);

}  // namespace weft::comm::gpu
