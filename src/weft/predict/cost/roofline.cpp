#include "weft/predict/cost/roofline.h"

#include <algorithm>
#include <initializer_list>

#include "weft/predict/cost/scaled_passes.h"

namespace weft::cost {

std::string_view name(Limit limit) {
  switch (limit) {
    case Limit::nothing: return "";
    case Limit::launch: return "launch";
    case Limit::compute: return "compute";
    case Limit::memory: return "memory";
  }
  return "";
}

double peak_rate(const cluster::Device& device, plan::DType dtype) {
  using enum cluster::Precision;
  const auto first = [&](std::initializer_list<cluster::Precision> formats) {
    for (const cluster::Precision format : formats)
      if (device.rate(format) > 0) return device.rate(format);
    return *std::ranges::max_element(device.flops_per_second);
  };
  switch (dtype) {
    case plan::DType::f64: return first({f64, f32});
    case plan::DType::f32: return first({f32, f64});
    case plan::DType::bf16: return first({bf16, f16, f32, f64});
    case plan::DType::f16: return first({f16, bf16, f32, f64});
    case plan::DType::f8e4m3:
    case plan::DType::f8e5m2: return first({f8, bf16, f16, f32, f64});
    default: return first({f32, f64});  // integers run on the ordinary units
  }
}

Estimate roofline(const plan::NodeView& node, const cluster::Device& device) {
  if (node.input_count() == 0 || node.op().is_view() || is_within_scaled_pass(node)) return {};
  const plan::Work work = node.op().work(node);
  // A contraction runs on the units for its operands' dtype; so do all other nodes here.
  const double compute = work.flops / peak_rate(device, node.input_type(0).dtype);
  const double memory = work.bytes() / device.memory_bytes_per_second;
  const double busy = std::max(compute, memory);
  const Limit limit = device.launch_seconds > busy ? Limit::launch
                      : compute >= memory          ? Limit::compute
                                                   : Limit::memory;
  return {device.launch_seconds + busy, limit};
}

}  // namespace weft::cost
