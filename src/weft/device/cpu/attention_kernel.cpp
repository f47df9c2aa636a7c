#include <algorithm>
#include <utility>

#include "weft/base/check.h"
#include "weft/device/cpu/attention.h"
#include "weft/device/cpu/call_kernel.h"
#include "weft/device/cpu/narrow.h"
#include "weft/plan/ops/attention_geometry.h"
#include "weft/plan/ops/sequences.h"

namespace weft::device::cpu {
namespace {

using program::Place;

// Where rows begin, and the distance between neighbours along `step`.
AttentionRows rows_at(const Place& place, std::span<const plan::Dim> heads, const plan::Dim& step,
                      std::int64_t width) {
  AttentionRows rows;
  rows.heads = {0};
  for (const plan::Dim& dim : heads) {
    const std::int64_t stride = place.stride(dim.index);
    std::vector<std::int64_t> next;
    for (const std::int64_t before : rows.heads)
      for (std::int64_t i = 0; i < dim.size; ++i) next.push_back(before + i * stride);
    rows.heads = std::move(next);
  }
  // A single row has no stride, but products require one of at least the row's width.
  rows.step = step.size == 1 ? std::max<std::int64_t>(width, 1) : place.stride(step.index);
  return rows;
}

class AttentionKernel final : public Kernel {
 public:
  AttentionKernel(const program::Program& program, const program::OperatorCall& call, std::byte* memory) {
    const plan::NodeView node = program.graph->view(call.node);
    how_.of = ops::attending(node);
    is_gradient_ = &node.op() == &ops::attention_gradient();
    for (const Place& place : call.operands) in_.emplace_back(place.dtype, address(program, place, memory));
    for (const Place& place : call.results) out_.emplace_back(place.dtype, address(program, place, memory));
    const ops::AttentionGeometry& of = how_.of;
    for (const std::vector<Place>* places : {&call.operands, &call.results})
      for (const Place& place : *places) how_.narrow |= is_narrow(place.dtype);
    how_.queries = of.along.size;
    how_.keys = of.over.size;
    how_.inner = ops::points_of(of.inner);
    how_.values = ops::points_of(of.values);
    // Heads that share keys and values are consecutive.
    ops::DimList heads;
    const auto is_apart = [&](const plan::Dim& dim) {
      return node.input_type(1).has(dim.index) && node.input_type(2).has(dim.index);
    };
    for (const bool apart : {true, false})
      for (const plan::Dim& dim : of.rows)
        if (dim.index != of.along.index && is_apart(dim) == apart) {
          heads.push_back(dim);
          if (!apart) how_.sharing *= dim.size;
        }
    const auto at = [&](const Place& place, const plan::Dim& step, std::int64_t width) {
      return rows_at(place, heads, step, width);
    };
    how_.q = at(call.operands[0], of.along, how_.inner);
    how_.k = at(call.operands[1], of.over, how_.inner);
    how_.v = at(call.operands[2], of.over, how_.values);
    how_.y = at(is_gradient_ ? call.operands[3] : call.results[0], of.along, how_.values);
    how_.log_sum = at(is_gradient_ ? call.operands[4] : call.results[1], of.along, 1);
    if (is_gradient_) {
      how_.dy = at(call.operands[5], of.along, how_.values);
      how_.dq = at(call.results[0], of.along, how_.inner);
      how_.dk = at(call.results[1], of.over, how_.inner);
      how_.dv = at(call.results[2], of.over, how_.values);
    }
    mask_ = is_gradient_ ? 6 : 3;
    if (mask_ < in_.size()) {
      how_.mask = at(call.operands[mask_], of.along, 0);
      how_.mask.step = call.operands[mask_].stride(of.along.index);  // 0: one mask for all queries
      how_.mask_step = call.operands[mask_].stride(of.over.index);
    }
  }

  std::int64_t scratch_bytes() const override {
    return static_cast<std::int64_t>(attention_scratch_bytes(how_));
  }

  void run(const program::Task& task, std::byte* scratch) const override {
    const std::uint8_t* const mask =
        mask_ < in_.size() ? reinterpret_cast<const std::uint8_t*>(in_[mask_].data) : nullptr;
    if (is_gradient_)
      attend_gradient(how_, task.begin, task.end, in_[0], in_[1], in_[2], in_[3],
                      reinterpret_cast<const float*>(in_[4].data), in_[5], mask, {out_[0], out_[1], out_[2]},
                      scratch);
    else
      attend(how_, task.begin, task.end, in_[0], in_[1], in_[2], mask, out_[0],
             reinterpret_cast<float*>(out_[1].data), scratch);
  }

 private:
  Attention how_;
  bool is_gradient_ = false;
  std::size_t mask_ = 0;  // the mask's operand number, if there is one
  std::vector<AttentionInput> in_;
  std::vector<AttentionOutput> out_;
};

}  // namespace

std::unique_ptr<Kernel> make_attention_kernel(const program::Program& program,
                                              const program::OperatorCall& call, std::byte* memory) {
  return std::make_unique<AttentionKernel>(program, call, memory);
}

}  // namespace weft::device::cpu
