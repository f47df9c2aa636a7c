// weft/parallel/partition/hybrid.h -- stages with replicas, tensor parallelism and recomputation.
//
// A stage of d replicas with t devices each takes this time per sample:
//
//   (compute + 2 (bytes of edges across its boundary + syncs of their ends) / bandwidth) / d
//   + 4 (d-1)/d * parameters / bandwidth / micro-batches per batch
//
// For every layer it holds `kept` bytes, and `held` bytes per micro-batch in flight. The number in
// flight is ceil(replicas of this stage and all later ones / d). Every layer may have several
// variants, such as with and without recomputation. The cost is that of the slowest stage. After
// Piper (Tarnawski et al., NeurIPS
// 2021).
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "weft/base/result.h"
#include "weft/parallel/partition/ideals.h"

namespace weft::partition {

struct Way {
  std::string name;
  double seconds = 0;         // per sample
  double parameters = 0;      // bytes
  double held = 0, kept = 0;  // bytes: per micro-batch in flight, and once
  std::vector<double> from,
      to;  // bytes to sync per incoming and outgoing boundary edge, in order
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
    std::int32_t from = 0, to = 0;  // positions in `nodes`
    double bytes = 0;
  };
  std::vector<HybridNode> nodes;
  std::vector<Edge> edges;
  std::int32_t devices = 1, micro_batches = 1;
  double memory = 0, bandwidth = 0;  // bytes, bytes/s

  Dag dag() const;
};

struct HybridStage {
  std::vector<std::int32_t> nodes;  // positions in Hybrid::nodes, ascending
  std::vector<std::int32_t> ways;   // chosen variant per node
  std::int32_t replicas = 1, degree = 1;
};

struct HybridAnswer {
  std::vector<HybridStage> stages;
  double cost = 0;   // seconds per sample
  double bound = 0;  // lower bound over the searched partitions
  std::int32_t ideals = 0;
  // false: there are too many ideals, so only partitions along one topological order were searched,
  // or too many combinations of recomputation
  bool exact = true;
};

// Fails on a cycle, and if nothing fits in memory.
Result<HybridAnswer> cut_hybrid(const Hybrid& hybrid);

// The cost of these stages by definition; fails if they are invalid or do not fit. Shares no code
// with cut_hybrid().
Result<double> judge(const Hybrid& hybrid, const std::vector<HybridStage>& stages);

}  // namespace weft::partition
