// weft/communication/transport/outcome.h -- ranks that do something together all succeed or all fail.
#pragma once
#include <cstdint>
#include <span>

#include "weft/base/result.h"
#include "weft/communication/transport/job.h"

namespace weft::transport {

// Collective over `members`, after a step that opens wires. Answers `mine` where the step failed here, else
// the failure of the first other rank, named by its place among `members`.
Status share_outcome(Job& job, std::span<const std::int32_t> members, Topic topic, const Status& mine);

}  // namespace weft::transport
