#include "weft/runtime/run/summation_server.h"

#include <algorithm>
#include <map>
#include <utility>
#include <variant>
#include <vector>

#include "weft/collectives/algorithm/summation_service.h"
#include "weft/communication/comm/communicator.h"
#include "weft/runtime/exec/comm_exchanger.h"
#include "weft/runtime/exec/served_sums.h"
#include "weft/runtime/run/local_ranks_run.h"
#include "weft/runtime/run/rank_program.h"
#include "weft/runtime/run/step_request.h"

namespace weft::run {
namespace {

std::vector<const program::Exchange*> exchanges_of(const program::Program& program) {
  std::vector<const program::Exchange*> exchanges;
  for (const program::Unit& unit : program.units)
    if (const auto* const exchange = std::get_if<program::Exchange>(&unit.kernel))
      exchanges.push_back(exchange);
  return exchanges;
}

// The exchanges' numbers, in the order in which ranks run them.
std::vector<std::size_t> turns_of(const program::Program& program) {
  std::vector<std::size_t> numbers(program.units.size()), turns;
  std::size_t next = 0;
  for (std::size_t unit = 0; unit < program.units.size(); ++unit)
    if (std::holds_alternative<program::Exchange>(program.units[unit].kernel)) numbers[unit] = next++;
  std::vector<bool> seen(program.units.size());
  for (const program::Task& task : program.tasks) {
    if (!std::holds_alternative<program::Exchange>(program.units[task.unit].kernel) || seen[task.unit])
      continue;
    seen[task.unit] = true;
    turns.push_back(numbers[task.unit]);
  }
  return turns;
}

// One group's sum.
struct ServersPart {
  comm::Communicator* group = nullptr;
  comm::Call call;
};

}  // namespace

std::int32_t servers_of(std::span<const program::ChosenAlgorithm> algorithms) {
  std::int32_t servers = 0;
  for (const program::ChosenAlgorithm& algorithm : algorithms)
    if (const auto service = collective::find_summation_service(algorithm.name))
      servers = std::max(servers, service->servers);
  return servers;
}

Status serve_sums(const distribute::DistributedPlan& plan, const std::shared_ptr<transport::Job>& job,
                  const LocalRanksOptions& options) {
  // Ranks of one group sum equally many elements; other groups may have other shares.
  std::map<std::int32_t, program::Program> programs;
  const auto program_of = [&](std::int32_t rank) -> Result<const program::Program*> {
    if (const auto known = programs.find(rank); known != programs.end()) return &known->second;
    WEFT_TRY(compiled, compile_for_rank(plan, rank, options));
    return &programs.emplace(rank, std::move(compiled)).first->second;
  };
  WEFT_TRY(first, program_of(0));
  const std::vector<const program::Exchange*> exchanges = exchanges_of(*first);
  WEFT_TRY(whole, comm::Communicator::create(job, exec::training_options(options.transport)));
  WEFT_TRY_STATUS(whole->split(-1, 0));  // matches the split that creates the ranks' communicator
  const std::vector<exec::ServedGroup> groups = exec::served_groups(exchanges, plan.mesh);
  std::vector<std::unique_ptr<comm::Communicator>> communicators;
  for (const exec::ServedGroup& group : groups) {
    WEFT_TRY(opened, exec::open_served(*whole, group, plan.mesh));
    communicators.push_back(std::move(opened));
  }
  std::vector<ServersPart> parts;
  for (const std::size_t i : turns_of(*first))
    for (std::size_t g = 0; g < groups.size(); ++g) {
      if (!exec::runs(groups[g], *exchanges[i], plan.mesh)) continue;
      WEFT_TRY(program, program_of(groups[g].ranks.front()));
      WEFT_TRY(served, exec::served_call(*communicators[g], *exchanges_of(*program).at(i),
                                         static_cast<std::int32_t>(groups[g].ranks.size())));
      parts.push_back({communicators[g].get(), served.call});
    }
  for (;;) {
    std::int64_t said = StepRequest{received_sigterm() ? kTerminated : kContinue, whole->rank()}.pack();
    WEFT_TRY_STATUS(whole->all_reduce(&said, &said, 1, comm::ElementType::i64, comm::ReduceOp::max));
    if (StepRequest::unpack(said).word >= kChangePlan) return {};
    for (const ServersPart& part : parts) WEFT_TRY_STATUS(part.group->run(part.call));
  }
}

}  // namespace weft::run
