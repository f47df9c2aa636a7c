// weft/predict/cost/roofline.h -- how long a node takes on one device, at best.
//
//   time = launch + max(flops / peak rate, bytes / memory bandwidth)
//
// The bound of Williams et al., "Roofline" (CACM 2009): a kernel can neither compute faster than
// the arithmetic units nor move bytes faster than memory. It is a lower bound from data-sheet
// figures, not a prediction: how near a kernel comes to it only a measurement tells.
#pragma once
#include "weft/plan/cluster/device.h"
#include "weft/plan/graph/graph.h"

namespace weft::cost {

enum class Limit : std::uint8_t { nothing, launch, compute, memory };

std::string_view name(Limit limit);

struct Estimate {
  double seconds = 0;
  Limit limit = Limit::nothing;  // what bounds it
};

// The peak rate that a node of `dtype` runs at: that dtype's own where the device states one, else
// the next wider format's.
double peak_rate(const cluster::Device& device, plan::DType dtype);

// Views and sources take no time, nor does what runs within the pass of another node: see scaled_passes.h.
Estimate roofline(const plan::NodeView& node, const cluster::Device& device);

}  // namespace weft::cost
