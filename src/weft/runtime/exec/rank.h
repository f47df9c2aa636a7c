// weft/runtime/exec/rank.h -- one rank on this machine: device memory, workers, and the program they run.
//
//   WEFT_TRY(rank, Rank::start(std::move(program), {.workers = 2}));
//   std::ranges::copy(batch, rank->input(rank->program().inputs.front()).begin());
//   WEFT_TRY_STATUS(rank->step());
//   WEFT_TRY(loss, rank->number(rank->program().outputs.front()));
//
// The device owns the program's memory (device.h); values go in and out through the rank. If that
// memory is host-accessible, nothing is copied.
//
// A rank of a distributed program gets an Exchanger, which exchanges values with the other ranks
// (exchanger.h). A step then fails if another rank is lost.
//
// All memory is allocated when the rank starts. A step allocates nothing, unless a node has no
// kernel and runs its reference implementation, or several streams have exchanges in flight. The
// same contents and number of workers give the same bits.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weft/base/result.h"
#include "weft/device/device.h"
#include "weft/program/tasks/program.h"
#include "weft/program/tasks/timeline.h"
#include "weft/runtime/exec/device_flight_recorder.h"
#include "weft/runtime/exec/exchanger.h"
#include "weft/runtime/exec/host_bytes.h"
#include "weft/runtime/exec/loading.h"

namespace weft::exec {

struct RankOptions {
  std::shared_ptr<device::Device> device = nullptr;  // null: the processor
  // Stream priority among ranks on one device: high (high_priority) or low (gives_way).
  bool high_priority = false, gives_way = false;
  int workers = 1;                // launching threads; 1 if launches are asynchronous
  std::int64_t memory_limit = 0;  // bytes; 0: what the machine has
  std::int64_t memory_held = 0;   // part of the limit in use elsewhere: existing weights

  // For distributed programs. Must outlive the rank.
  Exchanger* exchanger = nullptr;
  bool overlap = true;  // exchanges overlap compute, on one thread per exchange stream
  // Allocate from the exchanger, which then copies nothing, if the device computes in host memory.
  bool shared_memory = false;
  bool oversubscribed = false;  // more threads than processors on this machine
  std::int32_t ranks_here = 1;  // ranks that share this machine's memory
  // Folder for spilled tensors (program/tasks/spill.h); empty: the system's temporary folder.
  std::string spill_folder = {};
  // Identification and monitoring on a device with asynchronous launches (device_flight_recorder.h).
  FlightRecorderOptions flights = {};
};

class Rank {
 public:
  // Fails if the memory cannot be allocated or exceeds the limit. Collective if there are
  // exchanges.
  static Result<std::unique_ptr<Rank>> start(program::Program program, const RankOptions& options);
  ~Rank();
  Rank(const Rank&) = delete;
  Rank& operator=(const Rank&) = delete;

  const program::Program& program() const;

  // The host buffer of an input, read by every later step.
  std::span<std::byte> input(const program::Port& port);

  // Prefetches the inputs of the next step to the device while a step runs:
  //
  //   rank.make_prefetch_buffer()            once; false if the device's memory is host-accessible or the limit
  //                                     leaves no room
  //   write input(), send_prefetched()       on one thread, concurrently with others; then input() may
  //                                     be overwritten
  //   take_prefetched()                      between steps: the next step reads what was sent, not input()
  bool make_prefetch_buffer();
  Status send_prefetched();
  void take_prefetched();

  // Sets a parameter, state or input for the next step: to given bytes, or by `make`, which is
  // called once with an uninitialized buffer.
  Status write(const program::Port& port, std::span<const std::byte> bytes);
  Status write(const program::Port& port, const std::function<void(std::span<std::byte>)>& make);

  // The same for many tensors. They are sent when the next step starts, and each task waits only
  // for the tensors it reads (loading.h). The bytes must stay alive until that step ends. If the
  // device's memory is host-accessible they are copied at once.
  Status load(std::span<const Loaded> weights, const LoadingGroups& groups,
              std::size_t staged_bytes = kStagedBytes);

  // The contents of a port or buffer, valid until the next step.
  Result<HostBytes> read(const program::Port& port) const;
  Result<HostBytes> read(program::BufferId buffer) const;
  Result<double> number(const program::Port& port) const;  // the first element

  // Sets the number of the next step for error messages; the default is 1.
  void count_from(std::int64_t step);
  // Runs every task once. Fails if an exchange or the device fails; then nothing runs any more, and
  // all later steps fail.
  Status step();
  // The same, recording when each task ran. Movers are numbered after the last worker.
  Status step(program::Timeline& timeline);
  // Runs single tasks in the given order on the calling thread: for tests, and to find where a
  // value went wrong. The order must respect dependencies.
  Status run_in_order(std::span<const std::uint32_t> tasks);

  // Copies everything that is kept between steps, and restores it later.
  Status keep(std::vector<std::byte>& bytes) const;
  Status put_back(std::span<const std::byte> bytes);

  // Returns memory of a step or a port to the system, if the rank owns it; the contents are lost.
  // Only for the end, after the weights were read: no step may follow.
  void forget_step();
  void forget(const program::Port& port);

  int workers() const;
  std::size_t reference_units() const;  // nodes without a kernel
  // Total memory, including the workers' scratch memory.
  std::int64_t bytes() const;

 private:
  struct State;
  explicit Rank(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace weft::exec
