#include "weft/runtime/exec/served_sums.h"

#include <algorithm>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "weft/collectives/algorithm/summation_service.h"
#include "weft/runtime/exec/call_types.h"

namespace weft::exec {

using collective::Priority;

namespace {

// All priorities other than low share a group.
Priority group_priority(const program::Exchange& exchange) {
  return exchange.algorithm.priority == Priority::low ? Priority::low : Priority::normal;
}

}  // namespace

bool is_served(const program::Exchange& exchange) {
  return exchange.kind == program::Exchange::Kind::all_reduce &&
         collective::find_summation_service(exchange.algorithm.name).has_value();
}

std::vector<ServedGroup> served_groups(std::span<const program::Exchange* const> exchanges,
                                       const plan::Mesh& mesh) {
  std::set<std::pair<std::size_t, Priority>> used;
  for (const program::Exchange* const exchange : exchanges)
    if (is_served(*exchange))
      used.emplace(static_cast<std::size_t>(mesh.find(exchange->axis)), group_priority(*exchange));
  std::vector<ServedGroup> groups;
  for (const auto& [axis, priority] : used)
    for (std::int32_t rank = 0; rank < mesh.ranks(); ++rank)
      if (auto members = mesh.group(rank, axis); members.front() == rank)
        groups.push_back({axis, priority, {members.begin(), members.end()}});
  return groups;
}

Result<std::unique_ptr<comm::Communicator>> open_served(comm::Communicator& whole, const ServedGroup& group,
                                                        const plan::Mesh& mesh) {
  const std::int32_t me = whole.rank();
  const bool is_server = me >= mesh.ranks(),
             is_member = is_server || std::ranges::find(group.ranks, me) != group.ranks.end();
  return whole.split(is_member ? 0 : -1, me);
}

bool runs(const ServedGroup& group, const program::Exchange& exchange, const plan::Mesh& mesh) {
  return is_served(exchange) && mesh.find(exchange.axis) == static_cast<int>(group.axis) &&
         group_priority(exchange) == group.priority;
}

Result<ServedCall> served_call(comm::Communicator& group, const program::Exchange& exchange,
                               std::int32_t workers) {
  const auto service = collective::find_summation_service(exchange.algorithm.name);
  WEFT_CHECK(service.has_value());
  if (group.size() != workers + service->servers)
    return user_error(fmt::format("{} needs {} summation servers, found {}", exchange.algorithm.name,
                                  service->servers, group.size() - workers));
  const std::int64_t chunks = service->chunks(workers);
  ServedCall served;
  served.call.kind = comm::Kind::custom;
  served.call.count = (exchange.counts.at(0) + chunks - 1) / chunks;
  served.call.type = element_type_of(exchange.dtype);
  served.call.op = reduce_op_of(exchange.monoid);
  served.call.priority = exchange.algorithm.priority;
  WEFT_TRY(algorithm, group.find_algorithm(exchange.algorithm.name, comm::Kind::custom));
  served.call.algorithm = algorithm;
  served.room = served.call.count * chunks;
  return served;
}

}  // namespace weft::exec
