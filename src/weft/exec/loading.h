// weft/exec/loading.h -- weights on their way to a device while the first step already computes.
//
//   copies   [a b c][d e][f g h i]             groups, in the order in which the step first reads them
//   step     .......[1][2]..[3]...[4]          a task waits for the group that it reads, not for all
//
// How many go together is partition/buckets.h's question: parameters that are loaded before a layer runs.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "weft/base/result.h"
#include "weft/device/device.h"
#include "weft/partition/buckets.h"
#include "weft/program/program.h"

namespace weft::exec {

// A tensor that a program keeps, and where the host has what belongs there.
struct Loaded {
  const program::Port* port = nullptr;
  std::span<const std::byte> bytes;
};

// What loading is planned with.
struct LoadingPace {
  partition::Wire wire = {.latency = 10e-6, .bytes_per_second = 50e9};  // to the device
  double step_seconds = 0;                                              // when all is there
};

// Which tensors go together, in the order of copying, each as numbers of `weights`. Found once for a program: it takes
// longer than many a step.
using LoadingGroups = std::vector<std::vector<std::size_t>>;
LoadingGroups loading_groups(const program::Program& program, std::span<const Loaded> weights,
                             const LoadingPace& pace);

class Loading {
 public:
  // What the host has must stay until the step that follows is over.
  static Result<std::unique_ptr<Loading>> make(device::Device& device, const program::Program& program,
                                               device::Address memory, std::span<const Loaded> weights,
                                               const LoadingGroups& groups);

  // When the step's inputs are on their way: copies to a device go one after the other, and all tasks wait for those.
  void start();
  // Before a task's launch on a stream: it waits for what the task reads.
  void await(std::uint32_t task, device::Stream& stream);
  Status finish() { return copies_->synchronize(); }

 private:
  struct Copy {
    device::Address to;
    std::span<const std::byte> from;
    std::size_t group = 0;
  };
  std::vector<Copy> all_;
  std::unique_ptr<device::Stream> copies_;
  std::vector<std::unique_ptr<device::Event>> there_;  // a group
  std::vector<std::int32_t> needs_;                    // by task: its last group; -1: none
  std::int32_t awaited_ = -1;
};

}  // namespace weft::exec
