// weft/communication/transport/shm/endpoint.h -- the transport of ranks that share memory.
//
//   make_endpoint    one segment per group: bells and event counters   shm/neighbours.h
//   open             one segment per call: a ring per wire, sorted     ring.h, shm/connection.h
//
// Rank 0 of the group creates the segments and distributes their descriptors by Job::exchange. The
// memory of an open() call lives as long as one of its connections does at any rank.
#pragma once
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "weft/base/result.h"
#include "weft/communication/transport/endpoint.h"
#include "weft/communication/transport/job.h"
#include "weft/communication/transport/shm/neighbours.h"

namespace weft::transport::shm {

struct Options {
  // Messages of at least this size are fetched straight from the sender's memory, if the kernel
  // lets one process read another's; 0: never. Calibration decides whether that pays: it is often
  // slower than two copies that stay in the caches. Must be the same on all ranks.
  std::int64_t single_copy_bytes = 0;
  std::string_view name = "shm";

  // If `members` are a subset of a group (see Neighbours): their ranks in the group, and this
  // rank's event descriptor, which the caller still owns. All of them pass both, or none does.
  std::vector<std::int32_t> names = {};
  int bell = -1;
};

// Collective. `members` are the group's job ranks, ascending, all on this machine; `group`
// separates its exchanges from those of other groups.
Result<std::unique_ptr<Endpoint>> make_endpoint(std::shared_ptr<Job> job, std::vector<std::int32_t> members,
                                                std::uint64_t group, const Options& options = {});

// The same, together with the state that the ranks share.
struct Neighbourhood {
  std::unique_ptr<Endpoint> endpoint;
  std::shared_ptr<Neighbours> neighbours;
};
Result<Neighbourhood> make_neighbourhood(std::shared_ptr<Job> job, std::vector<std::int32_t> members,
                                         std::uint64_t group, const Options& options);

}  // namespace weft::transport::shm
