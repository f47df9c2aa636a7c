// weft/communication/comm/quorum.h -- whether the surviving ranks of a group may continue without
// the others.
//
// A network partition leaves two sides, each of which takes the other for failed. Only one may
// continue, or two jobs train two models (split brain). Ranks whose exit was observed do not count.
// Of all others, failed or alive, more than half must be left, or exactly half including the lowest
// rank.
#pragma once
#include <cstdint>
#include <span>

#include "weft/base/result.h"
#include "weft/communication/transport/job.h"

namespace weft::comm {

enum class Quorum : std::uint8_t { majority, any };

// `members` and `left` are job ranks, ascending.
Status check_quorum(std::span<const std::int32_t> members, std::span<const std::int32_t> left,
                    std::span<const transport::Death> deaths);

}  // namespace weft::comm
