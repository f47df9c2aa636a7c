// weft/runtime/exec/served_sums.h -- all-reduces in which servers have a part: ranks that hold nothing and add up for others.
//
//   whole    0 1 2 3 | 4 5        workers as the mesh has them, then servers
//   served   {0 1 4 5} {2 3 4 5}  for each group that sums: its ranks and every server
//
// Such a sum runs as its plan names it (algorithm/summation_service.h). Its chunks are equally long, so that data
// whose count they do not divide is copied to memory that is longer.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "weft/base/result.h"
#include "weft/communication/comm/communicator.h"
#include "weft/plan/graph/layout.h"
#include "weft/program/tasks/program.h"

namespace weft::exec {

bool is_served(const program::Exchange& exchange);

struct ServedGroup {
  std::size_t axis = 0;
  collective::Priority priority = collective::Priority::normal;  // low ones have groups of their own
  std::vector<std::int32_t> ranks;                               // of the mesh
};
// In the order in which all open them. The exchanges may be those of any rank.
std::vector<ServedGroup> served_groups(std::span<const program::Exchange* const> exchanges,
                                       const plan::Mesh& mesh);
// Collective over `whole`, whose first ranks are the mesh's. Null on a worker that is not of the group.
Result<std::unique_ptr<comm::Communicator>> open_served(comm::Communicator& whole, const ServedGroup& group,
                                                        const plan::Mesh& mesh);

// Whether a group runs the exchange.
bool runs(const ServedGroup& group, const program::Exchange& exchange, const plan::Mesh& mesh);

// The call of a rank of the group, but for its memory, and the elements that this must have room for.
struct ServedCall {
  comm::Call call;
  std::int64_t room = 0;
};
Result<ServedCall> served_call(comm::Communicator& group, const program::Exchange& exchange,
                               std::int32_t workers);

}  // namespace weft::exec
