// TRAIN: trains a model on data.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "weft/app/explain/progress.h"
#include "weft/app/explain/report.h"
#include "weft/app/session/learn.h"
#include "weft/app/session/ready_to_train.h"
#include "weft/app/session/reply.h"
#include "weft/app/session/score_text.h"
#include "weft/app/session/training_checkpoints.h"
#include "weft/app/session/training_log.h"
#include "weft/base/background_load.h"
#include "weft/base/machine.h"
#include "weft/base/units.h"
#include "weft/parallel/distribute/trace_origins.h"
#include "weft/parallel/pipeline/unroll.h"
#include "weft/plan/graph/text.h"
#include "weft/planner/proof/prove_plan.h"
#include "weft/planner/statement/prepare.h"
#include "weft/planner/step/fit_memory.h"
#include "weft/planner/step/kept_plan.h"
#include "weft/planner/step/plan_for.h"
#include "weft/planner/step/replan.h"
#include "weft/program/tasks/reference_ops.h"
#include "weft/runtime/run/algorithm_list.h"
#include "weft/runtime/run/local_ranks_run.h"
#include "weft/runtime/run/rank_comparison.h"

namespace weft::session {
namespace {

using Json = nlohmann::ordered_json;

// The first and the last value of loss `i`, if the model has several.
std::pair<double, double> losses_of(const run::TrainingOutcome& outcome, std::size_t i) {
  if (i == 0 || i > outcome.last_further.size()) return {outcome.first_loss, outcome.last_loss};
  return {outcome.first_further[i - 1], outcome.last_further[i - 1]};
}

// Reports progress at most ten times per second.
class Watch {
 public:
  Watch(const Context& context, const language::syntax::Run& run, const run::Feed& feed,
        std::int64_t first_step, std::int64_t last_step)
      : context_(context), feed_(feed), first_step_(first_step), steps_(last_step) {
    progress_.model = run.model.text;
    progress_.steps = steps_;
    progress_.what = feed.example();
  }

  void see(const run::StepReport& report) {
    if (!context_.on_progress) return;
    const bool last = report.step == steps_;
    constexpr double kSecondsBetween = 0.1;
    if (!last && report.seconds - shown_ < kSecondsBetween) return;
    shown_ = report.seconds;
    const auto done = static_cast<double>(report.step - first_step_);
    progress_.step = report.step;
    progress_.loss = report.loss;
    progress_.rows_per_second = done * static_cast<double>(feed_.examples_per_step()) / report.seconds;
    progress_.seconds_left = report.seconds / done * static_cast<double>(steps_ - report.step);
    context_.on_progress(progress_);
  }

 private:
  const Context& context_;
  const run::Feed& feed_;
  const std::int64_t first_step_, steps_;
  explain::Progress progress_;
  double shown_ = -1;
};

// The learning rate schedule. With schedule_steps it starts at the model's first step, so that
// training in parts equals training at once.
run::Schedule schedule_of(const RunOptions& running, std::int64_t first_step, std::int64_t steps) {
  const bool whole = running.schedule_steps > 0;
  return {.kind = running.schedule,
          .warmup = running.warmup,
          .first = whole ? 0 : first_step,
          .steps = whole ? running.schedule_steps : steps,
          .end = running.schedule_end,
          .every = running.schedule_every,
          .factor = running.schedule_factor};
}

// The result of a TRAIN on one rank or several.
struct Trained {
  run::TrainingOutcome outcome;
  run::Weights weights;
  int threads = 1;  // per rank
  std::vector<program::ReferenceOps> by_definition;
  std::string distribution;  // with several ranks, stages or micro-batches
  std::int64_t micro_batches = 1;
  std::string unproven;          // why the plan was not proven; empty: it was
  bool reports = true;           // true only on rank 0 of a launcher
  bool changes_plan = false;     // ended early to continue with another plan
  std::string next_plan;         // that plan, known to rank 0
  double predicted_seconds = 0;  // per step; 0: not estimated
  double memory_bytes = 0;       // of the fullest rank
  double others = 0;             // share of this machine's processors used by other programs

  bool ended_early() const { return outcome.interrupted || outcome.terminated || outcome.time_up; }
};

// How much of the processors other programs used. Empty if that was little, or the time too short
// to tell.
std::string print_shared(const Prepared& prepared, const Trained& done) {
  constexpr double kMuch = 0.25, kLeastSeconds = 3;
  if (prepared.ranks < 2 || prepared.target.is_job() || prepared.target.on_gpu() || done.others < kMuch ||
      done.outcome.seconds < kLeastSeconds)
    return "";
  return fmt::format(
      "other processes used {:.0f} % of the {} processors, which slows every rank; run them under nice, or "
      "later",
      100 * done.others, available_processors());
}

// Called with the weights trained so far.
using OnCheckpoint = std::function<Status(std::int64_t step, formats::Checkpoint learned)>;

// Marks the period in which the process should not exit, since steps after the last checkpoint
// would be lost.
class Learning {
 public:
  explicit Learning(const Context& context) : context_(context) {}
  ~Learning() {
    if (begun_ && context_.on_training) context_.on_training(false);
  }
  void begin() {
    if (!std::exchange(begun_, true) && context_.on_training) context_.on_training(true);
  }

 private:
  const Context& context_;
  bool begun_ = false;
};

// Warns of gradients that a training with `gradient_delay` computed but did not apply, if the plan
// cannot hold them.
void warn_of_dropped(const Session::State& state, const run::Weights& start, const plan::Graph& plan) {
  const auto sources = distribute::sources_of(plan);
  std::vector<std::string> dropped;
  for (const auto& [name, tensor] : start.tensors) {
    const std::size_t end = name.find(".delayed.");
    if (end == std::string::npos || sources.contains(name)) continue;
    if (std::ranges::any_of(tensor.bytes, [](std::byte byte) { return byte != std::byte{0}; }))
      dropped.push_back(name.substr(0, end));
  }
  if (!dropped.empty())
    state.warnings.add("training resumes without the gradients that were computed but not applied",
                       user_error(fmt::format("of {}", fmt::join(dropped, ", ")),
                                  "gradient_delay = 1 on as many ranks applies them"));
}

Result<Trained> train_alone(const Session::State& state, const Context& context, const ReadyToTrain& ready,
                            const run::DistributedRun& run, const OnCheckpoint& on_checkpoint) {
  const Prepared& prepared = ready.prepared;
  const run::Weights& start = *ready.start;
  WEFT_TRY(plan, plan_to_train(state, context, prepared, start.plan, ready.from_file));
  warn_of_dropped(state, start, plan.choice.plan);
  WEFT_TRY(proof, require_proof(state, prepared, prepared.plan.graph, plan.choice));
  Trained trained;
  pipeline::Unrolled in_time;
  if (plan.choice.spread) {
    WEFT_TRY(unrolled, pipeline::unroll(plan.choice.spread->chosen.plan, 0));
    in_time = std::move(unrolled);
    plan.choice.plan = std::move(in_time.graph);
    trained.distribution = distribute::print(plan.choice.spread->distribution);
    trained.micro_batches = plan.choice.spread->distribution.micro_batches;
  }
  WEFT_TRY(rank, start_rank(std::move(plan.choice.plan), prepared,
                            {.held_bytes = run::bytes_of(start), .turns = in_time.turns}));
  WEFT_TRY_STATUS(start.tensors.empty() ? run::write_initial(*rank, start.seed)
                                        : run::write_weights(*rank, start));
  trained.unproven = proof.holds ? std::string() : proof.text;
  trained.weights = run::without_tensors(start);
  trained.weights.sizes = run.sizes;
  trained.weights.plan = std::move(plan.kept);
  trained.weights.launch = run::launch_name();
  run::TrainingRun training = run.training;
  training.on_step = [&](const run::StepReport& report) -> Status {
    WEFT_TRY_STATUS(run.training.on_step(report));
    if (!run.is_due || !run.is_due(report.step)) return {};
    trained.weights.step = report.step;
    WEFT_TRY(learned, run::to_checkpoint(*rank, trained.weights));
    return on_checkpoint(report.step, learned.checkpoint);
  };
  WEFT_TRY(outcome, run::run_training(*rank, *ready.feed, training));
  trained.weights.step = start.step + outcome.steps_done;
  WEFT_TRY_STATUS(run::take_weights(*rank, trained.weights));
  trained.outcome = outcome;
  trained.threads = rank->workers();
  trained.memory_bytes = static_cast<double>(rank->bytes());
  trained.by_definition = program::find_reference_ops(rank->program());
  trained.reports = run::launched_rank() == 0;
  return trained;
}

// The plan for all ranks; each rank proves it.
Result<PlanToTrain> proven_plan(const Session::State& state, const Context& context,
                                const ReadyToTrain& ready, Proof& proof) {
  const Prepared& prepared = ready.prepared;
  WEFT_TRY(plan, plan_to_train(state, context, prepared, ready.start->plan, ready.from_file));
  warn_of_dropped(state, *ready.start, plan.choice.spread->chosen.plan.graph);
  run::RankComparison proving(fmt::format("the proof of {}", prepared.run->model.text));
  auto proven = require_proof(state, prepared, prepared.plan.graph, plan.choice);
  const std::string spread =
      plan::print(plan.choice.spread->chosen.plan.graph) + run::print_algorithms(plan.options.algorithms);
  WEFT_TRY_STATUS(proving.end(
      proven.ok() ? Status() : Status(proven.error()),
      {{"plans", Hasher().text(spread).digest().hex(), false, "run the same weft on all hosts"}}));
  proof = std::move(*proven);
  return plan;
}

Result<Trained> train_on_ranks(const Session::State& state, const Context& context, const ReadyToTrain& ready,
                               const run::DistributedRun& training, const OnCheckpoint& on_checkpoint,
                               Replanning& replanning) {
  Proof proof;
  WEFT_TRY(plan, proven_plan(state, context, ready, proof));
  if (training.look_every > 0 && plan.choice.spread->chosen.plan.time)
    return user_error(
        "replan_every cannot be combined with stages or micro-batches: it compares ranks, and stages do "
        "different work",
        "remove one of them");
  run::DistributedRun run = training;
  run.on_weights = [&](std::int64_t step, const run::Weights& weights) {
    return on_checkpoint(step, run::to_checkpoint(weights));
  };
  run.plan = plan.kept;
  run.launch = run::launch_name();
  std::string next_plan;
  run.on_speeds = [&](std::int64_t step, const run::RankSpeeds& speeds) {
    next_plan = replanning.look(step, plan, speeds).value_or(std::string());
    return !next_plan.empty();
  };
  WEFT_TRY(outcome, run::run_distributed(plan.choice.spread->chosen.plan, plan.options, *ready.feed,
                                         *ready.start, run));
  return Trained{.outcome = outcome.training,
                 .weights = std::move(outcome.weights),
                 .threads = plan.options.workers,
                 .by_definition = std::move(outcome.by_definition),
                 .distribution = distribute::print(plan.choice.spread->distribution),
                 .micro_batches = plan.choice.spread->distribution.micro_batches,
                 .unproven = proof.holds ? std::string() : proof.text,
                 .reports = outcome.rank == 0,
                 .changes_plan = outcome.changes_plan,
                 .next_plan = std::move(next_plan),
                 .predicted_seconds = plan.choice.spread->chosen.prediction.seconds,
                 .memory_bytes = static_cast<double>(outcome.bytes)};
}

// The error for a training that ended early.
Error stopped(const run::TrainingOutcome& outcome, const run::Weights& weights, const CheckpointFile& file,
              const BestCheckpoint& best, bool goes_on) {
  const std::string step = print_exact(weights.step);
  const std::string what =
      outcome.interrupted
          ? fmt::format("interrupted after step {}", step)
          : fmt::format("stopped after step {}: {}", step,
                        outcome.time_up         ? "wall_time is over"
                        : outcome.ended_by == 0 ? "the process received SIGTERM"
                                                : fmt::format("rank {} received SIGTERM", outcome.ended_by));
  if (file.wanted())
    return user_error(what, fmt::format("saved to {}: resume = true continues from there", file.path()));
  if (outcome.interrupted && goes_on)
    return user_error(
        what, "the session keeps the weights: TRAIN continues from there, SAVE writes them to a file");
  if (best.step() > 0)
    return user_error(
        what, fmt::format(
                  "only the best step, {}, is saved, to {}: checkpoint = 'model.safetensors' saves the last",
                  print_exact(best.step()), best.path()));
  return user_error(what, "nothing is saved: set checkpoint = 'model.safetensors' to save the weights");
}

// Runs a TRAIN from its first step to its answer.
class Training {
 public:
  Training(Session::State& state, const Context& context, const language::syntax::Run& run,
           ReadyToTrain& ready, TrainingLog& log)
      : state_(state),
        context_(context),
        statement_(run),
        ready_(ready),
        running_(ready.prepared.settings.running),
        log_(log),
        learning_(context),
        watch_(context, run, *ready.feed, ready.start->step, ready.end),
        scorer_(state, context, ready.prepared, *ready.feed),
        replanning_(state, context, ready.prepared),
        file_(state, context, running_.checkpoint),
        best_(state, context, running_.checkpoint_best) {}

  Answer answer(std::chrono::steady_clock::time_point begun);

 private:
  run::DistributedRun steps(std::chrono::steady_clock::time_point begun);
  Status look_at(std::int64_t step, formats::Checkpoint learned);
  Result<Trained> train(std::chrono::steady_clock::time_point begun);
  void go_on_from(run::Weights weights);
  Status finish(const Trained& done, const run::Weights& weights);
  std::string tell(const Trained& done, const run::Weights& weights) const;

  static bool is_due(std::int64_t every, std::int64_t step) { return every > 0 && step % every == 0; }

  Session::State& state_;
  const Context& context_;
  const language::syntax::Run& statement_;
  ReadyToTrain& ready_;
  const RunOptions& running_;
  TrainingLog& log_;
  Learning learning_;
  Watch watch_;
  Scorer scorer_;
  Replanning replanning_;
  CheckpointFile file_;
  BestCheckpoint best_;
  bool log_fails_ = false, died_ = false;
  std::optional<run::Weights> rescued_;  // from the memory of surviving ranks
  run::TrainingOutcome before_;          // with earlier plans
  std::optional<Score> tested_;
};

run::DistributedRun Training::steps(std::chrono::steady_clock::time_point begun) {
  run::DistributedRun run;
  const std::int64_t first = ready_.start->step;
  run.training = {.first_step = first,
                  .steps = ready_.end - first,
                  .schedule = schedule_of(running_, ready_.begin, ready_.end - ready_.begin)};
  run.training.interrupted = [&] { return context_.interrupted && context_.interrupted(); };
  run.training.terminated = [&] {
    learning_.begin();
    return context_.terminated && context_.terminated();
  };
  if (running_.wall_time > 0)
    run.training.until = begun + std::chrono::duration_cast<std::chrono::steady_clock::duration>(
                                     std::chrono::duration<double>(running_.wall_time));
  run.training.on_step = [&](run::StepReport report) -> Status {
    report.seconds += before_.seconds;
    watch_.see(report);
    best_.see(report);
    const Status logged = log_.add(report);
    if (!logged.ok() && !std::exchange(log_fails_, true))
      state_.warnings.add_now("the log is incomplete; training continues", logged, context_.on_warning);
    return {};
  };
  if (running_.checkpoint_every > 0 || running_.test_every > 0)
    run.is_due = [&](std::int64_t step) {
      return is_due(running_.checkpoint_every, step) || is_due(running_.test_every, step);
    };
  run.sizes = ready_.prepared.named_sizes();
  run.check_every = running_.check_every;
  run.keep_every = running_.copy_every;
  run.on_rescue = [&](run::Weights weights) { rescued_ = std::move(weights); };
  run.look_every = running_.replan_every;
  run.on_death = [&] { died_ = true; };
  return run;
}

Status Training::look_at(std::int64_t step, formats::Checkpoint learned) {
  if (run::launched_rank() != 0) return {};  // an independent copy; rank 0 saves and tests
  const bool saves = is_due(running_.checkpoint_every, step), tests = is_due(running_.test_every, step);
  run::keep_moments(learned, *ready_.start);
  if (saves && file_.wanted()) file_.save(step, learned);
  std::optional<double> loss;
  if (tests || (saves && !running_.checkpoint_best.empty() && running_.holdout > 0)) {
    WEFT_TRY(weights, run::from_checkpoint(learned, statement_.model.text, "the trained weights"));
    WEFT_TRY(tested, scorer_.score(weights));
    if (tests) WEFT_TRY_STATUS(log_.add(step, tested));
    loss = tested.loss;
  }
  if (saves && !running_.checkpoint_best.empty())
    best_.offer(learned, running_.holdout > 0 ? loss : std::nullopt);
  return {};
}

void Training::go_on_from(run::Weights weights) {
  run::keep_moments(weights, ready_.own ? std::move(*ready_.own) : *ready_.start);
  ready_.own = std::make_unique<run::Weights>(std::move(weights));
  ready_.start = ready_.own.get();
}

// Combines the outcomes of two consecutive parts of a training.
run::TrainingOutcome join(const run::TrainingOutcome& before, run::TrainingOutcome after) {
  if (before.steps_done > 0 || after.steps_done == 0) {
    after.first_loss = before.first_loss;
    after.first_further = before.first_further;
  }
  if (after.steps_done == 0) {
    after.last_loss = before.last_loss;
    after.last_further = before.last_further;
  }
  after.steps_done += before.steps_done;
  after.seconds += before.seconds;
  return after;
}

// Continues when the ranks change to another plan. If ranks of this machine fail, restarts them
// from the memory of the others or from the last checkpoint, whichever is later.
Result<Trained> Training::train(std::chrono::steady_clock::time_point begun) {
  const OnCheckpoint on_checkpoint = [&](std::int64_t step, formats::Checkpoint learned) {
    return look_at(step, std::move(learned));
  };
  for (std::int64_t again = 0;;) {
    died_ = false;
    rescued_.reset();
    auto done = ready_.prepared.ranks > 1
                    ? train_on_ranks(state_, context_, ready_, steps(begun), on_checkpoint, replanning_)
                    : train_alone(state_, context_, ready_, steps(begun), on_checkpoint);
    if (done.ok()) {
      done->outcome = join(before_, std::move(done->outcome));
      if (!done->changes_plan) return done;
      before_ = done->outcome;
      go_on_from(std::move(done->weights));
      if (!done->next_plan.empty()) ready_.own->plan = std::move(done->next_plan);
      ready_.prepared.settings.running.follow_plan = true;
      continue;
    }
    if (!died_ || again == running_.restarts || run::launched_ranks() > 1) return done;
    const bool from_memory = rescued_ && rescued_->step >= file_.saved().value_or(ready_.start->step);
    if (from_memory) {
      rescued_->plan = ready_.start->plan;
      go_on_from(std::move(*rescued_));
    } else if (file_.saved()) {
      WEFT_TRY(last, read_weights_file(state_, context_, statement_.model, file_.path()));
      ready_.own = std::make_unique<run::Weights>(std::move(last));
      ready_.start = ready_.own.get();
    }
    ++again;
    before_ = {};
    state_.warnings.add_now(
        fmt::format("ranks restart from step {}{}, restart {} of {}", print_exact(ready_.start->step),
                    from_memory ? ", which the surviving ranks had in memory" : "", again, running_.restarts),
        done.error(), context_.on_warning);
  }
}

// Rank 0 saves and tests the weights.
Status Training::finish(const Trained& done, const run::Weights& weights) {
  if (!done.reports) return {};
  if (file_.wanted()) WEFT_TRY_STATUS(formats::save(file_.path(), run::to_checkpoint(weights)));
  if (done.ended_early()) return log_.finish();
  if (running_.holdout > 0) {
    if (log_.tested_at(weights.step)) {
      tested_ = log_.last_test();
    } else {
      WEFT_TRY(found, scorer_.score(weights));
      tested_ = found;
      WEFT_TRY_STATUS(log_.add(weights.step, found));
    }
  }
  const Status logged = log_.finish();
  if (!logged.ok() && !log_fails_) state_.warnings.add("the log is incomplete", logged);
  return {};
}

Answer Training::answer(std::chrono::steady_clock::time_point begun) {
  const std::string model(statement_.model.text);
  const BackgroundLoad others;
  auto done = train(begun);
  if (done.ok()) done->others = others.share();
  run::RankComparison finishing(fmt::format("the end of TRAIN {}", model),
                                asks_for_ranks(state_.catalog, statement_.target)
                                    ? run::RankComparison::When::launched
                                    : run::RankComparison::When::not_at_all);
  Status finished = done.ok() ? Status() : Status(done.error());
  // A launched rank that was told to abort has no weights.
  if (done.ok() && !done->weights.tensors.empty()) {
    run::keep_moments(done->weights, std::move(ready_.own ? *ready_.own : state_.weights[model]));
    state_.loaded.erase(model);
    finished = finish(*done, state_.weights[model] = std::move(done->weights));
  }
  finished = finishing.end(finished);
  if (!finished.ok()) return placed(std::move(finished).error(), statement_.span);
  const run::Weights& weights = state_.weights[model];
  if (done->ended_early()) {
    state_.stopped = !done->outcome.interrupted;
    return stopped(done->outcome, weights, file_, best_, context_.goes_on);
  }
  return done->reports ? tell(*done, weights) : std::string();
}

std::string Training::tell(const Trained& done, const run::Weights& weights) const {
  const run::TrainingOutcome& outcome = done.outcome;
  const Prepared& prepared = ready_.prepared;
  const run::Feed& feed = *ready_.feed;
  const std::string model(statement_.model.text);
  const std::int64_t first_step = weights.step - outcome.steps_done;
  const double rate = static_cast<double>(feed.examples_per_step()) *
                      static_cast<double>(outcome.steps_done) / std::max(outcome.seconds, 1e-9);
  if (context_.format == Format::json) {
    Json json = {{"trained", model},
                 {"first_step", first_step},
                 {"steps", outcome.steps_done},
                 {"first_loss", outcome.first_loss},
                 {"last_loss", outcome.last_loss},
                 {"seconds", outcome.seconds},
                 {fmt::format("{}_per_second", feed.example()), rate},
                 {"threads", done.threads}};
    if (prepared.ranks > 1) json["ranks"] = prepared.ranks;
    if (prepared.ranks > 1 && !prepared.target.is_job()) json["other_programs"] = done.others;
    if (!done.distribution.empty()) json["plan"] = done.distribution;
    json["curve"] = log_.curve();
    if (tested_) json["test"] = score_json(*tested_);
    for (std::size_t i = 0; i < prepared.goals.size(); ++i) {
      const auto [first, last] = losses_of(outcome, i);
      json["losses"][prepared.goals[i].loss] = {{"first", first}, {"last", last}};
    }
    if (best_.step() > 0) json["best"] = {{"step", best_.step()}, {"loss", best_.loss()}};
    if (prepared.settings.recompute) json["recompute"] = train::print(*prepared.settings.recompute);
    if (prepared.settings.spills) json["spills"] = true;
    if (prepared.settings.untiled) json["untiled"] = true;
    if (!done.unproven.empty()) json["unproven"] = done.unproven;
    return json.dump() + "\n";
  }
  std::string text = fmt::format("trained {} from step {} to {}: ", model, print_exact(first_step),
                                 print_exact(weights.step));
  for (std::size_t i = 0; i < std::max<std::size_t>(prepared.goals.size(), 1); ++i) {
    const auto [first, last] = losses_of(outcome, i);
    text += fmt::format("{}{} {} to {}", i > 0 ? ", " : "",
                        prepared.goals.empty() ? std::string_view("loss") : prepared.goals[i].loss,
                        print_loss(first), print_loss(last));
  }
  text += "\n";
  if (tested_)
    text += print_score(*tested_, feed.example(),
                        running_.holdout_drawn ? "tested on a draw of" : "tested on the last");
  if (best_.step() > 0)
    text += fmt::format("best at step {}: loss {}, saved to {}\n", print_exact(best_.step()),
                        print_loss(best_.loss()), running_.checkpoint_best);
  const std::string on = fmt::format("{} thread{}", done.threads, done.threads == 1 ? "" : "s");
  explain::Report report;  // for the lines that EXPLAIN prints
  report.cluster = prepared.target;
  report.example = feed.example();
  report.examples = static_cast<double>(feed.examples_per_step());
  report.step.emplace().seconds = done.predicted_seconds;
  report.step->memory_bytes = done.memory_bytes;
  explain::Measured& measured = report.measured.emplace();
  measured.times.step_seconds =
      outcome.seconds / static_cast<double>(std::max<std::int64_t>(outcome.steps_done, 1));
  report.alone.emplace();
  report.width = context_.width;
  text += explain::print_line(report, "Step") + explain::print_line(report, "Memory");
  text += fmt::format("{} on {}\n", print_seconds(outcome.seconds),
                      prepared.ranks > 1 ? fmt::format("{} ranks of {}", prepared.ranks, on) : on);
  if (const std::string shared = print_shared(prepared, done); !shared.empty()) text += shared + "\n";
  if (!done.distribution.empty()) text += fmt::format("{}\n", done.distribution);
  if (done.micro_batches > 1 && prepared.norm_shares > 1)
    text += fmt::format("batch norms took their statistics from {} separate shares of the batch\n",
                        prepared.norm_shares);
  if (const std::string how = print_within_limit(prepared); !how.empty()) text += how + "\n";
  if (!done.unproven.empty()) text += fmt::format("{}\n", done.unproven);
  if (!done.by_definition.empty())
    text += fmt::format("ran by definition, slowly: {}\n", program::print(done.by_definition));
  return text;
}

}  // namespace

Answer run_train(Session::State& state, const Context& context, const language::syntax::Run& run) {
  const auto begun = std::chrono::steady_clock::now();
  // Ranks of a launcher join before anything is read, so that all of them report if one lacks
  // something.
  run::RankComparison comparison(fmt::format("TRAIN {}", run.model.text),
                                 asks_for_ranks(state.catalog, run.target)
                                     ? run::RankComparison::When::launched
                                     : run::RankComparison::When::not_at_all);
  auto made = make_ready_to_train(state, context, run);
  Status same =
      comparison.end(made.ok() ? Status() : Status(made.error()),
                     made.ok() && comparison.compares() ? claims_of(*made) : std::vector<run::Claim>());
  if (!same.ok()) return placed(std::move(same).error(), run.span);
  ReadyToTrain& ready = *made;
  if (ready.is_over()) {
    const std::int64_t step = ready.start->step;
    if (ready.own) state.weights[std::string(run.model.text)] = std::move(*ready.own);
    if (run::launched_rank() != 0) return std::string();
    if (context.format == Format::json)
      return Json{{"trained", run.model.text}, {"first_step", step}, {"steps", 0}}.dump() + "\n";
    return fmt::format("{} is already at step {}\n", run.model.text, print_exact(step));
  }
  const bool writes = run::launched_rank() == 0;
  auto log =
      TrainingLog::open(writes ? ready.prepared.settings.running.log : std::string(), ready.start->step);
  if (!log.ok()) return placed(std::move(log).error(), run.span);
  return Training(state, context, run, ready, *log).answer(begun);
}

}  // namespace weft::session
