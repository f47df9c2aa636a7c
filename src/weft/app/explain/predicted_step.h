// weft/app/explain/predicted_step.h -- what a predicted step is made of, whichever way its plan came about.
//
//   times of computing: 97 % measured, 3 % calibrated
//   memory 31.2 GiB a rank: parameters 10.2 GiB, optimizer 20.4 GiB, ..; 39 % of 80 GiB
//
// What it takes and what bounds it is said in summary.h.
#pragma once
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "weft/app/explain/lines.h"
#include "weft/plan/cluster/cluster.h"
#include "weft/plan/graph/type.h"
#include "weft/planner/search/distribution/evaluator.h"
#include "weft/predict/sim/step/predict.h"

namespace weft::explain {

// Flops of a step that takes so long, over what all devices could do meanwhile; 0 where that is not known.
double part_of_peak(double flops, double seconds, const cluster::Cluster& cluster, plan::DType precision,
                    int devices_a_rank);

std::string rounded_percent(double part);  // "41 %", "< 1 %"

// "97 % measured, 3 % calibrated": where the times of computing come from; empty where nothing computes.
std::string computing_sources(const sim::Prediction& prediction);

// "parameters 10.2 GiB, optimizer 20.4 GiB": the kinds that take any.
std::string memory_kinds(const sim::MemoryByKind& memory);
// `memory_bytes`: that a rank may take; 0: not known.
std::string memory_line(const sim::Prediction& prediction, double memory_bytes);

// "node 1.2 GiB, gpu 30 MiB"
std::string sent_by_axis(const std::vector<sim::AxisTraffic>& traffic);

// Which algorithm each collective of the step runs, and what says how long that takes: a table, the longest
// first, and all of them only where `every`. Empty where there are none.
std::string collective_table(const sim::Prediction& prediction, bool every, std::size_t width = kUsualWidth);

// {"step_seconds":..,"mfu":..,"memory_per_rank_bytes":..,"memory":{..},..,"bytes_sent_by_axis":{..}}
nlohmann::ordered_json step_json(const search::Evaluation& evaluation, double of_peak);
// {"bound_by":..,"compute_seconds_by_source":{..},"collectives":[..]}
nlohmann::ordered_json reasons_json(const sim::Prediction& prediction);

}  // namespace weft::explain
