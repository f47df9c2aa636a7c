// weft/communication/transport/inproc/endpoint.h -- the transport of ranks that are threads of one
// process.
//
// It reuses the shared-memory transport: threads map a segment once for all of them (see segment.h)
// and copy long messages from each other directly. Its connections are those of shm/connection.h.
#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include "weft/base/result.h"
#include "weft/communication/transport/endpoint.h"
#include "weft/communication/transport/job.h"

namespace weft::transport::inproc {

struct Options {
  std::int64_t single_copy_bytes = 0;  // as in shm/endpoint.h
};

// Collective. `members` are the group's job ranks, ascending; `group` separates its exchanges from
// those of other groups.
Result<std::unique_ptr<Endpoint>> make_endpoint(std::shared_ptr<Job> job, std::vector<std::int32_t> members,
                                                std::uint64_t group, const Options& options = {});

}  // namespace weft::transport::inproc
