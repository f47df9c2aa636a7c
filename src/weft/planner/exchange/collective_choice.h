// weft/planner/exchange/collective_choice.h -- the best algorithm by size, among those that a cluster can run.
//
//   references        every shipped algorithm of the collective, with the parameters worth trying, or those
//                     asked for
//     -> candidates   each with every protocol, compiled and checked for the cluster
//     -> few of them  who is far behind at every size goes, unless it was asked for
//     -> rows         the time of each at each size
//     -> choice       who wins from which size to which
//
// What people are shown of it is made in collective_choose.cpp.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "weft/base/result.h"
#include "weft/collectives/chunks/collective.h"
#include "weft/planner/exchange/choose_collective.h"
#include "weft/planner/exchange/collective_price.h"

namespace weft::exchange {

// A reference and how many instances of it are to run side by side.
struct Variant {
  std::string reference;
  std::int32_t instances = 1;
};

// Every shipped algorithm of the collective, with the parameters worth trying there.
std::vector<Variant> shipped_variants(collective::Kind kind, const sim::CollectiveCluster& cluster);

struct PricedCandidate {
  std::string reference;  // "all_reduce_ring(chunks=8)"
  PricedProgram program;
  std::vector<sim::CostRow> rows;  // one a size

  std::string family() const;  // the reference without its parameters
};

struct PricedChoice {
  collective::Kind kind = collective::Kind::all_reduce;
  std::string cluster;
  std::int32_t ranks = 0, nodes = 1;
  std::vector<std::int64_t> sizes;
  std::vector<PricedCandidate> candidates;
  CollectiveChoice choice;            // numbers of `candidates`
  std::vector<std::string> left_out;  // "all_reduce_swing: needs ..."
};

struct ChoiceQuestion {
  collective::Kind kind = collective::Kind::all_reduce;
  std::string cluster_name;
  sim::CollectiveCluster cluster;
  std::vector<std::int64_t> sizes;
  std::vector<std::string> candidates = {};  // references; none: every shipped algorithm of the collective
  // Only what stock NCCL has may win its tuner's table, so its algorithms stay, however far behind.
  bool for_tuner = false;
  std::vector<collective::Program> synthesized =
      {};  // for this cluster, checked; they compete with the others
};
Result<PricedChoice> choose(const ChoiceQuestion& question);

// The winners among candidates of one collective.
Result<CollectiveChoice> choose_among(const std::vector<const PricedCandidate*>& candidates,
                                      const std::vector<std::int64_t>& sizes);

// What stock NCCL calls the algorithm that a family is: ring, tree or pat; empty where it has no such one.
std::string_view nccl_algorithm(collective::Kind kind, std::string_view family);

}  // namespace weft::exchange
