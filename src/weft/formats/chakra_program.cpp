#include "weft/formats/chakra_program.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <vector>

#include <fmt/format.h>

#include "weft/base/check.h"
#include "weft/formats/chakra.h"

namespace weft::formats {
namespace {

using program::Exchange;
using sim::TraceNode;

TraceNode::Collective collective_of(Exchange::Kind kind) {
  switch (kind) {
    case Exchange::Kind::all_reduce: return TraceNode::Collective::all_reduce;
    case Exchange::Kind::reduce_scatter: return TraceNode::Collective::reduce_scatter;
    case Exchange::Kind::all_gather: return TraceNode::Collective::all_gather;
    case Exchange::Kind::all_to_all:
    case Exchange::Kind::halo: return TraceNode::Collective::all_to_all;
    default: return TraceNode::Collective::other;
  }
}

// The group's index in the trace; -1 for all ranks.
std::int32_t group_of(std::vector<std::int32_t> ranks, const plan::Mesh& mesh, sim::ExecutionTrace& trace) {
  if (ranks.size() == static_cast<std::size_t>(mesh.ranks())) return -1;
  const auto found = std::ranges::find(trace.groups, ranks, &sim::RankGroup::ranks);
  if (found != trace.groups.end()) return static_cast<std::int32_t>(found - trace.groups.begin());
  // Names are numbers from 1 on, since other tools parse them as such; 0 means all ranks.
  trace.groups.push_back({fmt::format("{}", trace.groups.size() + 1), std::move(ranks)});
  return static_cast<std::int32_t>(trace.groups.size()) - 1;
}

class RankTraceWriter {
 public:
  RankTraceWriter(const program::Program& program, const program::Timeline& timeline, const plan::Mesh& mesh,
                  std::int32_t rank, sim::ExecutionTrace& trace)
      : program_(program), timeline_(timeline), mesh_(mesh), rank_(rank), trace_(trace) {}

  sim::RankTrace write() {
    for (std::size_t t = 0; t < program_.tasks.size(); ++t) {
      const program::Unit& unit = program_.units[program_.tasks[t].unit];
      const auto* exchange = std::get_if<Exchange>(&unit.kernel);
      TraceNode node;
      node.name = describe(program_, unit);
      node.seconds = timeline_.tasks[t].end - timeline_.tasks[t].begin;
      for (const std::uint32_t wait : program_.tasks[t].waits) add_after(node, nodes_of_[wait]);
      add_after(node, last_[unit.stream]);
      nodes_of_.emplace_back();
      if (exchange == nullptr) {
        node.kind = TraceNode::Kind::compute;
        add(std::move(node));
      } else {
        add_exchange(*exchange, static_cast<std::size_t>(mesh_.find(exchange->axis)), std::move(node));
      }
      last_[unit.stream] = nodes_of_.back();
    }
    return std::move(result_);
  }

 private:
  static void add_after(TraceNode& node, const std::vector<std::uint32_t>& before) {
    node.after.insert(node.after.end(), before.begin(), before.end());
  }

  void add(TraceNode node) {
    std::ranges::sort(node.after);
    node.after.erase(std::unique(node.after.begin(), node.after.end()), node.after.end());
    node.id = result_.nodes.size();
    nodes_of_.back().push_back(static_cast<std::uint32_t>(node.id));
    result_.nodes.push_back(std::move(node));
  }

  void add_exchange(const Exchange& exchange, std::size_t axis, TraceNode node) {
    const std::vector<std::int32_t> ranks = mesh_.group(rank_, axis);
    const auto size = static_cast<std::int64_t>(ranks.size());
    node.bytes = cost::message_bytes(exchange);
    if (exchange.kind == Exchange::Kind::permute_ranks)
      return add_permutation(exchange, axis, ranks, std::move(node));
    if (plan::is_message(exchange.kind)) {
      node.kind = exchange.kind == Exchange::Kind::send ? TraceNode::Kind::send : TraceNode::Kind::receive;
      node.peer = ranks[static_cast<std::size_t>(exchange.shift)];
      node.tag = exchange.tag;
      return add(std::move(node));
    }
    node.kind = TraceNode::Kind::collective;
    node.collective = collective_of(exchange.kind);
    if (exchange.kind == Exchange::Kind::all_gather) node.bytes /= size;  // contribution per rank
    node.group = group_of(ranks, mesh_, trace_);
    add(std::move(node));
  }

  void add_permutation(const Exchange& exchange, std::size_t axis, const std::vector<std::int32_t>& ranks,
                       TraceNode node) {
    const auto size = static_cast<std::int64_t>(ranks.size());
    const std::int64_t here = mesh_.coordinate(rank_, axis);
    const auto at = [&](std::int64_t place) {
      return ranks[static_cast<std::size_t>((place % size + size) % size)];
    };
    TraceNode receive = node;
    node.kind = TraceNode::Kind::send;
    receive.kind = TraceNode::Kind::receive;
    node.peer = at(here + exchange.shift);
    receive.peer = at(here - exchange.shift);
    node.tag = receive.tag = permutations_++;
    add(std::move(node));
    add(std::move(receive));
  }

  const program::Program& program_;
  const program::Timeline& timeline_;
  const plan::Mesh& mesh_;
  const std::int32_t rank_;
  sim::ExecutionTrace& trace_;
  sim::RankTrace result_;
  std::vector<std::vector<std::uint32_t>> nodes_of_;          // per task
  std::map<std::uint32_t, std::vector<std::uint32_t>> last_;  // per stream
  std::int64_t permutations_ = 0;
};

}  // namespace

void add_rank(const program::Program& program, const program::Timeline& timeline, const plan::Mesh& mesh,
              std::int32_t rank, sim::ExecutionTrace& trace) {
  trace.ranks.push_back(RankTraceWriter(program, timeline, mesh, rank, trace).write());
}

Result<sim::ExecutionTrace> execution_trace(const sim::Prediction& prediction, const plan::Mesh& mesh) {
  std::vector<const sim::RankClass*> class_of(static_cast<std::size_t>(mesh.ranks()), nullptr);
  for (const sim::RankClass& alike : prediction.classes)
    for (const std::int32_t rank : alike.ranks) class_of[static_cast<std::size_t>(rank)] = &alike;
  sim::ExecutionTrace trace;
  for (std::int32_t rank = 0; rank < mesh.ranks(); ++rank) {
    const sim::RankClass* alike = class_of[static_cast<std::size_t>(rank)];
    if (alike == nullptr || alike->timeline.tasks.size() != alike->program->tasks.size())
      return user_error("the prediction has no timelines to export");
    add_rank(*alike->program, alike->timeline, mesh, rank, trace);
  }
  return trace;
}

Result<sim::ExecutionTrace> execution_trace(std::span<const program::Program> programs,
                                            const plan::Mesh& mesh, const cost::StepCosts& costs) {
  WEFT_CHECK(programs.size() == static_cast<std::size_t>(mesh.ranks()), "a program a rank");
  sim::ExecutionTrace trace;
  for (std::size_t rank = 0; rank < programs.size(); ++rank) {
    const program::Program& program = programs[rank];
    program::Timeline timeline;
    for (const program::Task& task : program.tasks) {
      const auto* exchange = std::get_if<Exchange>(&program.units[task.unit].kernel);
      double seconds = 0;
      if (exchange == nullptr)
        seconds = costs.compute(program, task).seconds;
      else if (exchange->kind != Exchange::Kind::receive)  // a receive lasts until its message arrives
        seconds = costs
                      .exchange(*exchange, static_cast<std::size_t>(mesh.find(exchange->axis)),
                                cost::message_bytes(*exchange))
                      .seconds();
      if (!std::isfinite(seconds))
        return user_error(fmt::format("{} of rank {} uses a link without bandwidth",
                                      describe(program, program.units[task.unit]), rank));
      timeline.tasks.push_back({.begin = 0, .end = seconds});
    }
    add_rank(program, timeline, mesh, static_cast<std::int32_t>(rank), trace);
  }
  return trace;
}

Status write_chakra(const sim::Prediction& prediction, const plan::Mesh& mesh, const std::string& prefix) {
  WEFT_TRY(trace, execution_trace(prediction, mesh));
  return write_chakra(trace, prefix);
}

}  // namespace weft::formats
