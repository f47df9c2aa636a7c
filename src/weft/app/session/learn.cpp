#include "weft/app/session/learn.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>

#include <fmt/format.h>

#include "weft/base/machine.h"
#include "weft/communication/transport/machine_ranks.h"
#include "weft/device/element_access.h"
#include "weft/plan/ops/operators.h"
#include "weft/planner/proof/prove_plan.h"
#include "weft/planner/step/plan_for.h"
#include "weft/predict/cost/choose_algorithms.h"
#include "weft/predict/cost/mesh_links.h"
#include "weft/runtime/run/fit_program.h"
#include "weft/runtime/run/fold_weights.h"

namespace weft::session {

bool is_remembered(const Session::State& state, const Settings& settings, double others) {
  constexpr double kMostOthers = 0.15;  // of the processors; above it, unit times vary by more than this
  if (settings.running.remember) return *settings.running.remember;
  if (others <= kMostOthers) return true;
  state.warnings.add("measurements are not saved",
                     user_error(fmt::format("other processes used {:.0f} % of the processors", 100 * others),
                                "measure again when the machine is idle, or SET keep_measurements = true"));
  return false;
}
namespace {

using language::Mode;
using plan::NodeId;
using plan::NodeView;

const program::Port& output(const exec::Rank& rank, std::string_view name) {
  return *std::ranges::find(rank.program().outputs, name, &program::Port::name);
}

struct Answers {
  std::int64_t right = 0, all = 0;
};

Status count_answers(const exec::Rank& rank, Answers& answers) {
  const program::Port &logits = output(rank, kLogits), &labels = output(rank, kLabels);
  const std::int64_t classes = logits.place.axes[logits.place.axes.size() - 1].size;
  const std::int64_t rows = logits.place.elements() / classes;
  WEFT_TRY(given, rank.read(labels));
  WEFT_TRY(found, rank.read(logits));
  for (std::int64_t row = 0; row < rows; ++row) {
    const double label = device::load_element(labels.place.dtype, given.data(), row);
    if (label < 0) continue;
    std::int64_t best = 0;
    double most = -INFINITY;
    for (std::int64_t c = 0; c < classes; ++c) {
      const double logit = device::load_element(logits.place.dtype, found.data(), row * classes + c);
      if (logit > most) most = logit, best = c;
    }
    answers.right += static_cast<double>(best) == label;
    ++answers.all;
  }
  return {};
}

}  // namespace

bool add_cross_entropy_outputs(plan::Graph& graph) {
  for (std::size_t n = 0; n < graph.node_count(); ++n) {
    const NodeView node = graph.view(NodeId(n));
    if (&node.op() != &ops::cross_entropy()) continue;
    const plan::Type logits = node.input_type(0);
    if (logits.dims.back().index != node.symbol(0) ||
        !std::ranges::equal(node.input_type(1).dims, logits.dims.first(logits.rank() - 1)))
      return false;
    graph.add_output(graph.symbol(kLogits), node.input(0));
    graph.add_output(graph.symbol(kLabels), node.input(1));
    return true;
  }
  return false;
}

Result<language::SizeOverride> batch_size(const plan::Graph& graph) {
  for (std::size_t n = 0; n < graph.node_count(); ++n) {
    const NodeView node = graph.view(NodeId(n));
    if (&node.op() != &ops::input() || node.result_type(0).rank() == 0) continue;
    const plan::Dim batch = node.result_type(0).dims[0];
    return language::SizeOverride{std::string(graph.text(batch.index)), batch.size, {}};
  }
  return user_error(fmt::format("{} has no INPUT to feed data to", graph.name),
                    "declare an INPUT in the model");
}

Result<std::unique_ptr<exec::Rank>> start_rank(plan::Graph graph, const Prepared& prepared,
                                               const RankStart& how) {
  const auto limit = static_cast<std::int64_t>(prepared.settings.memory_limit);
  const bool here = !prepared.target.on_gpu();
  const int workers = here ? prepared.target.threads : 1;
  program::CompileOptions compiling = run::rank_compiling(workers, !here);
  compiling.turns = how.turns;
  WEFT_TRY(fitted,
           run::fit_program(std::make_shared<plan::Graph>(std::move(graph)), compiling,
                            prepared.settings.spills ? limit - how.held_bytes : 0, prepared.target.gpu));
  return exec::Rank::start(std::move(fitted.program),
                           {.device = prepared.target.gpu,
                            .gives_way = how.gives_way || prepared.settings.running.gives_way,
                            .workers = workers,
                            .memory_limit = limit,
                            .memory_held = how.held_bytes,
                            .spill_folder = spill_folder_of(prepared.settings),
                            .flights = {.timeout = prepared.settings.running.device_timeout,
                                        .unit_by_unit = prepared.settings.running.unit_by_unit}});
}

Result<InferencePlan> start_inference(const Session::State& state, const Prepared& prepared,
                                      plan::Graph graph) {
  WEFT_TRY(planned, plan_alone(state, prepared, graph));
  WEFT_TRY(proof, require_proof(state, prepared, graph, planned));
  InferencePlan asked;
  if (!proof.holds) asked.unproven = proof.text;
  WEFT_TRY(folded, run::fold_weights(planned.plan));
  if (folded) {
    asked.once = std::move(folded->once);
    planned.plan = std::move(folded->batch);
  }
  WEFT_TRY(rank, start_rank(std::move(planned.plan), prepared));
  asked.rank = std::move(rank);
  return asked;
}

Status give_weights(InferencePlan& asked, const Prepared& prepared, const run::Weights& weights) {
  asked.computed.clear();
  if (asked.once) {
    WEFT_TRY(made,
             run::compute_once(asked.once->clone(), weights,
                               {.workers = prepared.target.threads,
                                .memory_limit = static_cast<std::int64_t>(prepared.settings.memory_limit)}));
    asked.computed = std::move(made);
  }
  if (prepared.target.on_gpu()) return run::load_weights(*asked.rank, weights, asked.computed);
  WEFT_TRY_STATUS(run::write_weights(*asked.rank, weights, asked.computed));
  asked.computed.clear();
  return {};
}

// A smaller last batch needs its own plan, because means are over the whole batch.
Result<Scorer::Part*> Scorer::part_for(std::int64_t left) {
  for (Part& part : parts_)
    if (&part == &parts_.front() ? part.batch <= left : part.batch == left) return &part;
  WEFT_TRY(bound, bind_again(state_, prepared_, Mode::infer, {}, context_.interrupted));
  WEFT_TRY(size, batch_size(bound.graph));
  if (!feed_.has_batch()) {
    size.size = 1;
  } else if (left < size.size) {
    size.size = left;
    WEFT_TRY(smaller, bind_again(state_, prepared_, Mode::infer, {&size, 1}, context_.interrupted));
    bound = std::move(smaller);
  }
  Part part;
  part.batch = size.size;
  part.has_loss =
      !bound.graph.outputs().empty() && bound.graph.type(bound.graph.outputs()[0].value).rank() == 0;
  part.has_answers = add_cross_entropy_outputs(bound.graph);
  WEFT_TRY(plan, start_inference(state_, prepared_, std::move(bound.graph)));
  part.plan = std::move(plan);
  parts_.push_back(std::move(part));
  return &parts_.back();
}

Result<Score> Scorer::score(const run::Weights& weights, const OnBatch& on_batch) {
  Score total;
  Answers answers;
  double loss = 0;
  std::int64_t rows = 0;
  const Part* filled = nullptr;
  while (total.examples < feed_.test_examples()) {
    if (context_.interrupted && context_.interrupted()) return user_error("interrupted");
    WEFT_TRY(part, part_for(feed_.test_examples() - total.examples));
    if (!part->has_loss && !on_batch)
      return user_error(fmt::format("the first output of {} is not a single number to average over the data",
                                    prepared_.run->model.text),
                        "start the model's last SELECT with the loss, or write the outputs: INTO 'out.csv'",
                        prepared_.run->model.span);
    exec::Rank& rank = *part->plan.rank;
    const auto begin = std::chrono::steady_clock::now();
    if (filled != part) WEFT_TRY_STATUS(give_weights(part->plan, prepared_, weights));
    filled = part;
    if (!part->plan.unproven.empty()) total.unproven = part->plan.unproven;
    feed_.fill_test(rank, total.examples);
    WEFT_TRY_STATUS(rank.step());
    if (prepared_.target.on_gpu() && !total.first_answer)
      total.first_answer = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    // Weights a batch by its labelled rows, as the loss within a batch does.
    const std::int64_t before = answers.all;
    if (part->has_answers) WEFT_TRY_STATUS(count_answers(rank, answers));
    const std::int64_t now = part->has_answers ? answers.all - before : part->batch;
    if (part->has_loss) {
      WEFT_TRY(number, rank.number(rank.program().outputs.front()));
      loss += static_cast<double>(now) * number;
      rows += now;
      total.loss = 0;
    }
    if (on_batch) WEFT_TRY_STATUS(on_batch(rank, part->batch));
    total.examples += part->batch;
  }
  if (rows > 0) total.loss = loss / static_cast<double>(rows);
  if (answers.all > 0) total.accuracy = static_cast<double>(answers.right) / static_cast<double>(answers.all);
  return total;
}

}  // namespace weft::session
