// weft/predict/cost/exchange_seconds.h -- a collective's time on links of one latency and rate.
//
//   ring   all-reduce         2(n-1) steps, 2(n-1)/n of the bytes      gather, scatter: half of both
//   tree   all-reduce         2 log2(n) steps, twice the bytes         (two trees, each for half of them)
//   direct all-to-all         n-1 messages at once, (n-1)/n of the bytes
//   chain  broadcast          n-1 steps, the bytes once, in slices small enough that the steps overlap
//   one    permute            one message
//   one    halo               a message to each neighbour, at once: the borders
//
// In a group with several devices of each node, a ring uses all of their ports, and an all-to-all sends only the data
// for other nodes through them.
//
// Time is call + steps * step + sent / (reach * bandwidth), for the faster of two protocols. One
// puts flags among the data: it starts early and has low bandwidth. The other streams.
//
// The constants are fitted to NCCL's all-reduce within a node of eight A100s, 2 to 8 of them, 1 MiB
// to 1 GiB, as measured for vTrain (MICRO 2024, trace/a100). Over its 308 times the median error is
// 3 %, the worst 32 % (step_costs_test). Nothing was fitted for other collectives and other links.
// Devices with rates of their own (cluster/rates.h) have NCCL's measured times within a node instead.
// Across nodes 0.9 of the card's rate is reached, as Calculon assumes (systems/a100_80g.json).
#pragma once
#include <optional>

#include "weft/plan/cluster/device.h"
#include "weft/predict/cost/mesh_links.h"
#include "weft/predict/cost/step_costs.h"

namespace weft::cost {

// `bytes` is counted as in step_costs.h. The transfer time is infinite if the link has no rate and
// bytes must be sent.
ExchangeCost exchange_seconds(program::Exchange::Kind kind, const MeshLink& link, double bytes);

// NCCL's measured time within a node of these devices, if rates of the device have it (cluster/rates.h):
// among 2 to 8 of them, on links of about the rate that was measured.
std::optional<ExchangeCost> measured_exchange(const cluster::Device& device, program::Exchange::Kind kind,
                                              const MeshLink& link, double bytes);

}  // namespace weft::cost
