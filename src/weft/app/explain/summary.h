// weft/app/explain/summary.h -- what a reader wants to know first, in six lines.
//
//   plan      DP 32 (ZeRO-1 over 8)
//   chosen    node=4: slice b; gpu=8: slice b, shard optimizer
//   step      13.2 ms, predicted; 41 % of the peak rate; computing 9.9 ms, waiting for others 3.3 ms
//   bound by  compute: 75 % of the step; no plan takes less than 5.4 ms
//   memory    11.2 GiB a rank, 14 % of 80 GiB: activations 9.1 GiB, optimizer 1.4 GiB
//   try       precision = bf16: h100 computes 15 times as fast in it
//
// What is to be tried is said only where the figures at hand bear it out.
#pragma once
#include <string>

#include "weft/app/explain/distributed.h"
#include "weft/app/explain/explanation.h"

namespace weft::explain {

struct Summary {
  std::string parallelism, chosen, step, bound, memory, next;  // what is empty is left out
};

Summary summarize(const Explanation& explanation);
Summary summarize(const DistributedExplanation& explanation);
// Step, bound and memory of a plan of which no more is known. `memory_bytes`: that a rank may take; 0: not known.
Summary summarize(const sim::Prediction& prediction, double of_peak, double memory_bytes);

std::string print_summary(const Summary& summary, std::size_t width);

// "TRAIN gpt2 ON pod (b = 64, s = 1024), precision bf16": what the summary is of. `target` may be empty.
std::string headline(std::string_view task, std::string_view model, std::string_view target,
                     const std::vector<std::pair<std::string, std::int64_t>>& sizes,
                     const std::vector<std::pair<std::string, std::string>>& settings);

}  // namespace weft::explain
