// weft/parallel/partition/hybrid.h -- stages with replicas, a tensor degree, and recomputation layer by layer.
//
// A stage of d replicas of t devices each takes for a sample
//
//   (compute + 2 (bytes of edges across its border + syncs of their ends) / bandwidth) / d
//   + 4 (d-1)/d * parameters / bandwidth / micro-batches of a batch
//
// and holds, for every layer, `held` bytes for each of its micro-batches in flight, of which it has
// ceil(replicas of this stage and all after it / d), and `kept` bytes. Every layer may run in several ways, as it
// is or recomputed. The cost is that of the slowest stage. After Piper (Tarnawski et al., NeurIPS 2021).
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "weft/base/result.h"
#include "weft/parallel/partition/ideals.h"

namespace weft::partition {

struct Way {
  std::string name;
  double seconds = 0;         // of a sample
  double parameters = 0;      // bytes
  double held = 0, kept = 0;  // bytes: for each micro-batch in flight, and once
  std::vector<double> from,
      to;  // bytes to sync for each incoming and outgoing edge that crosses, in their order
};

struct HybridNode {
  std::int64_t id = 0;
  struct Degree {
    std::int32_t devices = 1;
    std::vector<Way> ways;
  };
  std::vector<Degree> degrees;  // ascending
};

struct Hybrid {
  struct Edge {
    std::int32_t from = 0, to = 0;  // places in `nodes`
    double bytes = 0;
  };
  std::vector<HybridNode> nodes;
  std::vector<Edge> edges;
  std::int32_t devices = 1, micro_batches = 1;
  double memory = 0, bandwidth = 0;  // bytes, bytes/s

  Dag dag() const;
};

struct HybridStage {
  std::vector<std::int32_t> nodes;  // places in Hybrid::nodes, ascending
  std::vector<std::int32_t> ways;   // of each of them
  std::int32_t replicas = 1, degree = 1;
};

struct HybridAnswer {
  std::vector<HybridStage> stages;
  double cost = 0;   // seconds of a sample
  double bound = 0;  // among the splits weighed, none costs less
  std::int32_t ideals = 0;
  // false: too many ideals, so only splits along one order of the nodes were weighed, or too many ways to mix
  // recomputation
  bool exact = true;
};

// Fails on a cycle, and where nothing fits the memory.
Result<HybridAnswer> cut_hybrid(const Hybrid& hybrid);

// The cost of such stages, from the definition; fails on stages that are none or do not fit. Shares no code with
// cut_hybrid().
Result<double> judge(const Hybrid& hybrid, const std::vector<HybridStage>& stages);

}  // namespace weft::partition
