// weft/exec/gpu_exchanger.h -- exchanges of ranks that are threads of one process and lie on one GPU.
//
//   rank 0   [product]..........................[update]      whoever comes last to an exchange launches it for all:
//   rank 1   ...[product]──▶ one kernel over all ───▶ ...     one kernel that reads and writes every rank's memory
//   rank 2   [product]..........................[update]      (comm/gpu/gpu_direct.h), beside what they compute
//
// Nobody on the device waits for another rank, so ranks cannot keep each other from its processors. Messages between
// stages and all that ranks agree on go through the host, by the exchanger that they have as threads.
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
#include <thread>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "weft/base/result.h"
#include "weft/comm/gpu/gpu_direct.h"
#include "weft/device/cuda/gpu.h"
#include "weft/exec/comm_exchanger.h"
#include "weft/exec/exchanger.h"
#include "weft/plan/layout.h"

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
  struct Place {
    std::vector<comm::Call> calls;  // of those that have come, by place in the group
    std::vector<const program::Exchange*> exchanges;
    std::vector<std::int64_t> counts;
    std::size_t come = 0;
    bool moves = false;       // all have come, and what they gave is being read and written
    std::uint64_t times = 0;  // that it was done
    Status status;            // of the last time
    std::unique_ptr<comm::gpu::GpuDirect> ready;
    std::vector<std::pair<const void*, void*>> bound;  // the memory that it is ready for
  };

  const std::shared_ptr<device::cuda::Gpu> gpu_;
  std::mutex mutex_;  // of what follows
  std::condition_variable changed_;
  std::map<Key, Place> places_;
  std::optional<Error> stopped_;
};

class GpuExchanger final : public Exchanger {
 public:
  // `inner` and the meeting must outlive it. `rank` of the mesh.
  GpuExchanger(std::shared_ptr<GpuMeeting> meeting, CommExchanger& inner, plan::Mesh mesh, std::int32_t rank);
  // Whoever still waits for this rank hears that it is gone.
  ~GpuExchanger() override;

  bool is_on_device(const program::Exchange& exchange) const override;
  Status prepare(std::span<const program::Exchange* const> exchanges) override;
  Result<Handle> start(const program::Exchange& exchange, const std::byte* operand,
                       std::byte* result) override;
  bool test(Handle handle) override;
  Status wait(Handle handle) override;
  Status run(const program::Exchange& exchange, const std::byte* operand, std::byte* result) override;
  void stop(const Error& why) override;
  // The host's is no better for them.
  std::byte* allocate(std::size_t) override { return nullptr; }
  void free(std::byte*) override {}

 private:
  struct Mine {
    GpuMeeting::Key key;
    std::size_t place = 0, ranks = 1;  // in the group
    std::uint32_t number = 0;          // of the program's exchanges, which is its handle
  };
  // By whoever comes last, for all that wait.
  Status move(GpuMeeting::Place& place);
  Result<device::Stream*> stream();
  void leave(const Error& why);

  const std::shared_ptr<GpuMeeting> meeting_;
  CommExchanger& inner_;
  const plan::Mesh mesh_;
  const std::int32_t rank_;
  std::unordered_map<const program::Exchange*, Mine> mine_;
  std::vector<const program::Exchange*> by_number_;
  std::mutex mutex_;  // of what follows
  std::map<std::thread::id, std::unique_ptr<device::Stream>> streams_;
};

}  // namespace weft::exec
