// weft/parallel/train/local_norms.h -- batch norms that take their statistics from a share of the batch each.
//
//   x[b=1024,o,h,w]                             x  = split b=1024 into b=32, b_share=32
//   y = batch-norm x over b, h, w               y  = batch-norm x over b_share, h, w        32 means a channel
//                                               y  = merge b, b_share into b
//
// So a device that holds a share of the batch asks no other for its sums, as PyTorch has it unless told
// otherwise. That is another model, for one device too: it is proven and run as such. Running statistics
// become the means of what the shares make of them.
#pragma once
#include <cstdint>

#include "weft/base/result.h"
#include "weft/plan/graph/graph.h"

namespace weft::train {

// How many batch norms learn their statistics from the batch.
std::int64_t count_batch_norms(const plan::Graph& forward);

// The batch is the first index of an input that a norm averages over; a norm without one stays as it is. Fails
// where the batch does not go in so many shares.
Result<plan::Graph> with_local_norms(const plan::Graph& forward, std::int64_t shares);

}  // namespace weft::train
