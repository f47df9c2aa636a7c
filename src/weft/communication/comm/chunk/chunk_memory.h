// weft/communication/comm/chunk/chunk_memory.h -- where the chunks of one rank lie during one call.
//
//   program        call           runs on
//   out of place   out of place   the caller's input and output; memory of our own if it writes its input
//   out of place   in place       a copy of the input, and the caller's output
//   in place       in place       the caller's memory
//   in place       out of place   the caller's output; where it has not room for what the program expects
//                                 there (a reduce_scatter), memory of our own for the rest
//
// Nothing of the caller's but its output is ever written, not even in place: a program that would use the
// rest of an input as scratch is given other memory. Where that or the output stands for the input, a chunk
// is read from the input until one is written in its place (chunk_early_reads.h). What is copied all the same
// is listed here and done by the machine, piece by piece.
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

// A buffer of a program: its chunks' addresses.
struct ChunkArea {
  std::byte* base = nullptr;
  std::int64_t stride = 0;            // bytes from one chunk to the next, ...
  std::vector<std::int64_t> offsets;  // ... or where each begins
  std::int64_t shift = 0;             // chunks: chunk 0 is that many after the first

  // Some chunks, counted from the first, may lie together in another place.
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

// How many chunks a caller's buffer has. The two of a custom program that runs in place may have been
// declared as one: then each is as long as that.
std::int32_t callers_chunks(const collective::Program& program, std::int32_t rank, collective::Buffer buffer);

// So many bytes where the chunks are, zero until written; null where there is no room.
using AllocateBytes = std::function<std::shared_ptr<std::byte>(std::int64_t bytes)>;
std::shared_ptr<std::byte> allocate_here(std::int64_t bytes);

// Only finds places: nothing in them is read or written, so they may be a device's.
class ChunkMemory {
 public:
  // Memory of our own is given by `allocate`.
  ChunkMemory(const collective::Program& program, std::int32_t rank, AllocateBytes allocate = allocate_here);

  // Fails where memory of our own is needed and there is none.
  Status bind(const Call& call, const ChunkShape& shape);

  // Where steps write a buffer, and where they read it. `number` counts the chunks that steps move: of each a
  // step has a source, and maybe a target that it adds to.
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
  const std::vector<Copy>& beside() const { return beside_; }  // at any time: no step touches what they do
  const std::vector<Copy>& after() const { return after_; }

 private:
  // Grows and is kept for the next call.
  struct Own {
    std::shared_ptr<std::byte> data;
    std::int64_t bytes = 0;
  };
  using Buffer = collective::Buffer;

  bool runs_in_place(const Call& call, bool called_in_place) const;
  Status bind_in_place(const Call& call, bool called_in_place);
  Status bind_out_of_place(const Call& call, bool called_in_place);

  // Reads the caller's input as long as nothing is written in its place; false where that cannot be.
  bool read_early(const ChunkArea& input, collective::Placement placement);
  void copy_unwritten(const Call& call, const ChunkArea& input);

  ChunkArea& area(Buffer buffer) { return areas_[static_cast<std::size_t>(buffer)]; }
  // The caller's input, by the name that the program has for it.
  const ChunkArea& input_as(Buffer buffer) const { return inputs_[static_cast<std::size_t>(buffer)]; }
  // The layout of the caller's memory, and that of ours.
  ChunkArea layout(Buffer buffer, std::byte* base) const;
  Result<ChunkArea> own(Buffer buffer, std::int64_t chunks);
  // All chunks of a buffer, those of `from` to those of `to`.
  void copy(std::vector<Copy>& copies, Buffer buffer, const ChunkArea& from, const ChunkArea& to) const;

  const collective::Program& program_;
  const std::int32_t rank_;
  const AllocateBytes allocate_;
  bool idle_ = true;                   // has no steps
  bool writes_input_ = false;          // out of place
  bool writes_beyond_output_ = false;  // in place

  const ChunkShape* shape_ = nullptr;  // of the call at hand
  std::int64_t element_ = 0;
  std::array<ChunkArea, 3> areas_;
  std::array<ChunkArea, 2> inputs_;
  const EarlyReads* early_ = nullptr;
  std::array<Own, 3> owns_;
  std::vector<Copy> before_, beside_, after_;

  // By placement, once they were asked for: none where they cannot be found.
  std::array<std::optional<std::optional<EarlyReads>>, 2> known_reads_;
};

}  // namespace weft::comm
