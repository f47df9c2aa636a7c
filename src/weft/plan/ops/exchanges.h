// weft/plan/ops/exchanges.h -- operators between the ranks of a mesh, the identity in the global view
// (communication.h), and one rank's side of them (local_exchange.h).
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
