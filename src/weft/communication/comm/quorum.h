// weft/communication/comm/quorum.h -- whether those that are left of a group may go on without the others.
//
// A network that is cut in two leaves two halves, and each thinks that the other one is dead. Only one of them
// may go on, or two jobs train two models. Ranks whose end somebody saw do not count; of the rest, dead as far
// as anyone can tell or alive, more than half must be left, or half with the lowest rank among them.
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
