// weft/runtime/exec/exchanger.h -- the interface through which a rank exchanges values with other ranks.
//
//   program    [product][Exchange all_reduce][update]        the rank's crew passes on each Exchange when its
//                         │                                  dependencies are done
//                         ▼
//   Exchanger  start(exchange, operand, result) ──▶ handle   comm_exchanger.h: over weft::comm
//              wait(handle)
//
// Several streams (program/tasks/stream.h) may each have one exchange in flight, each from its own
// thread. The exchanges of one stream are issued one at a time in program order, which is the same
// on all ranks. run() combines start() and wait() without the cost of a handle, for ranks with one
// stream.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

#include "weft/base/result.h"
#include "weft/device/device.h"
#include "weft/program/tasks/program.h"

namespace weft::exec {

class Exchanger {
 public:
  virtual ~Exchanger() = default;

  // Whether the exchange reads and writes device memory rather than host memory.
  virtual bool is_on_device(const program::Exchange& exchange) const {
    (void)exchange;
    return false;
  }

  // Enqueues such an exchange on a device stream, in stream order. Returns when all participants
  // have enqueued theirs. REQUIRES: is_on_device().
  virtual Status enqueue(const program::Exchange& exchange, const std::byte* operand, std::byte* result,
                         device::Stream& stream) {
    (void)stream;
    return run(exchange, operand, result);
  }

  // Whether the steps of all ranks can be recorded as one graph (device/recording.h). Collective,
  // like the functions below. Between start_recording() and end_recording() the ranks' streams
  // record what they are given. run_recorded() launches the recording and returns the event of its
  // completion.
  virtual bool records() { return false; }
  virtual Status start_recording(std::span<device::Stream* const> streams) {
    (void)streams;
    return {};
  }
  virtual Status end_recording(std::span<device::Stream* const> streams) {
    (void)streams;
    return {};
  }
  virtual Result<device::Event*> run_recorded() { return nullptr; }

  // Called before the first step with all exchanges of the program, in its order. Collective.
  virtual Status prepare(std::span<const program::Exchange* const> exchanges) = 0;

  // An exchange in flight, until wait() returns.
  struct Handle {
    std::uint32_t number = 0;
  };
  // Both buffers belong to the exchange until wait() returns. Errors are final: all participants
  // are notified, and every later exchange fails.
  virtual Result<Handle> start(const program::Exchange& exchange, const std::byte* operand,
                               std::byte* result) = 0;
  virtual bool test(Handle handle) = 0;  // whether wait() would return at once
  // Returns when the result is complete and the operand may be overwritten. Call once per handle.
  virtual Status wait(Handle handle) = 0;

  virtual Status run(const program::Exchange& exchange, const std::byte* operand, std::byte* result) {
    WEFT_TRY(handle, start(exchange, operand, result));
    return wait(handle);
  }

  // Aborts the step after a failure on this rank. Exchanges in flight fail on all participants, and
  // so do all later ones. Callable from any thread.
  virtual void stop(const Error& why) = 0;

  // Zero-initialized memory that exchanges can access without copying; null if there is none. Freed
  // at the latest with the exchanger, after the rank that uses it.
  virtual std::byte* allocate(std::size_t bytes) = 0;
  virtual void free(std::byte* memory) = 0;
};

}  // namespace weft::exec
