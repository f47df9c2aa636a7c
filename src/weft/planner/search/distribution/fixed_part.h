// weft/planner/search/distribution/fixed_part.h -- what hints have decided before the search begins.
//
//   HINT SLICE b ACROSS node         an index leads what that axis slices
//   HINT TP 8 WITHIN node, ZERO 1    degrees of parallelism, as print_parallelism() counts them
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "weft/parallel/distribute/distribution.h"
#include "weft/parallel/distribute/index_roles.h"
#include "weft/plan/cluster/cluster.h"

namespace weft::search {

enum class Parallelism : std::uint8_t { data, tensor, pipeline, expert, context, zero };

struct FixedDegree {
  Parallelism kind;
  std::int64_t degree = 1;  // of zero: the stage of ZeRO
  std::string axis = {};    // of the cluster; empty: anywhere
  bool within = false;      // in groups that lie within one of that axis; else along it
};

// What the user has decided already.
struct FixedPart {
  struct Slice {
    std::string index, axis;  // of the cluster
  };
  std::vector<Slice> slices;
  std::vector<distribute::Exception> exceptions;  // on axes of the cluster
  std::vector<FixedDegree> degrees;

  bool empty() const { return slices.empty() && exceptions.empty() && degrees.empty(); }
  // As a hint states it; otherwise `free`.
  std::int64_t degree(Parallelism kind, std::int64_t free) const;
};

// "TP 8 WITHIN node, PP 16".
std::string print(const std::vector<FixedDegree>& degrees);

// Whether the distribution has the degrees, where they belong.
bool keeps(const FixedPart& fixed, const cluster::Cluster& cluster,
           const distribute::Distribution& distribution, const distribute::IndexRoles& roles);

}  // namespace weft::search
