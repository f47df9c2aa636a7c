// weft/planner/search/pipeline/splits.h -- for what the devices of a cluster are used: stages, batches, the model.
//
//   node=16, gpu=8    node: 4 stages x 4 batches,  gpu: 8 of the model
//
// Stages take a factor of one axis. The model is cut along inner axes first, since its exchanges are the most
// frequent, and the batch along what is left.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "weft/plan/cluster/cluster.h"

namespace weft::search {

// How the devices are used: a factor of each cluster axis for stages, batches and the model, in this order.
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
  std::int64_t parts = 1;            // of the model: there are no more stages
  bool cuts_model = true;            // it has an index to cut it along
  std::vector<std::string> fixed;    // axes that hints speak of
  std::vector<std::string> batches;  // of those, the ones on which they slice the batch
};

std::vector<Split> find_splits(const SplitQuestion& question);

}  // namespace weft::search
