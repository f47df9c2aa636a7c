// weft/predict/cost/uncertainty.h -- how far a predicted step or peak of memory may be off.
//
//   within 9 % for 8 of 10 runs like this; least known: links across nodes
//
// The stack's constants say how well predictions of its runs held (`weft validate`). Devices whose rates are from a data
// sheet and links that were never measured add to that, as independent errors do: by their squares.
#pragma once
#include <string>

#include "weft/plan/cluster/cluster.h"

namespace weft::cost {

struct Uncertainty {
  double share = 0;         // half of the 80 % interval, relative to the predicted value
  std::string least_known;  // the input that contributes most
  std::string measure;      // what would halve it
};

// `has_experts`: the number of tokens per expert is not known before the run.
Uncertainty step_uncertainty(const cluster::Cluster& cluster, bool has_experts = false);
Uncertainty memory_uncertainty(const cluster::Cluster& cluster);

}  // namespace weft::cost
