// weft/formats/profile_text.h -- profiles as PipeDream and DAPPLE write them.
//
//   node4 -- Embedding(32320, 1024) -- forward_compute_time=0.073, backward_compute_time=6.949,
//       activation_size=6291456.0, parameter_size=132382720.000     on one line; ms and bytes
//   <tab>node1 -- node4                                             an edge
//
// A list of sizes, [a; b], is summed. A stage that a planner appended, ` -- stage_id=2`, is
// ignored. Lines may be in any order.
#pragma once
#include <string_view>

#include "weft/base/result.h"
#include "weft/parallel/partition/profile.h"

namespace weft::formats {

// Whether the text begins like such a profile.
bool looks_like_profile(std::string_view text);
Result<partition::Profile> read_profile(std::string_view text);

}  // namespace weft::formats
