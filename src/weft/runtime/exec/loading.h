// weft/runtime/exec/loading.h -- loads weights to a device while the first step already computes.
//
//   copies   [a b c][d e][f g h i]             groups, in the order in which the step first reads them
//   step     .......[1][2]..[3]...[4]          a task waits only for the groups that it reads
//
// partition/buckets.h determines the groups, like those of parameters that are gathered before a
// layer.
//
// Page-locked weights are copied by DMA, all enqueued at the start of the step. Other weights go
// through two page-locked staging buffers: the host fills one while the device copies the other,
// just before it launches the tasks that read them. So filling, copying and computing overlap.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "weft/base/result.h"
#include "weft/device/device.h"
#include "weft/parallel/partition/buckets.h"
#include "weft/program/tasks/program.h"

namespace weft::exec {

// A tensor that a program keeps, and its new contents on the host.
struct Loaded {
  const program::Port* port = nullptr;
  std::span<const std::byte> bytes;
  bool is_page_locked = false;
};

// Parameters for planning the groups.
struct LoadingPace {
  partition::Wire wire = {.latency = 10e-6, .bytes_per_second = 50e9};  // from host to device
  double step_seconds = 0;                                              // with all weights loaded
};

// Groups of tensors in copy order, as indices into `weights`. Compute once per program: it can take
// longer than a step.
using LoadingGroups = std::vector<std::vector<std::size_t>>;
LoadingGroups loading_groups(const program::Program& program, std::span<const Loaded> weights,
                             const LoadingPace& pace);

// Groups of at least `bytes` bytes in the same order. Fast, and needs no step time.
LoadingGroups groups_of_bytes(const program::Program& program, std::span<const Loaded> weights,
                              std::size_t bytes);

inline constexpr std::size_t kStagedBytes = 8 << 20;  // per staging buffer

class Loading {
 public:
  // Waits for an event, with a timeout in case the device is lost.
  using Wait = std::function<Status(device::Event&)>;

  // The host data must stay alive until the next step ends.
  static Result<std::unique_ptr<Loading>> make(device::Device& device, const program::Program& program,
                                               device::Address memory, std::span<const Loaded> weights,
                                               const LoadingGroups& groups, std::size_t staged_bytes,
                                               Wait wait);

  // Call after the step's inputs are enqueued: copies to a device are serialized, and all tasks
  // wait for the inputs.
  void start();
  // Call before a task's launch: makes the stream wait for the weights that the task reads.
  void await(std::uint32_t task, device::Stream& stream);
  Status finish();

 private:
  struct Copy {
    device::Address to;
    std::span<const std::byte> from;
    std::size_t group = 0;
  };
  struct Staged {
    std::unique_ptr<device::HostMemory> memory;
    std::unique_ptr<device::Event> copied;
  };
  void give_until(std::int32_t group);
  void give(const Copy& copy);

  std::vector<Copy> all_;
  Wait wait_;
  std::unique_ptr<device::Stream> copies_;
  std::unique_ptr<device::Event> all_there_;
  std::vector<std::unique_ptr<device::Event>> there_;  // per group
  std::vector<std::int32_t> needs_;                    // by task: the last group it needs; -1: none
  std::int32_t awaited_ = -1;
  std::vector<Staged> staged_;  // empty: all weights are page-locked
  std::size_t staged_bytes_ = 0;
  std::size_t filled_ = 0;  // staging buffers filled so far
  std::size_t given_ = 0;   // copies of `all_` enqueued so far
};

}  // namespace weft::exec
