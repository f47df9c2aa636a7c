// weft/search/least_of_plan.h -- what a distributed plan takes at least, without simulating it.
//
//   computing        each node's arithmetic, divided by the ranks of the axes it is cut on, at the peak rate
//   communicating    along each axis, the bytes that a rank must send, at the rate of its link
//
// Computing is one stream, and so is each axis; whichever is busy longest is a floor. A search that knows a
// faster plan need not look closer. Links get a quarter more than their figure, since measured collectives
// come out a little faster than some data sheets.
#pragma once
#include <functional>
#include <span>

#include "weft/distribute/distribute.h"

namespace weft::search {

// `peak`: multiply-adds, each as two, that a device does in a second; null: computing is not counted.
// REQUIRES: a price for each axis of the mesh, or none.
double least_of_plan(const distribute::DistributedPlan& plan, const std::function<double(plan::DType)>& peak,
                     std::span<const distribute::AxisPrice> prices);

}  // namespace weft::search
