// weft/parallel/train/local_norms.h -- batch norms with separate statistics per share of the batch.
//
//   x[b=1024,o,h,w]                             x  = split b=1024 into b=32, b_share=32
//   y = batch-norm x over b, h, w               y  = batch-norm x over b_share, h, w        32 means per channel
//                                               y  = merge b, b_share into b
//
// A device that holds a share of the batch then needs no sums from others, as in PyTorch without
// SyncBatchNorm. That is a different model, also on a single device: it is proven and run as such.
// Running statistics become the means of the shares' updates.
#pragma once
#include <cstdint>

#include "weft/base/result.h"
#include "weft/plan/graph/graph.h"

namespace weft::train {

// The number of batch norms that compute statistics from the batch.
std::int64_t count_batch_norms(const plan::Graph& forward);

// The batch is the first index of an input that a norm averages over; a norm without one is
// unchanged. Fails if the batch does not divide into this many shares.
Result<plan::Graph> with_local_norms(const plan::Graph& forward, std::int64_t shares);

}  // namespace weft::train
