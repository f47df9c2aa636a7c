#include "weft/runtime/measure/machine_profile.h"

#include <map>

#include <fmt/format.h>

#include "weft/base/machine.h"
#include "weft/communication/transport/inproc/endpoint.h"
#include "weft/communication/transport/shm/endpoint.h"
#include "weft/communication/transport/tcp/endpoint.h"
#include "weft/predict/cost/machine_identity.h"

namespace weft::measure {
namespace {

using transport::Job;

constexpr std::uint64_t kProfileGroup = 0x70726f66696c65;  // "profile"

std::map<std::string, std::vector<std::int32_t>> ranks_by_host(const Job& job) {
  std::map<std::string, std::vector<std::int32_t>> hosts;
  for (std::int32_t rank = 0; rank < job.ranks(); ++rank) hosts[job.member(rank).host].push_back(rank);
  return hosts;
}

Result<std::unique_ptr<transport::Endpoint>> make_endpoint(const std::string& name,
                                                           const std::shared_ptr<Job>& job,
                                                           std::vector<std::int32_t> members,
                                                           std::uint64_t group) {
  if (name == "tcp") return transport::tcp::make_endpoint(job, std::move(members), group);
  if (name == "inproc") return transport::inproc::make_endpoint(job, std::move(members), group);
  return transport::shm::make_endpoint(job, std::move(members), group);
}

void note(const ProfileEffort& effort, const Job& job, std::string_view text) {
  if (effort.on_note && job.rank() == 0) effort.on_note(text);
}

}  // namespace

Result<MachineProfile> measure_machine(const std::shared_ptr<Job>& job, const ProfileEffort& effort) {
  const auto hosts = ranks_by_host(*job);
  for (const auto& [host, ranks] : hosts)
    if (ranks.size() != hosts.begin()->second.size())
      return user_error(fmt::format("all hosts must have the same number of ranks, found {} and {}",
                                    hosts.begin()->second.size(), ranks.size()));
  MachineProfile profile;
  profile.machine = cost::machine_identity();
  profile.ranks = job->ranks();
  profile.hosts = static_cast<std::int32_t>(hosts.size());
  profile.cores = available_processors();
  for (std::int32_t rank = 0; rank < job->ranks(); ++rank)
    profile.host_of.push_back(
        static_cast<std::int32_t>(std::distance(hosts.begin(), hosts.find(job->member(rank).host))));
  profile.memory_bytes = static_cast<double>(total_memory());

  std::vector<std::int32_t> everyone(static_cast<std::size_t>(job->ranks()));
  for (std::int32_t rank = 0; rank < job->ranks(); ++rank) everyone[static_cast<std::size_t>(rank)] = rank;
  if (job->rank() == 0) {
    note(effort, *job, "copying, reducing, multiplying");
    RateSizes sizes;
    if (effort.quick) sizes.each /= 10;
    profile.rates = measure_rates(sizes);
  }
  WEFT_TRY(together, job->exchange(everyone, {kProfileGroup, 0}, {}));

  LinkEffort links_effort;
  if (effort.quick) links_effort = {.latency = links_effort.latency / 5, .stream = links_effort.stream / 5};
  const std::vector<std::int32_t>& neighbours = hosts.at(job->member(job->rank()).host);
  std::vector<std::string> transports = effort.transports;
  if (transports.empty()) {
    if (neighbours.size() > 1) transports.emplace_back("shm");
    transports.emplace_back("tcp");
  }
  std::uint64_t group = kProfileGroup;
  for (const std::string& transport : transports) {
    note(effort, *job, fmt::format("links over {}", transport));
    const auto& members = transport == "tcp" ? everyone : neighbours;
    WEFT_TRY(endpoint, make_endpoint(transport, job, members, ++group));
    WEFT_TRY(links, measure_links(*job, members, *endpoint, links_effort));
    profile.links.insert(profile.links.end(), links.begin(), links.end());
    WEFT_TRY(done, job->exchange(everyone, {group, 0}, {}));
  }
  return profile;
}

}  // namespace weft::measure
