#include "weft/program/tasks/attribution.h"

#include <algorithm>

#include "weft/base/check.h"
#include "weft/base/median.h"

namespace weft::program {
namespace {

using plan::NodeId;

std::vector<double> unit_seconds(const Program& program, std::span<const Timeline> timelines) {
  std::vector<double> seconds(program.units.size());
  std::vector<double> times;
  for (std::size_t t = 0; t < program.tasks.size(); ++t) {
    times.clear();
    for (const Timeline& timeline : timelines)
      times.push_back(timeline.tasks[t].end - timeline.tasks[t].begin);
    seconds[program.tasks[t].unit] += median(times);
  }
  return seconds;
}

// The node whose result is in each buffer, updated unit by unit. A loop may write its result over
// an operand, so the value that a buffer is named after need not be the one that a later copy reads
// there.
class Makers {
 public:
  explicit Makers(const Program& program) : program_(program), makers_(program.buffers.size()) {}

  // The node that a unit without nodes works for; invalid for a copy of a value that no node
  // computes.
  NodeId served_by(const Unit& unit) const {
    if (const auto* copy = std::get_if<Copy>(&unit.kernel)) return of(copy->from.buffer);
    if (const auto* combine = std::get_if<Combine>(&unit.kernel)) return of(combine->partials);
    return {};
  }

  void note(const Unit& unit) {
    if (unit.nodes.empty()) {
      const NodeId node = served_by(unit);
      for (const Place& place : unit.writes) makers_[place.buffer.value] = node;
    } else if (const auto* loop = std::get_if<RowLoop>(&unit.kernel)) {
      for (const RowInstruction& instruction : loop->code)
        if (instruction.step == RowStep::store || instruction.step == RowStep::accumulate)
          note(loop->operands[instruction.memory]);
    } else {
      for (const Place& place : unit.writes) makers_[place.buffer.value] = unit.nodes.back();
    }
  }

 private:
  void note(const RowOperand& written) {
    makers_[written.place.buffer.value] = program_.graph->value(written.value).producer;
  }

  NodeId of(BufferId buffer) const { return makers_[buffer.value]; }

  const Program& program_;
  std::vector<NodeId> makers_;  // by buffer
};

}  // namespace

double Attribution::busy() const {
  const double all = step_seconds * workers;
  return all > 0 ? std::min(busy_seconds / all, 1.0) : 0;
}

Attribution attribute(const Program& program, std::span<const Timeline> timelines,
                      std::span<const double> estimates, int workers) {
  WEFT_CHECK(estimates.size() == program.graph->node_count());
  for (const Timeline& timeline : timelines) WEFT_CHECK(timeline.tasks.size() == program.tasks.size());

  Attribution found;
  found.node_seconds.assign(program.graph->node_count(), 0);
  found.workers = workers;
  if (timelines.empty()) return found;
  found.steps = timelines.size();
  const std::vector<double> seconds = unit_seconds(program, timelines);
  Makers makers(program);
  for (std::size_t u = 0; u < program.units.size(); ++u) {
    const Unit& unit = program.units[u];
    found.busy_seconds += seconds[u];
    if (unit.nodes.empty()) {
      const NodeId node = makers.served_by(unit);
      (node.valid() ? found.node_seconds[node.value] : found.other_seconds) += seconds[u];
    } else {
      double all = 0;
      for (const NodeId node : unit.nodes) all += estimates[node.value];
      for (const NodeId node : unit.nodes)
        found.node_seconds[node.value] += all > 0 ? seconds[u] * estimates[node.value] / all
                                                  : seconds[u] / static_cast<double>(unit.nodes.size());
    }
    makers.note(unit);
  }
  std::vector<double> steps;
  for (const Timeline& timeline : timelines) steps.push_back(timeline.seconds);
  found.step_seconds = median(std::move(steps));
  return found;
}

}  // namespace weft::program
