// weft/communication/comm/direct/direct_plan.h -- how one rank runs a call.
//
// Decided when the call starts, from its size, the accessibility of its buffers, and the
// DirectOptions.
#pragma once
#include <cstdint>

#include "weft/communication/comm/direct/direct.h"
#include "weft/communication/comm/direct/direct_layout.h"

namespace weft::comm {

class DirectOperation;

struct DirectPlan {
  // The same on all ranks.
  bool small = false;           // through the mailboxes
  bool two_shot = false;        // each rank reduces a share, then all gather the shares
  bool through_kernel = false;  // a reduction that reads private inputs through the OS kernel
  bool non_temporal = false;    // long results use non-temporal stores

  // May differ by rank.
  bool gives = false, takes = false;
  bool overwrites = false;                         // its input with its output
  Offer offer = Offer::nothing;                    // where peers find its data
  bool output_offered = false;                     // peers may write into its output
  DirectGroup::Place input_place, output_place;    // if offered
  DirectAlgorithm way = DirectAlgorithm::mailbox;  // for reporting
};

// REQUIRES: the operation's call and blocks are set.
void plan_call(DirectOperation& operation, const DirectOptions& wish);

// Whether this rank's private input is read through the OS kernel, by request or because a trial
// found it faster. Also finds out whether that is possible. All ranks get the same result for a
// reduction. REQUIRES: `small`, `two_shot`, `gives` and `overwrites` of the plan are set.
bool is_read_through_kernel(DirectOperation& operation, const DirectOptions& wish);

}  // namespace weft::comm
