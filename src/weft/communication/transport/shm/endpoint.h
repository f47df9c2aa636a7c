// weft/communication/transport/shm/endpoint.h -- the transport of ranks that share memory.
//
//   make_endpoint    one segment: bells and news of the group        shm/neighbours.h
//   open             one segment a call: a ring a wire, sorted       ring.h, shm/connection.h
//
// Rank 0 of the group makes the segments and hands their descriptors round by Job::exchange. The memory of a
// call of open() lives as long as one of its connections does at any rank.
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
  // Messages so long and longer are fetched straight from the sender's memory, where the kernel lets one
  // process read another's; 0: never. Whether that pays is for calibration to say: it is often slower than
  // two copies that stay in the caches. Must be the same on all ranks.
  std::int64_t single_copy_bytes = 0;
  std::string_view name = "shm";

  // Where `members` are only some of a group (see Neighbours): what they are called there, and this rank's
  // event descriptor, which stays the caller's. All of them give both, or none does.
  std::vector<std::int32_t> names = {};
  int bell = -1;
};

// Collective. `members` are the group's job ranks, ascending, all on this machine; `group` tells its
// exchanges from those of other groups.
Result<std::unique_ptr<Endpoint>> make_endpoint(std::shared_ptr<Job> job, std::vector<std::int32_t> members,
                                                std::uint64_t group, const Options& options = {});

// The same, with what the ranks share.
struct Neighbourhood {
  std::unique_ptr<Endpoint> endpoint;
  std::shared_ptr<Neighbours> neighbours;
};
Result<Neighbourhood> make_neighbourhood(std::shared_ptr<Job> job, std::vector<std::int32_t> members,
                                         std::uint64_t group, const Options& options);

}  // namespace weft::transport::shm
