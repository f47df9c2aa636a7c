// weft/runtime/exec/loading.h -- weights on their way to a device while the first step already computes.
//
//   copies   [a b c][d e][f g h i]             groups, in the order in which the step first reads them
//   step     .......[1][2]..[3]...[4]          a task waits for the group that it reads, not for all
//
// How many go together is partition/buckets.h's question: parameters that are loaded before a layer runs.
//
// What lies in page-locked memory is copied by the device alone, all of it asked for when the step begins. Anything
// else goes through two pieces of such memory: the host fills one while the device copies the other, just before it
// launches what reads it, so that filling, copying and computing go on at the same time.
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

// A tensor that a program keeps, and where the host has what belongs there.
struct Loaded {
  const program::Port* port = nullptr;
  std::span<const std::byte> bytes;
  bool is_page_locked = false;
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

// So many bytes go together, at least, in the same order: found at once, where nothing is known of a step's time.
LoadingGroups groups_of_bytes(const program::Program& program, std::span<const Loaded> weights,
                              std::size_t bytes);

inline constexpr std::size_t kStagedBytes = 8 << 20;  // of a piece of page-locked memory

class Loading {
 public:
  // How the host waits for the device: a device that is lost is not waited for for ever.
  using Wait = std::function<Status(device::Event&)>;

  // What the host has must stay until the step that follows is over.
  static Result<std::unique_ptr<Loading>> make(device::Device& device, const program::Program& program,
                                               device::Address memory, std::span<const Loaded> weights,
                                               const LoadingGroups& groups, std::size_t staged_bytes,
                                               Wait wait);

  // When the step's inputs are on their way: copies to a device go one after the other, and all tasks wait for those.
  void start();
  // Before a task's launch on a stream: it waits for what the task reads.
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
  std::vector<std::unique_ptr<device::Event>> there_;  // a group
  std::vector<std::int32_t> needs_;                    // by task: its last group; -1: none
  std::int32_t awaited_ = -1;
  std::vector<Staged> staged_;  // none: all is page-locked
  std::size_t staged_bytes_ = 0;
  std::size_t filled_ = 0;  // pieces, so far
  std::size_t given_ = 0;   // of `all_`
};

}  // namespace weft::exec
