// weft/communication/comm/chunk/chunk_machine.h -- runs one rank's part of a chunk program on real memory.
//
//   block 0   send input[0] ──▶ receive_reduce_copy_send input[2] ──▶ receive input[1]    one cursor a block:
//   block 1   ...                                                                         step, slice, state
//
// All blocks of the rank are stepped in turn by whoever calls step(); none has a thread. A block walks all
// its steps once for every slice of a chunk that fits a slot, as GPU runtimes do and the simulator assumes.
// Elements are dealt to chunks by chunk_extent(), so counts need not divide; empty chunks send nothing.
// A sum is taken in the order that the program prescribes, whatever the timing: the same bits every run.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "weft/base/result.h"
#include "weft/collectives/chunks/program.h"
#include "weft/communication/comm/call.h"
#include "weft/communication/comm/operation.h"
#include "weft/communication/transport/endpoint.h"

namespace weft::comm {

// A program made ready for one rank of one group: its steps, scratch memory, and open connections.
// Several calls may use it one after another, not at the same time.
class ReadyProgram {
 public:
  // Collective. `program` has passed collective::check with at most `capacity.slots` slots and has as many
  // ranks as the endpoint. Keeps a reference to the endpoint.
  // `least_piece`: as ChunkPieces::least_bytes.
  static Result<std::unique_ptr<ReadyProgram>> open(std::shared_ptr<const collective::Program> program,
                                                    transport::Endpoint& endpoint,
                                                    const transport::Capacity& capacity,
                                                    std::int64_t least_piece = 0);
  ~ReadyProgram();

  const collective::Program& program() const;

  // REQUIRES: check(call) holds, the call is of the program's kind (or the program is custom and kind is
  // custom: then `count` is elements a chunk), and the operation before it is done. A program that runs only
  // in place (out of place) is given a copy (a buffer) where the call is not.
  // chunk_memory.h says when. What fails at once (no memory, counts that do not fit) is an operation that has
  // failed. After a failure, or when an operation is given up, messages may still be under way: the program
  // is not to be started again. avg of a custom collective stays a sum.
  std::unique_ptr<Operation> start(const Call& call);

 private:
  struct State;
  explicit ReadyProgram(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace weft::comm
