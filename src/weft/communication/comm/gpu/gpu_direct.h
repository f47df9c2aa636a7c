// weft/communication/comm/gpu/gpu_direct.h -- collectives among ranks with memory on one GPU, in
// one kernel.
//
//   all_reduce       piece:  sources  input of 0, of 1, of 2     targets  output of 0, of 1, of 2
//   reduce_scatter   piece r:  sources  block r of every input   targets  output of r
//   all_gather       piece r:  sources  input of r               targets  block r of every output
//
// Every input is read once and every output written once: the bandwidth bound, which no
// message-based algorithm reaches. Sources are combined in rank order: results are bitwise
// reproducible and equal to the CPU's (reduction.h).
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "weft/base/result.h"
#include "weft/communication/comm/call.h"
#include "weft/device/cuda/gpu.h"

namespace weft::comm::gpu {

// A range of elements that is combined from all sources and written to all targets.
struct DirectPiece {
  std::int64_t elements = 0;
  std::vector<const std::byte*> sources;
  std::vector<std::byte*> targets;
};

// The pieces of a collective. calls[rank] differ in their memory, and for all_to_all in their
// counts. Pieces may run concurrently in any order, unless `through`: then all must be read before
// any is written, since an input overlaps an output. Empty for unsupported kinds: custom, barrier,
// send.
struct DirectPlan {
  std::vector<DirectPiece> pieces;
  bool through = false;
};
std::optional<DirectPlan> direct_plan(std::span<const Call> calls);

class GpuDirect {
 public:
  // REQUIRES: check() holds for every call; their GPU memory stays allocated.
  static Result<std::unique_ptr<GpuDirect>> bind(std::shared_ptr<device::cuda::Gpu> gpu,
                                                 std::span<const Call> calls);
  ~GpuDirect();

  void start(device::Stream& stream);

 private:
  struct State;
  explicit GpuDirect(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace weft::comm::gpu
