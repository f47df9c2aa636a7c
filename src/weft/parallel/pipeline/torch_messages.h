// weft/parallel/pipeline/torch_messages.h -- the actions of PyTorch's CSV that move data.
//
//   0F0,0F1,0B0          becomes   0UNSHARD,0F0,0SEND_F0,0F1,0SEND_F1,0RECV_B0,0B0,..
//   1F0,1B0,1F1                    1RECV_F0,1UNSHARD,1F0,1B0,1SEND_B0,1RECV_F1,1F1,..
//
// Messages between two ranks are delivered in the order in which both issue them, as with NCCL's
// point-to-point operations. So both rows must list the messages between them in the same order.
// PyTorch does not check a CSV that has messages.
#pragma once
#include "weft/parallel/pipeline/torch_action.h"

namespace weft::pipeline {

// The rank of each stage. Fails if the stages are not numbered without gaps, or if a stage is in
// several rows.
Result<std::vector<std::size_t>> ranks_of_stages(const TorchRows& rows);

// REQUIRES: the rows have passes only, each once and after the passes of its own stage that it needs.
// Fails if ranks wait for one another, with the first cell that waits.
Result<TorchRows> add_messages(const TorchRows& passes, const std::vector<std::size_t>& ranks);

// Fails on a missing, repeated or misplaced action, on different orders of messages in two rows, and
// if ranks wait for one another.
Status check_messages(const TorchRows& rows, const std::vector<std::size_t>& ranks);

}  // namespace weft::pipeline
