// weft/planner/search/pipeline/splits.h -- splits of a cluster into pipeline, data and model parallelism.
//
//   node=16, gpu=8    node: 4 stages x 4 data,  gpu: 8 model
//
// Stages take a factor of one axis. The model is sliced along inner axes first, since its exchanges
// are the most frequent. The batch is sliced along the rest.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "weft/plan/cluster/cluster.h"

namespace weft::search {

// The factors of each cluster axis used for stages, data and model parallelism, in this order.
struct Split {
  struct Axis {
    std::int64_t stages = 1, data = 1, model = 1;
  };
  std::vector<Axis> axes;

  std::int64_t stages() const {
    std::int64_t product = 1;
    for (const Axis& axis : axes) product *= axis.stages;
    return product;
  }
  std::int64_t data() const {
    std::int64_t product = 1;
    for (const Axis& axis : axes) product *= axis.data;
    return product;
  }
  std::string model_text() const {
    std::string text;
    for (const Axis& axis : axes) text += fmt::format("{} ", axis.model);
    return text;
  }
  std::string text() const {
    std::string text;
    for (const Axis& axis : axes) text += fmt::format("{}x{}x{} ", axis.stages, axis.data, axis.model);
    return text;
  }
};

struct SplitQuestion {
  const cluster::Cluster* cluster = nullptr;
  std::int64_t parts = 1;            // of the model: upper limit on stages
  bool cuts_model = true;            // whether the model has an index to slice
  std::vector<std::string> fixed;    // axes that hints constrain
  std::vector<std::string> batches;  // of those: axes on which hints slice the batch
};

std::vector<Split> find_splits(const SplitQuestion& question);

}  // namespace weft::search
