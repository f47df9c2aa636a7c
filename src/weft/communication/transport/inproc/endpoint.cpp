#include "weft/communication/transport/inproc/endpoint.h"

#include <fmt/format.h>

#include <utility>

#include "weft/communication/transport/shm/endpoint.h"

namespace weft::transport::inproc {

Result<std::unique_ptr<Endpoint>> make_endpoint(std::shared_ptr<Job> job, std::vector<std::int32_t> members,
                                                std::uint64_t group, const Options& options) {
  const Member& self = job->member(job->rank());
  for (const std::int32_t member : members)
    if (const Member& other = job->member(member); other.host != self.host || other.process != self.process)
      return user_error(
          fmt::format("ranks are not threads of one process: rank {} and rank {}", job->rank(), member),
          "use the transport shm or tcp");
  return shm::make_endpoint(std::move(job), std::move(members), group,
                            {.single_copy_bytes = options.single_copy_bytes, .name = "inproc"});
}

}  // namespace weft::transport::inproc
