#include "weft/runtime/run/training.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>

#include <fmt/format.h>

#include "weft/base/units.h"
#include "weft/device/element_access.h"
#include "weft/parallel/train/training_plan.h"
#include "weft/plan/ops/operators.h"
#include "weft/runtime/run/batch_prefetcher.h"

namespace weft::run {
namespace {

using Clock = std::chrono::steady_clock;

// Number of steps between copies of the memory. A copy costs about as much as reading the
// parameters once. After a divergence at most this many steps are repeated.
constexpr std::int64_t kStepsBetweenCopies = 50;

// A copy is not included in the rank's reported memory, so it must be small, absolutely or relative
// to the rank.
constexpr std::int64_t kFewBytes = 4 << 20, kLittleBeside = 50;

class LastCopy {
 public:
  explicit LastCopy(const exec::Rank& rank)
      : kept_(rank.program().persistent_bytes <= std::max(kFewBytes, rank.bytes() / kLittleBeside)) {}

  Status keep(const exec::Rank& rank, std::int64_t step) {
    step_ = step;
    return kept_ ? rank.keep(bytes_) : Status();
  }
  bool is_kept() const { return kept_; }
  Status put_back(exec::Rank& rank) const { return rank.put_back(bytes_); }
  std::int64_t step() const { return step_; }

 private:
  const bool kept_;
  std::vector<std::byte> bytes_;
  std::int64_t step_ = 0;
};

// Infinities written by the plan itself, as in masks, are not faults.
bool writes_infinity(const program::Program& program, const program::Unit& unit) {
  for (const plan::NodeId id : unit.nodes)
    for (const plan::ValueId input : program.graph->node(id).inputs) {
      const plan::NodeView from = program.graph->view(program.graph->value(input).producer);
      if (&from.op() == &ops::constant() && std::isinf(from.real(0))) return true;
    }
  return false;
}

// The node that produced a non-finite number written by the task; empty if all are finite. The node
// is invalid if the value was only copied.
Result<std::optional<plan::NodeId>> find_fault(const exec::Rank& rank, const program::Task& task) {
  const program::Program& program = rank.program();
  const program::Unit& unit = program.units[task.unit];
  const bool infinity_is_fine = writes_infinity(program, unit);
  std::optional<plan::NodeId> first;
  for (const program::Place& place : unit.writes) {
    const program::Buffer& buffer = program.buffer(place.buffer);
    if (!plan::is_real(place.dtype)) continue;
    const program::Extent whole = program::extent(place);
    const std::int64_t width = plan::size_in_bytes(place.dtype);
    WEFT_TRY(held, rank.read(place.buffer));
    for (const program::Extent& written : task.writes) {
      if (!written.overlaps(whole)) continue;
      for (std::int64_t at = std::max(written.begin, whole.begin); at < std::min(written.end, whole.end);
           at += width) {
        const double value = device::load_element(place.dtype, held.data(), at / width);
        if (std::isfinite(value) || (infinity_is_fine && std::isinf(value))) continue;
        plan::NodeId node = unit.nodes.empty() ? plan::NodeId() : unit.nodes.back();
        for (const plan::NodeId id : unit.nodes)
          for (std::size_t k = 0; k < program.graph->node(id).result_count; ++k)
            if (program.graph->result(id, k) == buffer.value) node = id;
        if (!first || node < *first) first = node;
        break;
      }
    }
  }
  return first;
}

std::string describe_node(const program::Program& program, plan::NodeId id) {
  if (!id.valid()) return "a copy";
  const plan::Node& node = program.graph->node(id);
  const std::string path = program.graph->path(node.scope, node.label);
  return fmt::format("{}{}{}", node.op->name(), path.empty() ? "" : " in ", path);
}

// Without a copy to repeat from: lists the parameters that are no longer finite.
std::string spoiled_parameters(const exec::Rank& rank) {
  std::string names;
  std::size_t count = 0;
  for (const program::Port& port : rank.program().parameters) {
    const auto held = rank.read(port);
    if (!held.ok() || !plan::is_real(port.place.dtype)) continue;
    bool finite = true;
    for (std::int64_t i = 0; finite && i < port.place.elements(); ++i)
      finite = std::isfinite(device::load_element(port.place.dtype, held->data(), i));
    constexpr std::size_t kShown = 3;
    if (!finite && count++ < kShown) names += (names.empty() ? "" : ", ") + port.name;
  }
  if (count == 0) return "; all parameters are finite";
  return fmt::format("; {} of {} parameters are not finite: {}{}", count, rank.program().parameters.size(),
                     names, count > 3 ? ", ..." : "");
}

// Repeats the steps since the copy, one task at a time, until a number is not finite.
Error explain_divergence(exec::Rank& rank, const Feed& feed, const Schedule& schedule, const LastCopy& copy,
                         std::int64_t step, double loss) {
  const std::string message = print_divergence(loss, step + 1);
  std::string hint = "a smaller learning_rate may help";
  if (!copy.is_kept()) return user_error(message + spoiled_parameters(rank), std::move(hint));
  if (Status back = copy.put_back(rank); !back.ok()) return std::move(back).error();
  for (std::int64_t again = copy.step(); again <= step; ++again) {
    feed.fill(rank, again);
    if (Status rate = write_rate(rank, schedule, again); !rate.ok()) return std::move(rate).error();
    for (std::uint32_t t = 0; t < rank.program().tasks.size(); ++t) {
      if (Status ran = rank.run_in_order({&t, 1}); !ran.ok()) return std::move(ran).error();
      auto fault = find_fault(rank, rank.program().tasks[t]);
      if (!fault.ok()) return std::move(fault).error();
      if (*fault)
        return user_error(fmt::format("{}; the first non-finite number came from {}, at step {}", message,
                                      describe_node(rank.program(), **fault), print_exact(again + 1)),
                          std::move(hint));
    }
  }
  return user_error(message, std::move(hint));
}

}  // namespace

Result<TrainingOutcome> run_training(exec::Rank& rank, const Feed& feed, const TrainingRun& run) {
  TrainingOutcome outcome;
  LastCopy copy(rank);
  BatchPrefetcher batches(rank, feed);
  rank.count_from(run.first_step + 1);
  const auto begin = Clock::now();
  for (std::int64_t i = 0; i < run.steps; ++i) {
    const std::int64_t step = run.first_step + i;
    if (run.interrupted && run.interrupted()) {
      outcome.interrupted = true;
      break;
    }
    outcome.terminated = run.terminated && run.terminated();
    outcome.time_up = run.until && Clock::now() >= *run.until;
    if (outcome.terminated || outcome.time_up) break;
    if (i % kStepsBetweenCopies == 0) WEFT_TRY_STATUS(copy.keep(rank, step));
    batches.bring(step);
    WEFT_TRY_STATUS(write_rate(rank, run.schedule, step));
    WEFT_TRY_STATUS(rank.step());
    WEFT_TRY(loss, rank.number(rank.program().outputs.front()));
    outcome.last_loss = loss;
    WEFT_TRY(scale, loss_scale_after(rank, step + 1));
    const auto explain = [&](double value) {
      batches.stop();
      return explain_divergence(rank, feed, run.schedule, copy, step, value);
    };
    if (!scale && !std::isfinite(outcome.last_loss)) return explain(outcome.last_loss);
    WEFT_TRY(further, further_losses(rank, run.losses));
    for (const double other : further)
      if (!scale && !std::isfinite(other)) return explain(other);
    outcome.last_further = std::move(further);
    if (i == 0) outcome.first_loss = outcome.last_loss, outcome.first_further = outcome.last_further;
    outcome.steps_done = i + 1;
    outcome.seconds = std::chrono::duration<double>(Clock::now() - begin).count();
    if (run.on_step)
      WEFT_TRY_STATUS(run.on_step({step + 1, outcome.last_loss, outcome.seconds, outcome.last_further}));
  }
  return outcome;
}

Result<std::vector<double>> further_losses(const exec::Rank& rank, std::size_t losses) {
  std::vector<double> further;
  for (std::size_t i = 1; i < losses; ++i) {
    WEFT_TRY(loss, rank.number(rank.program().outputs.at(i)));
    further.push_back(loss);
  }
  return further;
}

Result<std::optional<double>> loss_scale_after(const exec::Rank& rank, std::int64_t step) {
  const auto& states = rank.program().states;
  const auto found = std::ranges::find(states, train::kLossScaleName, &program::Port::name);
  if (found == states.end()) return std::optional<double>();
  WEFT_TRY(scale, rank.number(*found));
  if (scale >= train::kLeastLossScale) return std::optional<double>(scale);
  return user_error(
      fmt::format("the loss scale collapsed: gradients are not finite at step {} with a scale of {}",
                  print_exact(step), 2 * scale),
      "f16 ends at 65,504: precision = bf16 has the range of f32; a smaller learning_rate may help");
}

// The sign of a NaN depends on the processor, so it is not printed.
std::string print_divergence(double loss, std::int64_t step) {
  const std::string what = std::isnan(loss) ? "nan" : fmt::format("{}", loss);
  return fmt::format("training diverged: the loss is {} at step {}", what, print_exact(step));
}

}  // namespace weft::run
