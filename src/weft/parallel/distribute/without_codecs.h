// weft/parallel/distribute/without_codecs.h -- a plan as it would be if its codecs lost nothing.
//
//   %8 = encode %7 {codec=int8, ..}
//   %9 = all-gather %8 {axis=gpu, along=d}       =>   %8 = all-gather %7 {axis=gpu, along=d}
//   %10 = decode %9 {codec=int8, ..}
//
// What travels is then the numbers themselves, along the same wires to the same ranks: that is what can be proven
// equal to the plan of one device. What codecs add to that is an error with a bound (ops/codec.h). What they lose and
// is kept for the next step (feedback.h) is then nothing, and left out.
#pragma once
#include "weft/base/result.h"
#include "weft/parallel/distribute/distribute.h"

namespace weft::distribute {

bool has_codecs(const plan::Graph& graph);

// Fails where codes are read by something else than all-gather, all-to-all and decode, or where decode makes of them what
// was not encoded, or did not cross an axis or a stage boundary.
Result<DistributedPlan> without_codecs(const DistributedPlan& plan);

}  // namespace weft::distribute
