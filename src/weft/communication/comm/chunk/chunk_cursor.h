// weft/communication/comm/chunk/chunk_cursor.h -- one threadblock on its way through its steps.
//
//   slice 0   step 0  step 1  step 2   | slice 1   step 0 ...        a slice of every chunk fits a slot
//                     ^ message 0 of 2: as many chunks of the step as fit a slot together
//
// A message is moved whole or not at all; what cannot move now is tried again later.
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

// How long a message may be. A rank passes a chunk on only when all of it has come, and until then the next
// line is idle. So across machines a chunk is sent in pieces even where it fits a slot; no piece is tiny.
struct ChunkPieces {
  std::int64_t slot_bytes = 0;   // none is longer
  std::int64_t least_bytes = 0;  // down to this a chunk is cut into pieces; 0: only where it does not fit

  // Of a message of a program whose longest chunk is so long.
  std::int64_t longest(std::int64_t chunk_bytes) const;
};

// What all threadblocks of a rank have in common during one call.
class ChunkPass {
 public:
  ChunkPass(const ChunkMemory& memory, const ChunkShape& shape, ElementType type, ReduceOp op,
            const ChunkPieces& pieces);

  const ChunkMemory& memory() const { return memory_; }
  ElementType type() const { return type_; }
  ReduceOp op() const { return op_; }
  std::int64_t slices() const { return slices_; }
  std::int64_t slice_bytes() const { return slice_bytes_; }  // of the longest
  std::int32_t chunks_a_message() const { return chunks_a_message_; }

  // The bytes of one slice of a chunk, from its beginning; `number` counts the chunks that steps move.
  collective::Extent slice(std::int64_t slice, std::int64_t number) const;

 private:
  const ChunkMemory& memory_;
  const ChunkShape& shape_;
  const ElementType type_;
  const ReduceOp op_;
  const std::int64_t element_;
  std::int64_t slices_ = 1, slice_bytes_ = 0;
  std::int32_t chunks_a_message_ = 1;
};

class ChunkCursor {
 public:
  // `first_chunk`: how many chunks the steps of the threadblocks before this one move.
  ChunkCursor(const collective::Threadblock& block, transport::Outgoing* out, transport::Incoming* in,
              std::int64_t first_chunk);

  void begin(std::uint64_t label, const ChunkPass& pass);

  // Moves one message, or takes one step that moves none. False: nothing can go on.
  bool advance(const ChunkPass& pass, std::span<const ChunkCursor> blocks);

  bool sends() const { return out_ != nullptr; }
  bool finished() const { return slice_ == slices_; }
  std::int64_t slice() const { return slice_; }
  std::int64_t moved_bytes() const { return moved_bytes_; }  // by the last advance()
  std::int32_t waiting_for() const;                          // a rank, or -1
  std::int64_t pieces_done() const { return position(); }
  std::int64_t pieces() const;

 private:
  // A stretch of a message that is in one piece wherever it is.
  struct Run {
    std::int64_t message = 0;  // where it begins there
    std::byte *source = nullptr, *target = nullptr;
    const std::byte* addend = nullptr;  // what a `reduce` adds to: the target, as it was before
    std::int64_t bytes = 0;
  };
  enum class Wait : std::uint8_t { nothing, block, incoming, outgoing };

  const collective::Step& step() const { return block_->steps[static_cast<std::size_t>(step_)]; }
  // How many steps lie behind, over all slices.
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
  std::int32_t chunk_ = 0;  // of the step, the first of the message
  bool begun_ = false;      // has waited for what the step waits for; `runs_` are of the message
  bool received_ = false;   // the message of a step that sends it on
  Wait wait_ = Wait::nothing;
  std::int64_t step_chunk_ = 0;  // number of the step's first chunk
  std::int64_t published_ = 0;   // what position() was after the last step that did
  std::int64_t moved_bytes_ = 0;
  std::int64_t message_bytes_ = 0;
  std::vector<Run> runs_;
};

}  // namespace weft::comm
