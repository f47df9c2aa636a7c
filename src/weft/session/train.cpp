// TRAIN, INFER: a model learns from data, or is asked about it.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "weft/base/units.h"
#include "weft/explain/progress.h"
#include "weft/program/by_definition.h"
#include "weft/run/local_ranks_run.h"
#include "weft/session/learn.h"
#include "weft/session/plan_for.h"
#include "weft/session/predictions.h"
#include "weft/session/prepare.h"
#include "weft/session/prove_plan.h"
#include "weft/session/training_log.h"

namespace weft::session {
namespace {

using Json = nlohmann::ordered_json;

Error at(Error error, Span span) {
  if (!error.span.known()) error.span = span;
  return error;
}

// About the file that FROM names.
Error about_data(Error error, Span span) {
  error.span = span;
  if (error.hint.empty())
    error.hint =
        error.fault == Fault::world
            ? "FROM names a file, seen from the folder that weft runs in"
            : "a row of a table is the model's inputs one after the other; what ends in none of .csv, .npy "
              "and .npz is text";
  return error;
}

constexpr std::int64_t kMostJsonValues = 10'000;  // that an answer carries; INTO takes any number

// Three digits are enough to see a loss fall.
std::string print_loss(double loss) { return fmt::format("{:.3g}", loss); }

// The first and the last of one of several.
std::pair<double, double> losses_of(const run::TrainingOutcome& outcome, std::size_t i) {
  if (i == 0 || i > outcome.last_further.size()) return {outcome.first_loss, outcome.last_loss};
  return {outcome.first_further[i - 1], outcome.last_further[i - 1]};
}

// `where`: "tested on the last"
std::string print_score(const Score& score, std::string_view example, std::string_view where) {
  std::string_view what = example == "tokens" ? "windows" : "rows";
  if (score.examples == 1) what.remove_suffix(1);
  std::string text = fmt::format("{} {} {}", where, print_exact(score.examples), what);
  if (score.loss) text += fmt::format(": loss {}", print_loss(*score.loss));
  if (score.accuracy) text += fmt::format(", accuracy {:.4f}", *score.accuracy);
  return text + "\n";
}

Json to_json(const Score& score) {
  Json json = {{"examples", score.examples}};
  if (score.loss) json["loss"] = *score.loss;
  if (score.accuracy) json["accuracy"] = *score.accuracy;
  return json;
}

// Tells whoever watches how far it is, ten times a second at most.
class Watch {
 public:
  Watch(const Context& context, const language::syntax::Run& run, const run::Feed& feed,
        std::int64_t first_step)
      : context_(context), feed_(feed), first_step_(first_step), steps_(first_step + run.steps->whole) {
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

// The statement's steps, or as many from the model's first on, so that a training in parts is one at once.
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

// Keeps the checkpoint of the least loss: as it was tested, or else the mean of the steps since the last.
class BestCheckpoint {
 public:
  explicit BestCheckpoint(const RunOptions& running) : path_(running.checkpoint_best) {}

  void see(const run::StepReport& report) {
    last_ = report.step;
    sum_ += report.loss;
    ++count_;
  }

  Status offer(const formats::Checkpoint& learned, std::optional<double> tested) {
    const double loss = tested.value_or(sum_ / static_cast<double>(std::max<std::int64_t>(count_, 1)));
    sum_ = 0;
    count_ = 0;
    if (step_ > 0 && !(loss < loss_)) return {};
    step_ = last_;
    loss_ = loss;
    return formats::save(path_, learned);
  }

  std::int64_t step() const { return step_; }  // 0: none yet
  double loss() const { return loss_; }

 private:
  const std::string& path_;
  std::int64_t step_ = 0, last_ = 0, count_ = 0;
  double loss_ = 0, sum_ = 0;
};

// What a TRAIN came to, on one rank or several.
struct Trained {
  run::TrainingOutcome outcome;
  run::Weights weights;
  int threads = 1;  // of a rank
  std::vector<program::ByDefinition> by_definition;
  std::string distribution;  // of several ranks
  std::string unproven;      // why that plan was not proven; empty: it was
  bool reports = true;       // false for a rank of a launcher's that is not the first
};

// What is learned so far.
using OnCheckpoint = std::function<Status(std::int64_t step, formats::Checkpoint learned)>;

Result<Trained> train_alone(const Session::State& state, const Prepared& prepared, const run::Feed& feed,
                            const run::Weights& start, const run::DistributedRun& run,
                            const OnCheckpoint& on_checkpoint) {
  WEFT_TRY(choice, plan_for(state, prepared, /*compare=*/false));
  WEFT_TRY(proof, require_proof(state, prepared, prepared.plan.graph, choice));
  WEFT_TRY(rank, start_rank(std::move(choice.plan), prepared, run::bytes_of(start)));
  WEFT_TRY_STATUS(start.tensors.empty() ? run::write_initial(*rank, start.seed)
                                        : run::write_weights(*rank, start));
  Trained trained;
  trained.unproven = proof.holds ? std::string() : proof.text;
  trained.weights = run::without_tensors(start);
  trained.weights.sizes = run.sizes;
  run::TrainingRun training = run.training;
  training.on_step = [&](const run::StepReport& report) -> Status {
    WEFT_TRY_STATUS(run.training.on_step(report));
    if (!run.is_due || !run.is_due(report.step)) return {};
    trained.weights.step = report.step;
    WEFT_TRY(learned, run::to_checkpoint(*rank, trained.weights));
    return on_checkpoint(report.step, learned.checkpoint);
  };
  WEFT_TRY(outcome, run::run_training(*rank, feed, training));
  trained.weights.step = start.step + outcome.steps_done;
  WEFT_TRY_STATUS(run::take_weights(*rank, trained.weights));
  trained.outcome = outcome;
  trained.threads = rank->workers();
  trained.by_definition = program::find_by_definition(rank->program());
  return trained;
}

Result<Trained> train_on_ranks(const Session::State& state, const Context& context, const Prepared& prepared,
                               const run::Feed& feed, const run::Weights& start,
                               const run::DistributedRun& training, const OnCheckpoint& on_checkpoint) {
  run::DistributedRun run = training;
  run.on_weights = [&](std::int64_t step, const run::Weights& weights) {
    return on_checkpoint(step, run::to_checkpoint(weights));
  };
  WEFT_TRY(choice, plan_for_ranks(state, prepared, /*compare=*/false, &context));
  if (was_interrupted(choice)) return user_error("interrupted", "nothing was trained");
  WEFT_TRY(proof, require_proof(state, prepared, prepared.plan.graph, choice));
  const search::DistributionChoice& spread = *choice.spread;
  WEFT_TRY(options, local_ranks_of(prepared, spread.chosen.prediction));
  WEFT_TRY(outcome, run::run_distributed(spread.chosen.plan, options, feed, start, run));
  return Trained{.outcome = outcome.training,
                 .weights = std::move(outcome.weights),
                 .threads = options.workers,
                 .by_definition = std::move(outcome.by_definition),
                 .distribution = distribute::print(choice.spread->distribution),
                 .unproven = proof.holds ? std::string() : proof.text,
                 .reports = outcome.rank == 0};
}

}  // namespace

Answer run_train(Session::State& state, const Context& context, const language::syntax::Run& run) {
  WEFT_TRY(prepared, prepare(state, run, Purpose::run, context.interrupted));
  const RunOptions& running = prepared.settings.running;
  const std::string model(run.model.text);
  const auto known = running.restart ? state.weights.end() : state.weights.find(model);
  run::Weights fresh;
  fresh.model = model;
  fresh.seed = static_cast<std::uint64_t>(running.seed);
  // What was learned before stays the session's: if this goes wrong, it is still there.
  const run::Weights& start = known != state.weights.end() ? known->second : fresh;
  auto feed = run::open_feed(
      data_of(run), prepared.plan.graph,
      {.holdout = running.holdout, .seed = start.seed, .holdout_drawn = running.holdout_drawn});
  if (!feed.ok()) return about_data(std::move(feed).error(), run.data[0].file.span);

  const std::int64_t first_step = start.step;
  Watch watch(context, run, **feed, first_step);
  run::DistributedRun training;
  training.training = {.first_step = first_step,
                       .steps = run.steps->whole,
                       .losses = std::max<std::size_t>(prepared.goals.size(), 1),
                       .schedule = schedule_of(running, first_step, run.steps->whole),
                       .interrupted = context.interrupted};
  training.sizes = prepared.named_sizes();
  auto opened = TrainingLog::open(running.log, first_step);
  if (!opened.ok()) return at(std::move(opened).error(), run.span);
  TrainingLog& log = *opened;
  Scorer scorer(state, context, prepared, **feed);
  BestCheckpoint best(running);
  training.training.on_step = [&](const run::StepReport& report) -> Status {
    watch.see(report);
    best.see(report);
    return log.add(report);
  };
  const auto is_due = [](std::int64_t every, std::int64_t step) { return every > 0 && step % every == 0; };
  if (running.checkpoint_every > 0 || running.test_every > 0)
    training.is_due = [&](std::int64_t step) {
      return is_due(running.checkpoint_every, step) || is_due(running.test_every, step);
    };
  const OnCheckpoint look_at = [&](std::int64_t step, formats::Checkpoint learned) -> Status {
    const bool saves = is_due(running.checkpoint_every, step), tests = is_due(running.test_every, step);
    run::keep_moments(learned, start);
    if (saves && !running.checkpoint.empty()) WEFT_TRY_STATUS(formats::save(running.checkpoint, learned));
    std::optional<double> loss;
    if (tests || (saves && !running.checkpoint_best.empty() && running.holdout > 0)) {
      WEFT_TRY(weights, run::from_checkpoint(learned, model, "what was learned"));
      WEFT_TRY(tested, scorer.score(weights));
      if (tests) WEFT_TRY_STATUS(log.add(step, tested));
      loss = tested.loss;
    }
    if (!saves || running.checkpoint_best.empty()) return {};
    return best.offer(learned, running.holdout > 0 ? loss : std::nullopt);
  };
  auto done = prepared.ranks > 1 ? train_on_ranks(state, context, prepared, **feed, start, training, look_at)
                                 : train_alone(state, prepared, **feed, start, training, look_at);
  if (!done.ok()) return at(std::move(done).error(), run.span);
  const run::TrainingOutcome& outcome = done->outcome;
  if (known != state.weights.end()) run::keep_moments(done->weights, std::move(known->second));
  const run::Weights& weights = state.weights[model] = std::move(done->weights);
  if (!done->reports) return std::string();
  if (!running.checkpoint.empty()) {
    Status saved = formats::save(running.checkpoint, run::to_checkpoint(weights));
    if (!saved.ok()) return at(std::move(saved).error(), run.span);
  }
  if (outcome.interrupted)
    return user_error(fmt::format("interrupted after step {}", print_exact(weights.step)),
                      "what it learned is kept: TRAIN goes on from there, SAVE writes it to a file");

  std::optional<Score> tested;
  if (running.holdout > 0) {
    auto found = log.tested_at(weights.step) ? Result<Score>(log.last_test()) : scorer.score(weights);
    if (!found.ok()) return at(std::move(found).error(), run.span);
    tested = *found;
    if (!log.tested_at(weights.step)) WEFT_TRY_STATUS(log.add(weights.step, *tested));
  }
  WEFT_TRY_STATUS(log.finish());
  const double rate = static_cast<double>((*feed)->examples_per_step()) *
                      static_cast<double>(outcome.steps_done) / std::max(outcome.seconds, 1e-9);
  if (context.format == Format::json) {
    Json json = {{"trained", model},
                 {"first_step", first_step},
                 {"steps", outcome.steps_done},
                 {"first_loss", outcome.first_loss},
                 {"last_loss", outcome.last_loss},
                 {"seconds", outcome.seconds},
                 {fmt::format("{}_per_second", (*feed)->example()), rate},
                 {"threads", done->threads}};
    if (prepared.ranks > 1) json.update({{"ranks", prepared.ranks}, {"plan", done->distribution}});
    json["curve"] = log.curve();
    if (tested) json["test"] = to_json(*tested);
    for (std::size_t i = 0; i < prepared.goals.size(); ++i) {
      const auto [first, last] = losses_of(outcome, i);
      json["losses"][prepared.goals[i].loss] = {{"first", first}, {"last", last}};
    }
    if (best.step() > 0) json["best"] = {{"step", best.step()}, {"loss", best.loss()}};
    if (!done->unproven.empty()) json["unproven"] = done->unproven;
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
  if (tested)
    text += print_score(*tested, (*feed)->example(),
                        running.holdout_drawn ? "tested on a draw of" : "tested on the last");
  if (best.step() > 0)
    text += fmt::format("best at step {}: loss {}, saved to {}\n", print_exact(best.step()),
                        print_loss(best.loss()), running.checkpoint_best);
  const std::string on = fmt::format("{} thread{}", done->threads, done->threads == 1 ? "" : "s");
  text += fmt::format("{} on {}, {} {}/s\n", print_seconds(outcome.seconds),
                      prepared.ranks > 1 ? fmt::format("{} ranks of {}", prepared.ranks, on) : on,
                      print_count(rate), (*feed)->example());
  if (prepared.ranks > 1) text += fmt::format("{}\n", done->distribution);
  if (!done->unproven.empty()) text += fmt::format("{}\n", done->unproven);
  if (!done->by_definition.empty())
    text += fmt::format("ran by definition, slowly: {}\n", program::print(done->by_definition));
  return text;
}

Answer run_infer(Session::State& state, const Context& context, const language::syntax::Run& run) {
  WEFT_TRY(prepared, prepare(state, run, Purpose::run, context.interrupted));
  const run::Weights& weights = state.weights.at(std::string(run.model.text));
  // Every row counts: a batch need not be full.
  auto feed = run::open_feed(data_of(run), prepared.plan.graph,
                             {.holdout = prepared.settings.running.holdout,
                              .seed = weights.seed,
                              .partial_batches = true,
                              .holdout_drawn = prepared.settings.running.holdout_drawn});
  if (!feed.ok()) return about_data(std::move(feed).error(), run.data[0].file.span);
  const bool json_rows = context.format == Format::json;
  Predictions predictions(run.into ? Predictions::kAll : json_rows ? kMostJsonValues : 0);
  Scorer scorer(state, context, prepared, **feed);
  Scorer::OnBatch on_batch;
  if (run.into || json_rows)
    on_batch = [&](const exec::Rank& rank, std::int64_t examples) { return predictions.add(rank, examples); };
  auto found = scorer.score(weights, on_batch);
  if (!found.ok()) return at(std::move(found).error(), run.span);
  if (run.into) {
    Status written = predictions.write(std::string(run.into->text), run.model.text);
    if (!written.ok()) return at(std::move(written).error(), run.into->span);
  }
  if (context.format == Format::json) {
    Json json = {{"inferred", run.model.text}};
    json.update(to_json(*found));
    if (run.into) json["into"] = run.into->text;
    if (!run.into) json.update(predictions.to_json());
    if (!found->unproven.empty()) json["unproven"] = found->unproven;
    return json.dump() + "\n";
  }
  std::string text = fmt::format("{} after {} step{}, {}{}{}", run.model.text, print_exact(weights.step),
                                 weights.step == 1 ? "" : "s", print_score(*found, (*feed)->example(), "on"),
                                 found->unproven, found->unproven.empty() ? "" : "\n");
  if (run.into)
    text += fmt::format("wrote {} of {} to {}\n", predictions.what(), print_exact(found->examples),
                        run.into->text);
  return text;
}

}  // namespace weft::session
