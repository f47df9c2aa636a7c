// weft/predict/sim/step/program_tasks.h -- a program as the simulator's input.
//
// It has each task's stream, duration and dependents.
//
//   streams   the program's (program/tasks/stream.h). Without overlap there is one stream, 0. If several
//             workers share it, a collective has the rank to itself (program/tasks/without_overlap.h).
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "weft/base/result.h"
#include "weft/plan/graph/layout.h"
#include "weft/predict/cost/step_costs.h"
#include "weft/program/tasks/program.h"

namespace weft::sim {

struct ExchangeTask {
  std::uint32_t task = 0;
  std::uint32_t axis = 0;
  // Exchanges of one lane run in order. Lane a is mesh axis a; low-priority exchanges along it use
  // another lane, after those of all axes.
  std::uint32_t lane = 0;
  program::Exchange::Kind kind = program::Exchange::Kind::all_reduce;
  std::int64_t bytes = 0;  // its size as nccl-tests counts it
  cost::ExchangeCost price;
};

struct ProgramTasks {
  static constexpr std::uint32_t kComputes = 0xffff'ffff;

  std::shared_ptr<const program::Program> program;
  std::vector<double> seconds;                          // by task; 0 for exchanges
  std::vector<cost::Source> sources;                    // by task
  std::vector<std::uint32_t> exchange;                  // by task: index in `exchanges`, or kComputes
  std::vector<ExchangeTask> exchanges;                  // in program order
  std::vector<std::vector<std::uint32_t>> streams;      // tasks in program order
  std::vector<std::vector<std::uint32_t>> lane_orders;  // by lane: exchanges in order
  std::vector<std::uint32_t> waits;                     // by task: number of dependencies
  std::vector<std::uint32_t> first_after, after;        // dependents of t: after[first_after[t] ..]
  std::vector<std::vector<std::uint32_t>> apart;        // replace the program's unless empty

  std::size_t count() const { return seconds.size(); }
  std::uint32_t stream_of(std::uint32_t task, bool overlap) const {
    return overlap ? program->units[program->tasks[task].unit].stream : 0;
  }
  std::span<const std::uint32_t> waits_of(std::uint32_t task) const {
    return apart.empty() ? program->tasks[task].waits : apart[task];
  }
  std::span<const std::uint32_t> waiting_for(std::uint32_t task) const {
    return {after.data() + first_after[task], after.data() + first_after[task + 1]};
  }
};

// `workers` tasks of stream 0 run at once. Fails if the program names an axis that the mesh lacks,
// or sends bytes along an axis whose link has no bandwidth.
Result<ProgramTasks> estimate_tasks(std::shared_ptr<const program::Program> program, const plan::Mesh& mesh,
                                    const cost::StepCosts& costs, bool overlap, int workers = 1);

}  // namespace weft::sim
