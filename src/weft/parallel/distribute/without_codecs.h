// weft/parallel/distribute/without_codecs.h -- the plan with lossless codecs.
//
//   %8 = encode %7 {codec=int8, ..}
//   %9 = all-gather %8 {axis=gpu, along=d}       =>   %8 = all-gather %7 {axis=gpu, along=d}
//   %10 = decode %9 {codec=int8, ..}
//
// The plan then sends the numbers themselves, over the same links to the same ranks, and can be
// proven equal to the single-device plan. Codecs add an error with a known bound (ops/codec.h). The
// error kept for the next step (feedback.h) is then zero and left out.
#pragma once
#include "weft/base/result.h"
#include "weft/parallel/distribute/distribute.h"

namespace weft::distribute {

bool has_codecs(const plan::Graph& graph);

// Fails if codes are read by anything but all-gather, all-to-all and decode, or if decode reads
// something that was not encoded or that did not move along an axis or across a stage boundary.
Result<DistributedPlan> without_codecs(const DistributedPlan& plan);

}  // namespace weft::distribute
