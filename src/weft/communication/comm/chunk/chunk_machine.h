// weft/communication/comm/chunk/chunk_machine.h -- executes one rank's part of a chunk program on
// host memory.
//
//   block 0   send input[0] ──▶ receive_reduce_copy_send input[2] ──▶ receive input[1]    a cursor per block:
//   block 1   ...                                                                         step, slice, state
//
// step() runs all threadblocks of the rank round-robin on the calling thread. A threadblock runs
// all its steps once per slice of a chunk that fits a slot, as GPU runtimes do and the simulator
// assumes. Elements are divided into chunks by chunk_extent(), so counts need not be divisible;
// empty chunks send nothing. Sums are taken in the order that the program prescribes, whatever the
// timing: results are bitwise reproducible.
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

// A program prepared for one rank of one group: its steps, scratch memory and open connections.
// Calls may use it one after another, not concurrently.
class ReadyProgram {
 public:
  // Collective. `program` has passed collective::check with at most `capacity.slots` slots and has
  // as many ranks as the endpoint. Keeps a reference to the endpoint. `least_piece`: see
  // MessageLimits::least_bytes.
  static Result<std::unique_ptr<ReadyProgram>> open(std::shared_ptr<const collective::Program> program,
                                                    transport::Endpoint& endpoint,
                                                    const transport::Capacity& capacity,
                                                    std::int64_t least_piece = 0);
  ~ReadyProgram();

  const collective::Program& program() const;

  // REQUIRES: check(call) holds, the call is of the program's kind (or both are custom: then
  // `count` is elements per chunk), and the previous operation is done. A program that runs only in
  // place (out of place) gets a copy (a buffer) if the call is not: see chunk_memory.h. An
  // immediate failure (out of memory, unsuitable counts) is returned as a failed operation. After a
  // failure, or when an operation is abandoned, messages may still be in flight: the program must
  // not be started again. avg of a custom collective stays a sum.
  std::unique_ptr<Operation> start(const Call& call);

 private:
  struct State;
  explicit ReadyProgram(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace weft::comm
