#include "weft/communication/transport/machine_ranks.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <string_view>

namespace weft::transport {
namespace {

// Member::host begins with the machine: see host_identity().
std::string_view machine_of(const Member& member) {
  return std::string_view(member.host).substr(0, member.host.find('/'));
}

}  // namespace

std::vector<std::int32_t> Hosts::by_host() const {
  std::vector<std::int32_t> order(of.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, {}, [&](std::int32_t at) { return of[static_cast<std::size_t>(at)]; });
  return order;
}

Hosts find_hosts(const Job& job) {
  std::vector<std::int32_t> everyone(static_cast<std::size_t>(job.ranks()));
  std::iota(everyone.begin(), everyone.end(), 0);
  return find_hosts(job, everyone);
}

Hosts find_hosts(const Job& job, std::span<const std::int32_t> members) {
  Hosts hosts;
  std::map<std::string_view, std::int32_t> numbers;
  std::vector<std::int32_t> sizes;
  for (const std::int32_t member : members) {
    const auto [found, fresh] = numbers.try_emplace(job.member(member).host, hosts.count);
    if (fresh) {
      ++hosts.count;
      sizes.push_back(0);
    }
    hosts.of.push_back(found->second);
    hosts.places.push_back(sizes[static_cast<std::size_t>(found->second)]++);
  }
  return hosts;
}

std::int32_t ranks_on_this_machine(const Job& job, std::span<const std::int32_t> members) {
  const std::string_view here = machine_of(job.member(job.rank()));
  return static_cast<std::int32_t>(std::ranges::count_if(
      members, [&](std::int32_t member) { return machine_of(job.member(member)) == here; }));
}

}  // namespace weft::transport
