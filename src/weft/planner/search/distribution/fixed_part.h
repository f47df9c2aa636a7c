// weft/planner/search/distribution/fixed_part.h -- constraints from hints.
//
//   HINT SLICE b ACROSS node         the index comes first in what that axis slices
//   HINT TP 8 WITHIN node, ZERO 1    degrees of parallelism, as counted by print_parallelism()
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
  std::int64_t degree = 1;  // for zero: the ZeRO stage
  std::string axis = {};    // cluster axis; empty: any
  bool within = false;      // groups within one unit of that axis; else along it
};

// What the user has already decided.
struct FixedPart {
  struct Slice {
    std::string index, axis;  // cluster axis
  };
  std::vector<Slice> slices;
  std::vector<distribute::Exception> exceptions;  // on cluster axes
  std::vector<FixedDegree> degrees;

  bool empty() const { return slices.empty() && exceptions.empty() && degrees.empty(); }
  // The hinted degree, or `free` if there is none.
  std::int64_t degree(Parallelism kind, std::int64_t free) const;
};

// "TP 8 WITHIN node, PP 16".
std::string print(const std::vector<FixedDegree>& degrees);

// Whether the distribution has the fixed degrees, on the right axes.
bool keeps(const FixedPart& fixed, const cluster::Cluster& cluster,
           const distribute::Distribution& distribution, const distribute::IndexRoles& roles);

}  // namespace weft::search
