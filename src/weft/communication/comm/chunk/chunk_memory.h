// weft/communication/comm/chunk/chunk_memory.h -- addresses of one rank's chunks during one call.
//
//   program        call           runs on
//   out of place   out of place   the caller's input and output; internal memory if it writes its input
//   out of place   in place       a copy of the input, and the caller's output
//   in place       in place       the caller's memory
//   in place       out of place   the caller's output; if that is too small for what the program keeps
//                                 there (a reduce_scatter), internal memory for the rest
//
// Of the caller's memory only the output is written, even in place: a program that would use the
// rest of an input as scratch gets internal memory. If that or the output replaces the input, a
// chunk is read from the input until a step has written its replacement (chunk_early_reads.h). The
// remaining copies are listed here and performed incrementally by the chunk machine.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "weft/base/result.h"
#include "weft/collectives/chunks/program.h"
#include "weft/communication/comm/call.h"
#include "weft/communication/comm/chunk/chunk_early_reads.h"
#include "weft/communication/comm/chunk/chunk_shape.h"

namespace weft::comm {

// The chunk addresses of a program's buffer.
struct ChunkArea {
  std::byte* base = nullptr;
  std::int64_t stride = 0;            // bytes between chunks, if uniform
  std::vector<std::int64_t> offsets;  // otherwise the offset of each chunk
  std::int64_t shift = 0;             // index of chunk 0, in chunks

  // A range of chunks may be stored contiguously elsewhere.
  std::byte* elsewhere = nullptr;
  std::int64_t first_elsewhere = 0, end_elsewhere = 0;

  std::byte* at(std::int64_t index) const {
    index += shift;
    if (index >= first_elsewhere && index < end_elsewhere)
      return elsewhere + (offset(index) - offset(first_elsewhere));
    return base + offset(index);
  }

 private:
  std::int64_t offset(std::int64_t index) const {
    return offsets.empty() ? index * stride : offsets[static_cast<std::size_t>(index)];
  }
};

struct Copy {
  std::byte* to = nullptr;
  const std::byte* from = nullptr;
  std::int64_t bytes = 0;
};

// The number of chunks in a caller's buffer. A custom in-place program may declare its two buffers
// as one: then each has that size.
std::int32_t callers_chunks(const collective::Program& program, std::int32_t rank, collective::Buffer buffer);

// Allocates zeroed bytes in the memory of the chunks; null if out of memory.
using AllocateBytes = std::function<std::shared_ptr<std::byte>(std::int64_t bytes)>;
std::shared_ptr<std::byte> allocate_here(std::int64_t bytes);

// Computes addresses without accessing them, so they may be device memory.
class ChunkMemory {
 public:
  // `allocate` provides internal memory.
  ChunkMemory(const collective::Program& program, std::int32_t rank, AllocateBytes allocate = allocate_here);

  // Fails if internal memory is needed and cannot be allocated.
  Status bind(const Call& call, const ChunkShape& shape);

  // area(): where steps write a buffer; source() and addend(): where they read it. `number` indexes
  // the chunks that steps move: each has a source, and possibly a target that it adds to.
  const ChunkArea& area(collective::Buffer buffer) const { return areas_[static_cast<std::size_t>(buffer)]; }
  const ChunkArea& source(collective::Buffer buffer, std::int64_t number) const {
    return early_ != nullptr && early_->sources[static_cast<std::size_t>(number)] ? input_as(buffer)
                                                                                  : area(buffer);
  }
  const ChunkArea& addend(collective::Buffer buffer, std::int64_t number) const {
    return early_ != nullptr && early_->targets[static_cast<std::size_t>(number)] ? input_as(buffer)
                                                                                  : area(buffer);
  }

  const std::vector<Copy>& before() const { return before_; }
  const std::vector<Copy>& beside() const { return beside_; }  // at any time: independent of all steps
  const std::vector<Copy>& after() const { return after_; }

 private:
  // Internal memory, kept and grown across calls.
  struct Own {
    std::shared_ptr<std::byte> data;
    std::int64_t bytes = 0;
  };
  using Buffer = collective::Buffer;

  bool runs_in_place(const Call& call, bool called_in_place) const;
  Status bind_in_place(const Call& call, bool called_in_place);
  Status bind_out_of_place(const Call& call, bool called_in_place);

  // Redirects reads to the caller's input until a chunk is written; false if that is impossible.
  bool read_early(const ChunkArea& input, collective::Placement placement);
  void copy_unwritten(const Call& call, const ChunkArea& input);

  ChunkArea& area(Buffer buffer) { return areas_[static_cast<std::size_t>(buffer)]; }
  // The caller's input under the buffer name that the program uses.
  const ChunkArea& input_as(Buffer buffer) const { return inputs_[static_cast<std::size_t>(buffer)]; }
  // layout(): of the caller's memory; own(): of internal memory.
  ChunkArea layout(Buffer buffer, std::byte* base) const;
  Result<ChunkArea> own(Buffer buffer, std::int64_t chunks);
  // Lists copies of all chunks of a buffer.
  void copy(std::vector<Copy>& copies, Buffer buffer, const ChunkArea& from, const ChunkArea& to) const;

  const collective::Program& program_;
  const std::int32_t rank_;
  const AllocateBytes allocate_;
  bool idle_ = true;                   // has no steps
  bool writes_input_ = false;          // out of place
  bool writes_beyond_output_ = false;  // in place

  const ChunkShape* shape_ = nullptr;  // of the current call
  std::int64_t element_ = 0;
  std::array<ChunkArea, 3> areas_;
  std::array<ChunkArea, 2> inputs_;
  const EarlyReads* early_ = nullptr;
  std::array<Own, 3> owns_;
  std::vector<Copy> before_, beside_, after_;

  // Cached by placement; an empty inner value: they cannot be determined.
  std::array<std::optional<std::optional<EarlyReads>>, 2> known_reads_;
};

}  // namespace weft::comm
