// weft/planner/search/distribution/simplicity.h -- how complex a distribution is to set up and to run.
//
//   slice b                          0    plain data parallelism
//   slice b, shard parameters        2
//   slice h, f, v                    3    tensor parallelism
//   slice f, b, shard parameters     6    both on one axis
//   an exception                    +1    for each tensor that is sliced otherwise
//
// Axes with the same use count once, and axes with one rank do not count.
//
// Predictions cannot tell plans apart that differ by a few percent. Of such plans the simplest is taken.
#pragma once
#include "weft/parallel/distribute/distribution.h"
#include "weft/parallel/distribute/index_roles.h"

namespace weft::search {

int complexity_of(const distribute::Distribution& distribution, const distribute::IndexRoles& roles);

}  // namespace weft::search
