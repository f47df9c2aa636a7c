// weft/runtime/exec/served_sums.h -- all-reduces with summation servers: ranks without a model that only sum.
//
//   whole    0 1 2 3 | 4 5        the mesh's ranks (workers), then the servers
//   served   {0 1 4 5} {2 3 4 5}  per group that sums: its ranks and every server
//
// Such a sum runs the algorithm in its plan (algorithm/summation_service.h). All its chunks have
// the same length; data that does not divide evenly is copied to a longer buffer.
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
  collective::Priority priority = collective::Priority::normal;  // low-priority sums have their own groups
  std::vector<std::int32_t> ranks;                               // mesh ranks
};
// In the order in which all ranks open them. The exchanges may be those of any rank.
std::vector<ServedGroup> served_groups(std::span<const program::Exchange* const> exchanges,
                                       const plan::Mesh& mesh);
// Collective over `whole`, whose first ranks are the mesh's. Null on a worker outside the group.
Result<std::unique_ptr<comm::Communicator>> open_served(comm::Communicator& whole, const ServedGroup& group,
                                                        const plan::Mesh& mesh);

// Whether the group runs the exchange.
bool runs(const ServedGroup& group, const program::Exchange& exchange, const plan::Mesh& mesh);

// The call of a rank in the group, without its buffers. `room`: the elements that the buffer must
// hold.
struct ServedCall {
  comm::Call call;
  std::int64_t room = 0;
};
Result<ServedCall> served_call(comm::Communicator& group, const program::Exchange& exchange,
                               std::int32_t workers);

}  // namespace weft::exec
