// weft/runtime/exec/gpu_exchanger.h -- exchanges of ranks that are threads of one process and lie on one GPU.
//
//   rank 0   [product]..........................[update]      whoever comes last to an exchange launches it for all:
//   rank 1   ...[product]──▶ one kernel over all ───▶ ...     one kernel that reads and writes every rank's memory
//   rank 2   [product]..........................[update]      (comm/gpu/gpu_direct.h), beside what they compute
//
// Ranks come when they have launched what it waits for, not when that is done: the kernel's stream waits for the
// events of all, and theirs for the kernel's. So the host is ahead of the device, and from the second step on the
// step of all ranks is one recording. Nobody on the device waits by turning round, so ranks cannot keep each other
// from its processors. Messages between stages and all that ranks agree on go through the host, by the exchanger
// that they have as threads; steps with messages are not recorded.
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

// Where the ranks of a run meet. Outlives their exchangers.
class GpuMeeting {
 public:
  // Fails where the device is no GPU.
  static Result<std::shared_ptr<GpuMeeting>> make(const std::shared_ptr<device::Device>& device);
  explicit GpuMeeting(std::shared_ptr<device::cuda::Gpu> gpu) : gpu_(std::move(gpu)) {}

 private:
  friend class GpuExchanger;

  // An axis, the first rank of a group along it, and which of the axis' exchanges.
  using Key = std::tuple<std::string, std::int32_t, std::uint32_t>;
  // Some come, the last does something for all.
  struct Gathering {
    std::size_t come = 0;
    std::uint64_t times = 0;  // that all had come
    Status status;            // of the last time
  };
  struct Place {
    Gathering gathering;
    std::vector<comm::Call> calls;  // of those that have come, by place in the group
    std::vector<const program::Exchange*> exchanges;
    std::vector<const device::Event*> given;  // when their operands are there
    std::vector<std::int64_t> counts;
    std::unique_ptr<comm::gpu::GpuDirect> ready;
    std::vector<std::pair<const void*, void*>> bound;  // the memory that it is ready for
    std::unique_ptr<device::Event> done;
  };
  // A step of all ranks.
  struct Recorded {
    std::unique_ptr<device::Stream> stream;  // on which it was written down, and runs
    std::unique_ptr<device::Event> begun, done;
    std::vector<std::unique_ptr<device::Event>> ended = {};  // of every stream of every rank
    std::unique_ptr<device::Recording> recording = nullptr;
  };

  // With the lock held: waits until `ranks` have come; the last calls `last` for all.
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
  std::mutex mutex_;  // of what follows
  std::condition_variable changed_;
  std::map<Key, Place> places_;
  std::size_t prepared_ = 0;  // ranks
  bool has_messages_ = false;
  Gathering all_;
  Recorded recorded_;
  std::optional<Error> stopped_;
};

class GpuExchanger final : public Exchanger {
 public:
  // `inner` and the meeting must outlive it. `rank` of the mesh.
  GpuExchanger(std::shared_ptr<GpuMeeting> meeting, CommExchanger& inner, plan::Mesh mesh, std::int32_t rank);
  // Whoever still waits for this rank hears that it is gone.
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
  // The host's is no better for them.
  std::byte* allocate(std::size_t) override { return nullptr; }
  void free(std::byte*) override {}

 private:
  struct Mine {
    GpuMeeting::Key key;
    std::size_t place = 0, ranks = 1;  // in the group
    std::unique_ptr<device::Event> given;
  };
  // By whoever comes last, for all that wait.
  Status move(GpuMeeting::Place& place, device::Stream& stream);
  std::size_t all() const { return static_cast<std::size_t>(mesh_.ranks()); }
  void leave(const Error& why);

  const std::shared_ptr<GpuMeeting> meeting_;
  CommExchanger& inner_;
  const plan::Mesh mesh_;
  const std::int32_t rank_;
  std::unordered_map<const program::Exchange*, Mine> mine_;
};

}  // namespace weft::exec
