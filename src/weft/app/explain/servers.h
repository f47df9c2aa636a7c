// weft/app/explain/servers.h -- how summation servers reduce the ranks' traffic.
#pragma once
#include <cstdint>
#include <string>

#include "weft/plan/graph/layout.h"
#include "weft/predict/sim/step/predict.h"

namespace weft::explain {

// "2 sum 60 % of 14 all-reduces along node: 1.2 of their bytes pass the busiest card each way, 1.5
// without servers". Empty if there are no servers. `share`: whether concurrent groups share a
// server's card.
std::string print_servers(const sim::Prediction& prediction, const plan::Mesh& mesh, std::int64_t servers,
                          bool share);

}  // namespace weft::explain
