// weft/communication/comm/gpu/gpu_direct.h -- collectives among ranks that reach each other's memory, in one kernel.
//
//   all_reduce       piece:  sources  input of 0, of 1, of 2     targets  output of 0, of 1, of 2
//   reduce_scatter   piece r:  sources  block r of every input   targets  output of r
//   all_gather       piece r:  sources  input of r               targets  block r of every output
//
// Every input is read once and every output written once, which no algorithm with messages can have: this is the
// memory's limit. Sources are combined in the order of the ranks: the same bits every time, and those of the
// processor's reduction.h.
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

// Elements that are the same everywhere: combined from all sources, written to all targets.
struct DirectPiece {
  std::int64_t elements = 0;
  std::vector<const std::byte*> sources;
  std::vector<std::byte*> targets;
};

// What a collective is as pieces; calls[rank] differ in their memory, and all_to_all where its counts do. Pieces may
// be taken in any order and at once, unless `through`: then all are read before any is written, since an input
// lies where an output does. Nothing for kinds that are none: custom, barrier, send.
struct DirectPlan {
  std::vector<DirectPiece> pieces;
  bool through = false;
};
std::optional<DirectPlan> direct_plan(std::span<const Call> calls);

class GpuDirect {
 public:
  // REQUIRES: check() holds for every call; their memory, of the GPU, must stay where it is.
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
