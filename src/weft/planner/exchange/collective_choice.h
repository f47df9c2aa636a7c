// weft/planner/exchange/collective_choice.h -- the best algorithm per size on a cluster.
//
//   references        every shipped algorithm of the collective, with the parameters worth trying, or those
//                     requested
//     -> candidates   each with every protocol, compiled and checked for the cluster
//     -> few of them  those that are far behind at every size are dropped, unless requested
//     -> rows         the time of each at each size
//     -> choice       the winner of each range of sizes
//
// collective_choose.cpp prints the result.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "weft/base/result.h"
#include "weft/collectives/chunks/collective.h"
#include "weft/planner/exchange/choose_collective.h"
#include "weft/planner/exchange/collective_estimate.h"

namespace weft::exchange {

// A reference and how many instances of it run side by side.
struct Variant {
  std::string reference;
  std::int32_t instances = 1;
};

// Every shipped algorithm of the collective, with the parameters worth trying on this cluster.
std::vector<Variant> shipped_variants(collective::Kind kind, const sim::CollectiveCluster& cluster);

struct EstimatedCandidate {
  std::string reference;  // "all_reduce_ring(chunks=8)"
  EstimatedProgram program;
  std::vector<sim::CostRow> rows;  // one per size

  std::string family() const;  // the reference without its parameters
};

struct EstimatedChoice {
  collective::Kind kind = collective::Kind::all_reduce;
  std::string cluster;
  std::int32_t ranks = 0, nodes = 1;
  std::vector<std::int64_t> sizes;
  std::vector<EstimatedCandidate> candidates;
  CollectiveChoice choice;            // indexes `candidates`
  std::vector<std::string> left_out;  // "all_reduce_swing: needs ..."
};

struct ChoiceQuestion {
  collective::Kind kind = collective::Kind::all_reduce;
  std::string cluster_name;
  sim::CollectiveCluster cluster;
  std::vector<std::int64_t> sizes;
  std::vector<std::string> candidates = {};  // references; none: every shipped algorithm of the collective
  // Only algorithms of stock NCCL may win its tuner's table, so they are kept however slow.
  bool for_tuner = false;
  std::vector<collective::Program> synthesized =
      {};  // for this cluster, checked; they compete with the other candidates
};
Result<EstimatedChoice> choose(const ChoiceQuestion& question);

// The winners among candidates of one collective.
Result<CollectiveChoice> choose_among(const std::vector<const EstimatedCandidate*>& candidates,
                                      const std::vector<std::int64_t>& sizes);

// Stock NCCL's name for a family of algorithms: ring, tree or pat; empty if it has none.
std::string_view nccl_algorithm(collective::Kind kind, std::string_view family);

}  // namespace weft::exchange
