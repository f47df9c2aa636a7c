// weft/runtime/exec/exchanger.h -- what a rank asks to have its values moved to and from other ranks.
//
//   program    [product][Exchange all_reduce][update]        the rank's crew hands over each Exchange when what
//                         │                                  it waits for is done
//                         ▼
//   Exchanger  start(exchange, operand, result) ──▶ handle   comm_exchanger.h: over weft::comm
//              wait(handle)
//
// Several streams (program/tasks/stream.h) may have an exchange under way at the same time, each its own thread that
// asks; those of one stream are asked for one at a time, in the program's order, which is the same on all
// ranks. run() is start() and wait() in one: for a rank with one stream, and without what a handle costs.
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

  // Whether it takes the exchange's places in the memory of the rank's device, and not in the host's.
  virtual bool is_on_device(const program::Exchange& exchange) const {
    (void)exchange;
    return false;
  }

  // Such an exchange, given to a stream of the device: it waits for what the stream was given before, and what the
  // stream is given later waits for it. Returns when all who take part have given theirs. REQUIRES: is_on_device().
  virtual Status enqueue(const program::Exchange& exchange, const std::byte* operand, std::byte* result,
                         device::Stream& stream) {
    (void)stream;
    return run(exchange, operand, result);
  }

  // Whether steps of all ranks can be written down as one (device/recording.h). Collective, as what follows is:
  // between the first two calls the ranks' streams write down what they are given; the third does it: it is done when
  // the event is.
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

  // Before the first step: all exchanges of the program, in its order. Collective.
  virtual Status prepare(std::span<const program::Exchange* const> exchanges) = 0;

  // An exchange under way, until wait() has been called for it.
  struct Handle {
    std::uint32_t number = 0;
  };
  // Both places are the exchange's until wait() returns. An error is final: whoever else takes part hears of
  // it, and every later exchange fails.
  virtual Result<Handle> start(const program::Exchange& exchange, const std::byte* operand,
                               std::byte* result) = 0;
  virtual bool test(Handle handle) = 0;  // whether wait() would return at once
  // Returns when the result is complete and the operand may be written again. Once for each handle.
  virtual Status wait(Handle handle) = 0;

  virtual Status run(const program::Exchange& exchange, const std::byte* operand, std::byte* result) {
    WEFT_TRY(handle, start(exchange, operand, result));
    return wait(handle);
  }

  // The step cannot go on, since something failed on this rank: what is under way fails, on all ranks that
  // take part in it, and so does all that comes later. From any thread.
  virtual void stop(const Error& why) = 0;

  // Memory that exchanges reach without copying, zero until written; null where there is no better than any
  // other. Freed with the exchanger at the latest, after the rank that lies in it.
  virtual std::byte* allocate(std::size_t bytes) = 0;
  virtual void free(std::byte* memory) = 0;
};

}  // namespace weft::exec
