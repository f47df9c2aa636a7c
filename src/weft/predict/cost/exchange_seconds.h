// weft/predict/cost/exchange_seconds.h -- how long a collective takes on links of one latency and bandwidth.
//
//   ring   all-reduce         2(n-1) steps, 2(n-1)/n of the bytes      gather, scatter: half of both
//   tree   all-reduce         2 log2(n) steps, twice the bytes         (two trees, each for half of them)
//   direct all-to-all         n-1 messages at once, (n-1)/n of the bytes
//   chain  broadcast          n-1 steps, the bytes once, cut so small that the steps overlap
//   one    permute            one message
//   one    halo               a message to each neighbour, at once: the borders
//
// Time is call + steps * step + sent / (reach * bandwidth), by the better of two protocols: one puts flags
// among the data, starts soon and is slow; the other streams. The constants are fitted to NCCL's
// all-reduce within a node of eight A100s, 2 to 8 of them, 1 MiB to 1 GiB, as measured for vTrain (MICRO
// 2024, trace/a100): over its 308 times the median error is 3 %, the worst 32 % (step_costs_test). For other
// collectives and other links nothing was fitted; across nodes 0.9 of the card's rate is reached, as Calculon
// takes it (systems/a100_80g.json).
#pragma once
#include "weft/predict/cost/mesh_links.h"
#include "weft/predict/cost/step_costs.h"

namespace weft::cost {

// Of `bytes` as step_costs.h counts them. Transfer is infinite where bytes must go and the link has no rate.
ExchangePrice exchange_seconds(program::Exchange::Kind kind, const MeshLink& link, double bytes);

}  // namespace weft::cost
