// weft/runtime/exec/gpu_exchanger.h -- exchanges between ranks that are threads sharing one GPU.
//
//   rank 0   [product]..........................[update]      the last rank to arrive launches the
//   rank 1   ...[product]──▶ one kernel over all ───▶ ...     exchange: one kernel that reads and writes
//   rank 2   [product]..........................[update]      every rank's memory (comm/gpu/gpu_direct.h),
//                                                             beside the ranks' own kernels
//
// A rank arrives when it has launched the exchange's dependencies, not when they are done. The
// kernel's stream waits for the events of all ranks, and their streams wait for the kernel's event.
// So the host runs ahead of the device, and from the second step on, the step of all ranks is one
// recording. No kernel spins on the device, so ranks cannot starve each other of SMs. Messages
// between stages, and the agreement of ranks in prepare(), go through the host by the threads' own
// exchanger. Steps with messages are not recorded.
#pragma once
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "weft/base/result.h"
#include "weft/communication/comm/gpu/gpu_direct.h"
#include "weft/device/cuda/gpu.h"
#include "weft/device/recording.h"
#include "weft/plan/graph/layout.h"
#include "weft/runtime/exec/comm_exchanger.h"
#include "weft/runtime/exec/exchanger.h"

namespace weft::exec {

// The rendezvous of a run's ranks. Outlives their exchangers.
class GpuRendezvous {
 public:
  // Fails if the device is not a GPU.
  static Result<std::shared_ptr<GpuRendezvous>> make(const std::shared_ptr<device::Device>& device);
  explicit GpuRendezvous(std::shared_ptr<device::cuda::Gpu> gpu) : gpu_(std::move(gpu)) {}

 private:
  friend class GpuExchanger;

  // An axis, the lowest rank of a group along it, and the number of the exchange on that axis.
  using Key = std::tuple<std::string, std::int32_t, std::uint32_t>;
  // A barrier whose last rank acts for all.
  struct Gathering {
    std::size_t come = 0;
    std::uint64_t times = 0;  // completed rounds
    Status status;            // of the last round
  };
  struct Place {
    Gathering gathering;
    std::vector<comm::Call> calls;  // of the ranks that have arrived, by position in the group
    std::vector<const program::Exchange*> exchanges;
    std::vector<const device::Event*> given;  // recorded when their operands are ready
    std::vector<std::int64_t> counts;
    std::unique_ptr<comm::gpu::GpuDirect> ready;
    std::vector<std::pair<const void*, void*>> bound;  // the buffers that `ready` is bound to
    std::unique_ptr<device::Event> done;
  };
  // A recorded step of all ranks.
  struct Recorded {
    std::unique_ptr<device::Stream> stream;  // it was recorded on, and runs on
    std::unique_ptr<device::Event> begun, done;
    std::vector<std::unique_ptr<device::Event>> ended = {};  // one per stream of every rank
    std::unique_ptr<device::Recording> recording = nullptr;
  };

  // Waits until `ranks` have arrived; the last one calls `last` for all. REQUIRES: the lock is
  // held.
  template <class Last>
  Status gather(std::unique_lock<std::mutex>& lock, Gathering& gathering, std::size_t ranks,
                const Last& last) {
    if (stopped_) return *stopped_;
    const std::uint64_t before = gathering.times;
    if (++gathering.come < ranks) {
      changed_.wait(lock, [&] { return gathering.times != before || stopped_; });
      return gathering.times != before ? gathering.status : Status(*stopped_);
    }
    gathering.come = 0;
    gathering.status = last();
    ++gathering.times;
    changed_.notify_all();
    return gathering.status;
  }

  const std::shared_ptr<device::cuda::Gpu> gpu_;
  std::mutex mutex_;  // guards the members below
  std::condition_variable changed_;
  std::map<Key, Place> places_;
  std::size_t prepared_ = 0;  // number of ranks
  bool has_messages_ = false;
  Gathering all_;
  Recorded recorded_;
  std::optional<Error> stopped_;
};

class GpuExchanger final : public Exchanger {
 public:
  // `inner` and `meeting` must outlive it. `rank` is a rank of the mesh.
  GpuExchanger(std::shared_ptr<GpuRendezvous> meeting, CommExchanger& inner, plan::Mesh mesh,
               std::int32_t rank);
  // Ranks that still wait for this one fail with an error.
  ~GpuExchanger() override;

  bool is_on_device(const program::Exchange& exchange) const override;
  Status enqueue(const program::Exchange& exchange, const std::byte* operand, std::byte* result,
                 device::Stream& stream) override;
  bool records() override;
  Status start_recording(std::span<device::Stream* const> streams) override;
  Status end_recording(std::span<device::Stream* const> streams) override;
  Result<device::Event*> run_recorded() override;
  Status prepare(std::span<const program::Exchange* const> exchanges) override;
  Result<Handle> start(const program::Exchange& exchange, const std::byte* operand,
                       std::byte* result) override;
  bool test(Handle handle) override { return inner_.test(handle); }
  Status wait(Handle handle) override { return inner_.wait(handle); }
  Status run(const program::Exchange& exchange, const std::byte* operand, std::byte* result) override;
  void stop(const Error& why) override;
  // The memory of the inner exchanger has no advantage on a GPU.
  std::byte* allocate(std::size_t) override { return nullptr; }
  void free(std::byte*) override {}

 private:
  struct Mine {
    GpuRendezvous::Key key;
    std::size_t place = 0, ranks = 1;  // in the group
    std::unique_ptr<device::Event> given;
  };
  // Launches the exchange. Called by the last rank to arrive.
  Status move(GpuRendezvous::Place& place, device::Stream& stream);
  std::size_t all() const { return static_cast<std::size_t>(mesh_.ranks()); }
  void leave(const Error& why);

  const std::shared_ptr<GpuRendezvous> meeting_;
  CommExchanger& inner_;
  const plan::Mesh mesh_;
  const std::int32_t rank_;
  std::unordered_map<const program::Exchange*, Mine> mine_;
};

}  // namespace weft::exec
