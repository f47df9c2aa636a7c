// weft/device/cuda/launch.h -- kernel launches: parameters, grid sizes, and kernels over a range.
#pragma once
#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "weft/device/cuda/gpu.h"

namespace weft::device::cuda {

// The parameters of a launch, in the kernel's order.
class Parameters {
 public:
  Parameters& pointer(DevicePointer value) { return word(static_cast<std::uint64_t>(value)); }
  Parameters& whole(std::int64_t value) { return word(static_cast<std::uint64_t>(value)); }
  // Tensor maps come before all other parameters.
  Parameters& tensor(const TensorMap& value) {
    tensors_.push_back(value);
    return *this;
  }

  Code launch(const LaunchContext& at, Handle function, std::array<unsigned, 2> grid,
              std::array<unsigned, 2> block, std::int64_t shared_bytes = 0) {
    return at.gpu.driver().launch(function, grid[0], grid[1], 1, block[0], block[1], 1,
                                  static_cast<unsigned>(shared_bytes), at.stream, addresses().data(),
                                  nullptr);
  }
  // For kernels whose blocks wait for each other.
  Code launch_cooperative(const LaunchContext& at, Handle function, unsigned blocks, unsigned threads) {
    return at.gpu.driver().launch_cooperative(function, blocks, 1, 1, threads, 1, 1, 0, at.stream,
                                              addresses().data());
  }

 private:
  std::vector<void*> addresses() {
    std::vector<void*> addresses;
    for (TensorMap& value : tensors_) addresses.push_back(&value);
    for (std::uint64_t& value : words_) addresses.push_back(&value);
    return addresses;
  }
  Parameters& word(std::uint64_t value) {
    words_.push_back(value);
    return *this;
  }
  std::vector<TensorMap> tensors_;
  std::vector<std::uint64_t> words_;  // all other parameters have 8 bytes
};

// Number of blocks with `each` items per block. One pass over the items keeps blocks short, so that
// high-priority work need not wait. Beyond the largest grid, kernels loop with the grid as stride.
inline unsigned blocks_for(std::int64_t items, std::int64_t each) {
  constexpr std::int64_t kMost = INT32_MAX;
  return static_cast<unsigned>(std::clamp<std::int64_t>((items + each - 1) / each, 1, kMost));
}

// A kernel `weft_call(pointers.., long long begin, long long end)` with a grid-stride loop over
// elements, or over items that one block each computes.
class RangeKernel final : public Kernel {
 public:
  struct Shape {
    std::int64_t each = 1;  // threads per item
    bool by_block = false;  // one block of 256 threads per item
    std::int64_t items = 0;
  };

  RangeKernel(Handle function, std::vector<DevicePointer> pointers, Shape shape)
      : function_(function), pointers_(std::move(pointers)), shape_(shape) {}

  Code launch(const LaunchContext& at, const program::Task&) const override {
    const std::int64_t begin = 0, end = shape_.items;
    if (begin >= end) return 0;
    Parameters parameters;
    for (const DevicePointer value : pointers_) parameters.pointer(value);
    parameters.whole(begin).whole(end);
    const unsigned blocks =
        shape_.by_block ? blocks_for(end - begin, 1) : blocks_for((end - begin) * shape_.each, 256);
    return parameters.launch(at, function_, {blocks, 1}, {256, 1});
  }

 private:
  const Handle function_;
  const std::vector<DevicePointer> pointers_;
  const Shape shape_;
};

}  // namespace weft::device::cuda
