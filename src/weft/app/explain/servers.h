// weft/app/explain/servers.h -- what spare hosts add up for the ranks of a step.
#pragma once
#include <cstdint>
#include <string>

#include "weft/plan/graph/layout.h"
#include "weft/predict/sim/step/predict.h"

namespace weft::explain {

// "2 add up 60 % of 14 all-reduces along node: 1.2 of their bytes pass the busiest card each way, 1.5 without servers";
// empty where there are none. `share`: whether groups that sum at once share a server's card.
std::string print_servers(const sim::Prediction& prediction, const plan::Mesh& mesh, std::int64_t servers,
                          bool share);

}  // namespace weft::explain
