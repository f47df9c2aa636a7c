// weft/communication/comm/chunk/chunk_cursor.h -- execution state of one threadblock.
//
//   slice 0   step 0  step 1  step 2   | slice 1   step 0 ...        a slice of every chunk fits a slot
//                     ^ message 0 of 2: as many chunks of the step as fit a slot together
//
// A message is moved as a whole; one that cannot be moved now is retried later.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "weft/collectives/chunks/program.h"
#include "weft/communication/comm/chunk/chunk_memory.h"
#include "weft/communication/comm/chunk/chunk_shape.h"
#include "weft/communication/transport/connection.h"

namespace weft::comm {

// Bounds on message length. A rank forwards a chunk only after all of it has arrived, and until
// then the next link is idle. So between machines a chunk is split even if it fits a slot, but not
// into tiny messages.
struct MessageLimits {
  std::int64_t slot_bytes = 0;   // upper bound
  std::int64_t least_bytes = 0;  // chunks are split down to this; 0: only if they exceed a slot

  // The message length for a program whose longest chunk has `chunk_bytes`.
  std::int64_t longest(std::int64_t chunk_bytes) const;
};

// State that all threadblocks of a rank share during one call.
class ChunkPass {
 public:
  ChunkPass(const ChunkMemory& memory, const ChunkShape& shape, ElementType type, ReduceOp op,
            const MessageLimits& pieces);

  const ChunkMemory& memory() const { return memory_; }
  ElementType type() const { return type_; }
  ReduceOp op() const { return op_; }
  std::int64_t slices() const { return slices_; }
  std::int64_t slice_bytes() const { return slice_bytes_; }  // of the longest chunk
  std::int32_t chunks_per_message() const { return chunks_per_message_; }

  // The byte range of one slice within a chunk; `number` indexes the chunks that steps move.
  collective::Extent slice(std::int64_t slice, std::int64_t number) const;

 private:
  const ChunkMemory& memory_;
  const ChunkShape& shape_;
  const ElementType type_;
  const ReduceOp op_;
  const std::int64_t element_;
  std::int64_t slices_ = 1, slice_bytes_ = 0;
  std::int32_t chunks_per_message_ = 1;
};

class ChunkCursor {
 public:
  // `first_chunk`: the number of chunks moved by the steps of preceding threadblocks.
  ChunkCursor(const collective::Threadblock& block, transport::Outgoing* out, transport::Incoming* in,
              std::int64_t first_chunk);

  void begin(std::uint64_t label, const ChunkPass& pass);

  // Moves one message, or performs one step without a message. False: blocked.
  bool advance(const ChunkPass& pass, std::span<const ChunkCursor> blocks);

  bool sends() const { return out_ != nullptr; }
  bool finished() const { return slice_ == slices_; }
  std::int64_t slice() const { return slice_; }
  std::int64_t moved_bytes() const { return moved_bytes_; }  // by the last advance()
  std::int32_t waiting_for() const;                          // a rank, or -1
  std::int64_t pieces_done() const { return position(); }
  std::int64_t pieces() const;

 private:
  // A range of a message that is contiguous in all its buffers.
  struct Run {
    std::int64_t message = 0;  // offset in the message
    std::byte *source = nullptr, *target = nullptr;
    const std::byte* addend = nullptr;  // second operand of `reduce`: the target before the step
    std::int64_t bytes = 0;
  };
  enum class Wait : std::uint8_t { nothing, block, incoming, outgoing };

  const collective::Step& step() const { return block_->steps[static_cast<std::size_t>(step_)]; }
  // Number of completed steps, over all slices.
  std::int64_t position() const { return slice_ * static_cast<std::int64_t>(block_->steps.size()) + step_; }
  bool may_begin(std::span<const ChunkCursor> blocks);
  void find_runs(const ChunkPass& pass);
  bool move(const ChunkPass& pass);
  bool receive(const ChunkPass& pass);
  bool send(bool from_target);
  bool reduce_through(const ChunkPass& pass);
  void end_message(const ChunkPass& pass);

  const collective::Threadblock* block_;
  transport::Outgoing* out_;
  transport::Incoming* in_;
  const std::int64_t first_chunk_;

  std::int64_t slice_ = 0, slices_ = 0;
  std::int32_t step_ = 0;
  std::int32_t chunk_ = 0;  // first chunk of the message within the step
  bool begun_ = false;      // the step's dependency is satisfied; `runs_` describe the message
  bool received_ = false;   // the message, for a step that also forwards it
  Wait wait_ = Wait::nothing;
  std::int64_t step_chunk_ = 0;  // number of the step's first chunk
  std::int64_t published_ = 0;   // position() after the last step that publishes
  std::int64_t moved_bytes_ = 0;
  std::int64_t message_bytes_ = 0;
  std::vector<Run> runs_;
};

}  // namespace weft::comm
