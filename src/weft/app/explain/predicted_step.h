// weft/app/explain/predicted_step.h -- figures of a simulated step as text and as JSON.
#pragma once
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "weft/plan/cluster/cluster.h"
#include "weft/plan/graph/type.h"
#include "weft/planner/search/distribution/evaluator.h"
#include "weft/predict/sim/step/predict.h"

namespace weft::explain {

// `flops` over what all devices could do in `seconds` at peak rate; 0 if that is unknown.
double fraction_of_peak(double flops, double seconds, const cluster::Cluster& cluster, plan::DType precision,
                        int devices_per_rank);

std::string rounded_percent(double part);  // "41 %", "< 1 %"

// "node 1.2 GiB, gpu 30 MiB"
std::string sent_by_axis(const std::vector<sim::AxisTraffic>& traffic);

// {"step_seconds":..,"memory_per_rank_bytes":..,"memory":{..},..,"bytes_sent_by_axis":{..}}
nlohmann::ordered_json step_json(const search::Evaluation& evaluation);
// {"bound_by":..,"compute_seconds_by_source":{..},"collectives":[..]}
nlohmann::ordered_json reasons_json(const sim::Prediction& prediction);

}  // namespace weft::explain
