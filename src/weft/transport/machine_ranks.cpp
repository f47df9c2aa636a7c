#include "weft/transport/machine_ranks.h"

#include <algorithm>
#include <string_view>

namespace weft::transport {
namespace {

// The text of a host begins with the machine: see host_identity().
std::string_view machine_of(const Member& member) {
  return std::string_view(member.host).substr(0, member.host.find('/'));
}

}  // namespace

std::int32_t ranks_on_this_machine(const Job& job, std::span<const std::int32_t> members) {
  const std::string_view here = machine_of(job.member(job.rank()));
  return static_cast<std::int32_t>(std::ranges::count_if(
      members, [&](std::int32_t member) { return machine_of(job.member(member)) == here; }));
}

}  // namespace weft::transport
