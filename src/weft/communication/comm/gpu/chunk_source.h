// weft/communication/comm/gpu/chunk_source.h -- the chunk-program machine as a CUDA kernel: one
// thread block per threadblock.
//
//   block 0 of rank 0   [wait for 1.3][take a slot of 0 ──▶ 2][copy into it][publish]
//   block 0 of rank 2   .................................................[wait][reduce it][free the slot]
//
// All blocks of all ranks in the launch are resident at once and synchronize through counters in
// device memory: messages sent per connection, messages received per connection, and the progress
// that a block has published. The kernel follows comm/chunk/chunk_cursor.cpp message by message;
// its results are bitwise equal.
#pragma once
#include <cstdint>
#include <string>

#include "weft/device/element_type.h"

namespace weft::comm::gpu {

// The tables that the kernel reads, in device layout.
struct ChunkStep {
  std::int32_t op = 0;  // collective::Op
  std::int32_t count = 1;
  std::int32_t wait_block = -1;  // index in the launch
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

// Spacing of the 8-byte counters, so that no two share a cache line: two per connection, one per
// block, and one for the number (from 1) of a block that waited too long.
inline constexpr std::int64_t kCounterBytes = 128;
inline constexpr std::int64_t counters(std::int64_t connections, std::int64_t blocks) {
  return 2 * connections + blocks + 1;
}

//   weft_chunks(blocks, steps, places, counters, slots, connections, slices, slot_count, slot_bytes, limit_ns)
//   weft_divide(numbers, elements, count)
// The source of these kernels, with `threads` per block and `resident` blocks per SM.
std::string chunk_source(device::ElementType type, device::ReduceOp op, int threads, int resident);

}  // namespace weft::comm::gpu
