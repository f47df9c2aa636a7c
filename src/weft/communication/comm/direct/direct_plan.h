// weft/communication/comm/direct/direct_plan.h -- how one rank does a call.
//
// Decided when the call starts: from its size, from whether its buffers can be reached, and from what was
// asked for.
#pragma once
#include <cstdint>

#include "weft/communication/comm/direct/direct.h"
#include "weft/communication/comm/direct/direct_layout.h"

namespace weft::comm {

class DirectOperation;

struct DirectPlan {
  // Alike on all ranks.
  bool small = false;           // through the mailboxes
  bool two_shot = false;        // each rank reduces a share, then all collect the shares
  bool through_kernel = false;  // a reduction reads private inputs through the kernel, and is cut for that
  bool non_temporal = false;    // what is not read again soon is written by non-temporal stores

  // This rank's own affair.
  bool gives = false, takes = false;
  bool overwrites = false;                       // its input with its output
  Offer offer = Offer::nothing;                  // where others find its data
  bool output_offered = false;                   // others may write into its output
  DirectGroup::Place input_place, output_place;  // as far as they are offered
  DirectWay way = DirectWay::mailbox;            // for people
};

// REQUIRES: the operation's call and blocks are set.
void plan_call(DirectOperation& operation, const DirectWish& wish);

// Whether this rank's private input is read through the kernel: as asked for, or as a trial found quicker.
// Also finds out whether it can be read at all. For a reduction all ranks get the same answer. REQUIRES: of
// the plan, `small`, `two_shot`, `gives` and `overwrites` are set.
bool is_read_through_kernel(DirectOperation& operation, const DirectWish& wish);

}  // namespace weft::comm
