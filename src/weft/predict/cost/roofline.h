// weft/predict/cost/roofline.h -- a lower bound of a node's time on one device.
//
//   time = launch + max(flops / peak rate, bytes / memory bandwidth)
//
// The bound of Williams et al., "Roofline" (CACM 2009): a kernel can neither compute faster than
// the arithmetic units nor move bytes faster than memory. It is a lower bound from data-sheet
// figures, not a prediction. Only a measurement tells how close a kernel comes to it.
#pragma once
#include "weft/plan/cluster/device.h"
#include "weft/plan/graph/graph.h"

namespace weft::cost {

enum class Limit : std::uint8_t { nothing, launch, compute, memory };

std::string_view name(Limit limit);

struct Estimate {
  double seconds = 0;
  Limit limit = Limit::nothing;  // the limiting resource
};

// The peak rate for a node of `dtype`: the rate of that dtype if the device states one, else that
// of the next wider dtype.
double peak_rate(const cluster::Device& device, plan::DType dtype);

// Views and sources take no time. Neither do nodes that run within another node's pass: see
// scaled_passes.h.
Estimate roofline(const plan::NodeView& node, const cluster::Device& device);

}  // namespace weft::cost
