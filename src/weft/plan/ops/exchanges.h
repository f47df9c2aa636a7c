// weft/plan/ops/exchanges.h -- operators between the ranks of a mesh.
//
// In the global view they are the identity (communication.h); local_exchange.h is one rank's side.
#pragma once
#include "weft/plan/ops/operator.h"

namespace weft::ops {

const Operator& all_reduce();
const Operator& reduce_scatter();
const Operator& all_gather();
const Operator& all_to_all();
const Operator& slice_across();
const Operator& addends();
const Operator& halo();
const Operator& broadcast_from();
const Operator& permute_ranks();
const Operator& local_exchange();

}  // namespace weft::ops
