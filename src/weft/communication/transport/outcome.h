// weft/communication/transport/outcome.h -- makes a joint step of several ranks succeed or fail on
// all of them.
#pragma once
#include <cstdint>
#include <span>

#include "weft/base/result.h"
#include "weft/communication/transport/job.h"

namespace weft::transport {

// Collective over `members`, after a step that opens connections. Returns `mine` if the step failed
// here, otherwise the failure of the first other rank, identified by its position in `members`.
Status share_outcome(Job& job, std::span<const std::int32_t> members, Topic topic, const Status& mine);

}  // namespace weft::transport
