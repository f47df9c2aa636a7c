#include "weft/device/cpu/kernel.h"

#include <algorithm>
#include <array>

#include "weft/device/cpu/call_kernel.h"
#include "weft/device/cpu/lanes.h"
#include "weft/device/cpu/product_kernel.h"
#include "weft/device/cpu/row_kernel.h"
#include "weft/device/cpu/strided_copy.h"

namespace weft::device::cpu {
namespace {

class CopyKernel final : public Kernel {
 public:
  CopyKernel(const program::Program& program, const program::Copy& copy, std::byte* memory)
      : from_(address(program, copy.from, memory)),
        to_(address(program, copy.to, memory)),
        dtype_(copy.to.dtype) {
    for (std::size_t i = 0; i < copy.to.axes.size(); ++i) {
      if (copy.to.axes[i].size == 1) continue;
      sizes_.push_back(copy.to.axes[i].size);
      from_strides_.push_back(copy.from.axes[i].stride);
      to_strides_.push_back(copy.to.axes[i].stride);
    }
  }

  void run(const program::Task&, std::byte*) const override {
    const auto width = static_cast<std::size_t>(plan::size_in_bytes(dtype_));
    if (sizes_.size() <= kMostCopyRank && width != 2)
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
  const plan::DType dtype_;
  std::vector<std::int64_t> sizes_, from_strides_, to_strides_;
};

class CombineKernel final : public Kernel {
 public:
  CombineKernel(const program::Program& program, const program::Combine& combine, std::byte* memory)
      : combine_(combine),
        partials_(reinterpret_cast<const float*>(memory + program.buffer(combine.partials).offset)),
        result_(reinterpret_cast<float*>(address(program, combine.result, memory))) {}

  void run(const program::Task&, std::byte*) const override {
    const std::int64_t n = combine_.elements;
    std::copy_n(partials_, n, result_);
    for (std::int64_t c = 1; c < combine_.chunks; ++c) {
      const std::array<LaneOperand, 2> both = {{{result_, false}, {partials_ + c * n, false}}};
      const Lane lane = combine_.monoid == plan::Monoid::max   ? Lane::maximum
                        : combine_.monoid == plan::Monoid::min ? Lane::minimum
                                                               : Lane::add;
      run_lane(lane, n, both.data(), result_);
    }
    if (combine_.divisor == 1) return;
    const auto divisor = static_cast<float>(combine_.divisor);
    const std::array<LaneOperand, 2> both = {{{result_, false}, {&divisor, true}}};
    run_lane(Lane::div, n, both.data(), result_);
  }

 private:
  const program::Combine combine_;
  const float* const partials_;
  float* const result_;
};

}  // namespace

std::unique_ptr<Kernel> make_kernel(const program::Program& program, const program::Unit& unit,
                                    std::byte* memory) {
  if (std::holds_alternative<program::MatrixProduct>(unit.kernel))
    return make_product_kernel(program, unit, memory);
  if (std::holds_alternative<program::RowLoop>(unit.kernel)) return make_row_kernel(program, unit, memory);
  if (std::holds_alternative<program::OperatorCall>(unit.kernel))
    return make_call_kernel(program, unit, memory);
  if (const auto* copy = std::get_if<program::Copy>(&unit.kernel))
    return std::make_unique<CopyKernel>(program, *copy, memory);
  if (std::holds_alternative<program::Exchange>(unit.kernel)) return nullptr;
  return std::make_unique<CombineKernel>(program, std::get<program::Combine>(unit.kernel), memory);
}

}  // namespace weft::device::cpu
