#include "weft/device/cpu/kernel.h"

#include <algorithm>
#include <array>

#include "weft/base/check.h"
#include "weft/device/cpu/call_kernel.h"
#include "weft/device/cpu/lanes.h"
#include "weft/device/cpu/narrow.h"
#include "weft/device/cpu/product_kernel.h"
#include "weft/device/cpu/row_kernel.h"
#include "weft/device/cpu/strided_copy.h"
#include "weft/program/tasks/items.h"

namespace weft::device::cpu {
namespace {

class CopyKernel final : public Kernel {
 public:
  CopyKernel(const program::Program& program, const program::Copy& copy, std::byte* memory)
      : from_(address(program, copy.from, memory)),
        to_(address(program, copy.to, memory)),
        from_dtype_(copy.from.dtype),
        dtype_(copy.to.dtype),
        elements_(copy.to.elements()) {
    for (std::size_t i = 0; i < copy.to.axes.size(); ++i) {
      if (copy.to.axes[i].size == 1) continue;
      sizes_.push_back(copy.to.axes[i].size);
      from_strides_.push_back(copy.from.axes[i].stride);
      to_strides_.push_back(copy.to.axes[i].stride);
    }
  }

  void run(const program::Task&, std::byte*) const override {
    // When dtypes differ, both sides are contiguous and have the same layout.
    if (is_narrow(from_dtype_) && dtype_ == plan::DType::f32)
      return widen(from_dtype_, from_, reinterpret_cast<float*>(to_), elements_);
    if (from_dtype_ == plan::DType::f32 && is_narrow(dtype_))
      return narrow(dtype_, reinterpret_cast<const float*>(from_), to_, elements_);
    const auto width = static_cast<std::size_t>(plan::size_in_bytes(dtype_));
    if (sizes_.size() <= kMostCopyRank)
      return strided_copy(sizes_, from_, from_strides_, to_, to_strides_, width);
    std::array<std::int64_t, plan::kLargestRank> at = {};
    std::int64_t elements = 1;
    for (const std::int64_t size : sizes_) elements *= size;
    for (std::int64_t k = 0; k < elements; ++k) {
      std::int64_t from = 0, to = 0;
      for (std::size_t i = 0; i < sizes_.size(); ++i)
        from += at[i] * from_strides_[i], to += at[i] * to_strides_[i];
      std::copy_n(from_ + from * static_cast<std::int64_t>(width), width,
                  to_ + to * static_cast<std::int64_t>(width));
      for (std::size_t i = sizes_.size(); i-- > 0;) {
        if (++at[i] < sizes_[i]) break;
        at[i] = 0;
      }
    }
  }

 private:
  const std::byte* const from_;
  std::byte* const to_;
  const plan::DType from_dtype_, dtype_;
  const std::int64_t elements_;
  std::vector<std::int64_t> sizes_, from_strides_, to_strides_;
};

class CombineKernel final : public Kernel {
 public:
  CombineKernel(const program::Program& program, const program::Combine& combine, std::byte* memory)
      : combine_(combine),
        partials_(reinterpret_cast<const float*>(memory + program.buffer(combine.partials).offset)),
        memory_(address(program, combine.result, memory)) {}

  std::int64_t scratch_bytes() const override {
    return is_narrow(combine_.result.dtype) ? combine_.elements * static_cast<std::int64_t>(sizeof(float))
                                            : 0;
  }

  void run(const program::Task&, std::byte* scratch) const override {
    if (!is_narrow(combine_.result.dtype)) return add_up(reinterpret_cast<float*>(memory_));
    add_up(reinterpret_cast<float*>(scratch));
    narrow(combine_.result.dtype, reinterpret_cast<const float*>(scratch), memory_, combine_.elements);
  }

 private:
  void add_up(float* result) const {
    const std::int64_t n = combine_.elements;
    std::copy_n(partials_, n, result);
    for (std::int64_t c = 1; c < combine_.chunks; ++c) {
      const std::array<LaneOperand, 2> both = {{{result, false}, {partials_ + c * n, false}}};
      const Lane lane = combine_.monoid == plan::Monoid::max   ? Lane::maximum
                        : combine_.monoid == plan::Monoid::min ? Lane::minimum
                                                               : Lane::add;
      run_lane(lane, n, both.data(), result);
    }
    if (combine_.divisor == 1) return;
    const auto divisor = static_cast<float>(combine_.divisor);
    const std::array<LaneOperand, 2> both = {{{result, false}, {&divisor, true}}};
    run_lane(Lane::div, n, both.data(), result);
  }

  const program::Combine combine_;
  const float* const partials_;
  std::byte* const memory_;
};

// Programs for accelerators fuse updates into one unit; here they run one after the other.
class UpdatesKernel final : public Kernel {
 public:
  UpdatesKernel(const program::Program& program, const program::Updates& updates, std::byte* memory) {
    for (const program::OperatorCall& call : updates.calls) {
      const plan::NodeView node = program.graph->view(call.node);
      WEFT_CHECK(!is_narrow(call.operands[1].dtype), "processors read gradients of f32");
      program::Unit own;
      own.kernel = call;
      add(make_call_kernel(program, own, memory), program::item_count(node));
      if (call.results.size() > node.result_count())
        add(std::make_unique<CopyKernel>(program, program::Copy{call.results.front(), call.results.back()},
                                         memory),
            1);
    }
  }

  std::int64_t scratch_bytes() const override {
    std::int64_t most = 0;
    for (const Part& part : parts_) most = std::max(most, part.kernel->scratch_bytes());
    return most;
  }
  void run(const program::Task&, std::byte* scratch) const override {
    for (const Part& part : parts_) part.kernel->run({.begin = 0, .end = part.items}, scratch);
  }

 private:
  struct Part {
    std::unique_ptr<Kernel> kernel;
    std::int64_t items = 1;
  };
  void add(std::unique_ptr<Kernel> kernel, std::int64_t items) {
    parts_.push_back({std::move(kernel), items});
  }

  std::vector<Part> parts_;
};

}  // namespace

std::unique_ptr<Kernel> make_kernel(const program::Program& program, const program::Unit& unit,
                                    std::byte* memory) {
  if (std::holds_alternative<program::MatrixProduct>(unit.kernel))
    return make_product_kernel(program, unit, memory);
  if (std::holds_alternative<program::RowLoop>(unit.kernel)) return make_row_kernel(program, unit, memory);
  if (std::holds_alternative<program::OperatorCall>(unit.kernel))
    return make_call_kernel(program, unit, memory);
  if (const auto* updates = std::get_if<program::Updates>(&unit.kernel))
    return std::make_unique<UpdatesKernel>(program, *updates, memory);
  if (const auto* copy = std::get_if<program::Copy>(&unit.kernel))
    return std::make_unique<CopyKernel>(program, *copy, memory);
  if (std::holds_alternative<program::Exchange>(unit.kernel)) return nullptr;
  return std::make_unique<CombineKernel>(program, std::get<program::Combine>(unit.kernel), memory);
}

}  // namespace weft::device::cpu
