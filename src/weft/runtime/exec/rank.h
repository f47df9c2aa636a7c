// weft/runtime/exec/rank.h -- one rank of this machine: a device's memory, workers, and the program they run.
//
//   WEFT_TRY(rank, Rank::start(std::move(program), {.workers = 2}));
//   std::ranges::copy(batch, rank->input(rank->program().inputs.front()).begin());
//   WEFT_TRY_STATUS(rank->step());
//   WEFT_TRY(loss, rank->number(rank->program().outputs.front()));
//
// Where the program lies is the device's affair (device.h): values go there and come back through the rank.
// Where the host reaches that memory, nothing is copied on the way.
//
// A rank that is one of several is given an Exchanger, which moves what its program exchanges with the others
// (exchanger.h); a step then fails when one of them is lost.
//
// All memory is taken when the rank starts; a step allocates nothing, unless a node has no kernel and is
// computed by its definition, or exchanges of several streams are under way at once. The same contents and
// number of workers give the same bits.
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
#include "weft/runtime/exec/device_flights.h"
#include "weft/runtime/exec/exchanger.h"
#include "weft/runtime/exec/host_bytes.h"
#include "weft/runtime/exec/loading.h"

namespace weft::exec {

struct RankOptions {
  std::shared_ptr<device::Device> device = nullptr;  // none: the processor
  // Of ranks on one device: its kernels go before those of others; it leaves room for such.
  bool is_urgent = false, gives_way = false;
  int workers = 1;                // threads that launch; one where the device itself does the work
  std::int64_t memory_limit = 0;  // bytes it may take; 0: what the machine gives
  std::int64_t memory_held = 0;   // of the limit, by what lives beside it: what was learned before

  // Of a rank that is one of several. Must outlive it.
  Exchanger* exchanger = nullptr;
  bool overlap = true;  // exchanges run beside computing, on a thread for each stream that moves
  // Its memory is the exchanger's, which then copies nothing: where the device computes in the host's memory.
  bool shared_memory = false;
  bool oversubscribed = false;  // this machine runs more threads than it has processors
  std::int32_t ranks_here = 1;  // that share this machine's memory
  // Where what its program spills goes (program/tasks/spill.h); empty: the system's folder for temporary files.
  std::string spill_folder = {};
  // How it is called and watched on a device that does its work elsewhere (device_flights.h).
  FlightOptions flights = {};
};

class Rank {
 public:
  // Fails when the memory cannot be had or is more than the limit. Collective where there are exchanges.
  static Result<std::unique_ptr<Rank>> start(program::Program program, const RankOptions& options);
  ~Rank();
  Rank(const Rank&) = delete;
  Rank& operator=(const Rank&) = delete;

  const program::Program& program() const;

  // Where the host writes an input: every step from now on takes it from there.
  std::span<std::byte> input(const program::Port& port);

  // The inputs of the next step, brought to the device while a step runs:
  //
  //   rank.make_room_ahead()            once; false: not here, where the host reaches the device's memory or the
  //                                     limit leaves no room
  //   write input(), send_ahead()       by one thread, whatever the others do; after it input() may be written again
  //   take_ahead()                      between steps: the next one takes what was sent, not what input() holds
  bool make_room_ahead();
  Status send_ahead();
  void take_ahead();

  // What the next step finds in a parameter, a state or an input: given, or made by `make`, which is called
  // once, with room for it that holds what nobody knows.
  Status write(const program::Port& port, std::span<const std::byte> bytes);
  Status write(const program::Port& port, const std::function<void(std::span<std::byte>)>& make);

  // The same for many: they go when the next step begins, and its tasks wait for what they read alone (loading.h). The
  // bytes must stay until that step is over. Where the host reaches the device's memory they are there at once.
  Status load(std::span<const Loaded> weights, const LoadingGroups& groups,
              std::size_t staged_bytes = kStagedBytes);

  // What a port or buffer holds, until the next step.
  Result<HostBytes> read(const program::Port& port) const;
  Result<HostBytes> read(program::BufferId buffer) const;
  Result<double> number(const program::Port& port) const;  // its first element

  // The number of the next step, for what is said of it where it fails. From 1 on, unless told otherwise.
  void count_from(std::int64_t step);
  // Runs every task once. Fails where an exchange or the device does, when nothing runs any more: no later step can be.
  Status step();
  // The same, and writes down when each task began and ended; streams that move come after the last worker.
  Status step(program::Timeline& timeline);
  // Runs single tasks in a given order on the calling thread: for tests, and to find where a value
  // went wrong. The order must respect what tasks wait for.
  Status run_in_order(std::span<const std::uint32_t> tasks);

  // All that is kept from step to step, and putting it back later.
  Status keep(std::vector<std::byte>& bytes) const;
  Status put_back(std::span<const std::byte> bytes);

  // Gives memory back to the machine, where it is the rank's own: that of a step, or of a port. What was there
  // is lost. For the end, when what was learned is taken: no step comes after.
  void forget_step();
  void forget(const program::Port& port);

  int workers() const;
  std::size_t reference_units() const;  // nodes that have no kernel
  // All that it holds in memory, with what its workers have to themselves.
  std::int64_t bytes() const;

 private:
  struct State;
  explicit Rank(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace weft::exec
