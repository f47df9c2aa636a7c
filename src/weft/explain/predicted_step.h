// weft/explain/predicted_step.h -- a predicted step in words, whichever way its plan came about.
//
//   a step takes 21.4 ms, predicted: computing 17.9 ms, communicating 6.2 ms, 3.1 ms of it exposed; ..
//   times of computing: 100 % datasheet
//   bound by compute: 84 % of the step
//   memory 31.2 GiB a rank: parameters 10.2 GiB, optimizer 20.4 GiB, ..; 39 % of 80 GiB
#pragma once
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "weft/cluster/cluster.h"
#include "weft/plan/type.h"
#include "weft/search/distribution/evaluator.h"
#include "weft/sim/step/predict.h"

namespace weft::explain {

// Flops of a step that takes so long, over what all devices could do meanwhile; 0 where that is not known.
double part_of_peak(double flops, double seconds, const cluster::Cluster& cluster, plan::DType precision,
                    int devices_a_rank);

std::string rounded_percent(double part);  // "41 %", "< 1 %"

// What it takes, where the times come from, what bounds it: a line each.
std::string step_lines(const sim::Prediction& prediction, double of_peak);

// "parameters 10.2 GiB, optimizer 20.4 GiB": the kinds that take any.
std::string memory_kinds(const sim::MemoryByKind& memory);
// `memory_bytes`: that a rank may take; 0: not known.
std::string memory_line(const sim::Prediction& prediction, double memory_bytes);

// "node 1.2 GiB, gpu 30 MiB"
std::string sent_by_axis(const std::vector<sim::AxisTraffic>& traffic);

// Which algorithm each collective of the step runs, and what says how long that takes: a table, the longest
// first, and all of them only where `every`. Empty where there are none.
std::string collective_table(const sim::Prediction& prediction, bool every);

// {"step_seconds":..,"mfu":..,"memory_per_rank_bytes":..,"memory":{..},..,"bytes_sent_by_axis":{..}}
nlohmann::ordered_json step_json(const search::Evaluation& evaluation, double of_peak);
// {"bound_by":..,"compute_seconds_by_source":{..},"collectives":[..]}
nlohmann::ordered_json reasons_json(const sim::Prediction& prediction);

}  // namespace weft::explain
