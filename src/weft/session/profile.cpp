#include "weft/session/profile.h"

#include <unistd.h>

#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>

#include "weft/base/file.h"
#include "weft/base/machine.h"
#include "weft/cost/machine_identity.h"
#include "weft/run/own_ranks.h"
#include "weft/session/profile_model.h"
#include "weft/session/reply.h"
#include "weft/transport/inproc/endpoint.h"
#include "weft/transport/shm/endpoint.h"
#include "weft/transport/tcp/endpoint.h"

namespace weft::session {
namespace {

using transport::Job;

constexpr std::int32_t kMostRanks = 1024;
constexpr std::uint64_t kGroup = 0x70726f66696c65;  // "profile"
constexpr std::string_view kTransports[] = {"shm", "tcp", "inproc"};

Status check(const Profile& request) {
  if (request.ranks < 0 || request.ranks > kMostRanks) {
    return user_error(fmt::format("expected 1 to {} ranks, found {}", kMostRanks, request.ranks));
  }
  for (const std::string& transport : request.transports)
    if (std::ranges::count(kTransports, transport) == 0)
      return user_error(fmt::format("unknown transport: {}", transport), "shm and tcp can be profiled");
  return check_cluster_name(request.name);
}

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

void note(const Profile& request, const Job& job, std::string_view text) {
  if (request.on_note && job.rank() == 0) request.on_note(text);
}

Status keep(const Profile& request, const MachineProfile& profile) {
  if (request.statistics == "none") return {};
  WEFT_TRY(statistics, cost::Statistics::open(request.statistics, cost::Access::write));
  WEFT_TRY_STATUS(statistics.add(profile.rates));
  return statistics.add(profile.links);
}

// Rank 0's answer; nothing from the others.
Result<std::string> take_part(const std::shared_ptr<Job>& job, const Profile& request) {
  WEFT_TRY(profile, measure_machine(job, request));
  job->leave();
  if (job->rank() != 0) return std::string();
  WEFT_TRY(text, print_cluster(profile, request.name));
  if (const Status kept = keep(request, profile); !kept.ok())
    note(request, *job, fmt::format("the figures were not kept: {}", kept.error().message));
  return text;
}

Result<std::string> start_ranks(const Profile& request) {
  run::OwnRanks own{.command = "profile", .arguments = {"--name", request.name}, .on_note = request.on_note};
  own.ranks = request.ranks > 0 ? request.ranks : std::max(available_processors(), 2);
  if (!request.transports.empty()) {
    own.arguments.insert(own.arguments.end(),
                         {"--transport", fmt::format("{}", fmt::join(request.transports, ","))});
  }
  if (!request.statistics.empty())
    own.arguments.insert(own.arguments.end(), {"--statistics", request.statistics});
  if (request.quick) own.arguments.emplace_back("--quick");
  return run::run_own_ranks(own);
}

Result<std::string> answer(const Profile& request) {
  WEFT_TRY_STATUS(check(request));
  if (!request.model.empty()) {
    if (run::part_in("profile", /*counts_ranks=*/false) != run::Part::starts_ranks)
      return user_error("--model starts its ranks itself", "run it without a launcher");
    return profile_model(request);
  }
  std::string text;
  if (run::part_in("profile", request.ranks > 0) == run::Part::starts_ranks) {
    WEFT_TRY(measured, start_ranks(request));
    text = std::move(measured);
  } else {
    WEFT_TRY(job, run::join_from_environment());
    WEFT_TRY(measured, take_part(job, request));
    text = std::move(measured);
  }
  if (request.to.empty() || text.empty()) return text;
  WEFT_TRY_STATUS(write_file_atomically(request.to, text));
  return std::string();
}

}  // namespace

Result<MachineProfile> measure_machine(const std::shared_ptr<Job>& job, const Profile& request) {
  const auto hosts = ranks_by_host(*job);
  for (const auto& [host, ranks] : hosts)
    if (ranks.size() != hosts.begin()->second.size())
      return user_error(fmt::format("every host must have as many ranks as the others, found {} and {}",
                                    hosts.begin()->second.size(), ranks.size()));
  MachineProfile profile;
  profile.machine = cost::machine_identity();
  profile.ranks = job->ranks();
  profile.hosts = static_cast<std::int32_t>(hosts.size());
  profile.cores = available_processors();
  for (std::int32_t rank = 0; rank < job->ranks(); ++rank)
    profile.host_of.push_back(
        static_cast<std::int32_t>(std::distance(hosts.begin(), hosts.find(job->member(rank).host))));
  profile.memory_bytes =
      static_cast<double>(sysconf(_SC_PHYS_PAGES)) * static_cast<double>(sysconf(_SC_PAGESIZE));

  std::vector<std::int32_t> everyone(static_cast<std::size_t>(job->ranks()));
  for (std::int32_t rank = 0; rank < job->ranks(); ++rank) everyone[static_cast<std::size_t>(rank)] = rank;
  if (job->rank() == 0) {
    note(request, *job, "copying, reducing, multiplying");
    RateSizes sizes;
    if (request.quick) sizes.each /= 10;
    profile.rates = measure_rates(sizes);
  }
  WEFT_TRY(together, job->exchange(everyone, {kGroup, 0}, {}));

  LinkEffort effort;
  if (request.quick) effort = {.latency = effort.latency / 5, .stream = effort.stream / 5};
  const std::vector<std::int32_t>& neighbours = hosts.at(job->member(job->rank()).host);
  std::vector<std::string> transports = request.transports;
  if (transports.empty()) {
    if (neighbours.size() > 1) transports.emplace_back("shm");
    transports.emplace_back("tcp");
  }
  std::uint64_t group = kGroup;
  for (const std::string& transport : transports) {
    note(request, *job, fmt::format("links over {}", transport));
    const auto& members = transport == "tcp" ? everyone : neighbours;
    WEFT_TRY(endpoint, make_endpoint(transport, job, members, ++group));
    WEFT_TRY(links, measure_links(*job, members, *endpoint, effort));
    profile.links.insert(profile.links.end(), links.begin(), links.end());
    WEFT_TRY(done, job->exchange(everyone, {group, 0}, {}));
  }
  return profile;
}

Reply run(const Profile& request) { return to_reply(answer(request)); }

}  // namespace weft::session
