// TRAIN, INFER: a model learns from data, or is asked about it.
#include <algorithm>
#include <cmath>
#include <filesystem>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "weft/base/units.h"
#include "weft/explain/progress.h"
#include "weft/language/print.h"
#include "weft/run/local_ranks_run.h"
#include "weft/session/learn.h"
#include "weft/session/plan_for.h"
#include "weft/session/prove_plan.h"

namespace weft::session {
namespace {

using language::Mode;
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
            : "a row of a table is the model's inputs one after the other; what ends in neither .csv nor "
              ".npy is text";
  return error;
}

// A checkpoint that could not be written is better known before the training than after it.
Status check_checkpoint(const RunOptions& running, Span span) {
  if (running.checkpoint.empty()) {
    if (running.checkpoint_every == 0) return {};
    return user_error("checkpoint_every needs a file to save to",
                      "for example: checkpoint = 'model.safetensors'", span);
  }
  const std::filesystem::path folder = std::filesystem::path(running.checkpoint).parent_path();
  std::error_code problem;
  if (folder.empty() || std::filesystem::is_directory(folder, problem)) return {};
  return at(world_error(
                fmt::format("cannot save to {}: there is no folder {}", running.checkpoint, folder.string()),
                "make the folder first"),
            span);
}

// Three digits are enough to see a loss fall.
std::string print_loss(double loss) { return fmt::format("{:.3g}", loss); }

std::string print_score(const Score& score, std::string_view example, bool held_out) {
  std::string_view what = example == "tokens" ? "windows" : "rows";
  if (score.examples == 1) what.remove_suffix(1);
  std::string text = fmt::format("{} {} {}: loss {}", held_out ? "tested on the last" : "on",
                                 print_exact(score.examples), what, print_loss(score.loss));
  if (score.accuracy) text += fmt::format(", accuracy {:.4f}", *score.accuracy);
  return text + "\n";
}

Json to_json(const Score& score) {
  Json json = {{"examples", score.examples}, {"loss", score.loss}};
  if (score.accuracy) json["accuracy"] = *score.accuracy;
  return json;
}

// Tells whoever watches how far it is, ten times a second at most.
class Watch {
 public:
  Watch(const Context& context, const Request& request, const run::Feed& feed, std::int64_t first_step)
      : context_(context),
        feed_(feed),
        first_step_(first_step),
        steps_(first_step + request.run->steps->whole) {
    progress_.model = request.run->model.text;
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

// What a TRAIN came to, on one rank or several.
struct Trained {
  run::TrainingOutcome outcome;
  run::Weights weights;
  int threads = 1;  // of a rank
  std::size_t by_definition = 0;
  std::string distribution;  // of several ranks
  std::string unproven;      // why that plan was not proven; empty: it was
  bool reports = true;       // false for a rank of a launcher's that is not the first
};

Result<Trained> train_alone(const Request& request, train::TrainingPlan plan, const run::Feed& feed,
                            const run::Weights& start, const run::DistributedRun& run) {
  WEFT_TRY(rank, start_rank(std::move(plan.graph), request));
  if (start.tensors.empty())
    run::write_initial(*rank, start.seed);
  else
    WEFT_TRY_STATUS(run::write_weights(*rank, start));
  Trained trained;
  trained.weights = run::without_tensors(start);
  const auto take = [&](std::int64_t step) {
    trained.weights.step = step;
    run::read_weights(*rank, trained.weights);
  };
  run::TrainingRun training = run.training;
  training.on_step = [&](const run::StepReport& report) -> Status {
    WEFT_TRY_STATUS(run.training.on_step(report));
    if (!run.is_due || !run.is_due(report.step)) return {};
    take(report.step);
    return run.on_weights(report.step, trained.weights);
  };
  WEFT_TRY(outcome, run::run_training(*rank, feed, training));
  take(start.step + outcome.steps_done);
  trained.outcome = outcome;
  trained.threads = rank->workers();
  trained.by_definition = rank->reference_units();
  return trained;
}

Result<Trained> train_on_ranks(const Session::State& state, const Request& request,
                               const train::TrainingPlan& plan, const run::Feed& feed,
                               const run::Weights& start, const run::DistributedRun& run) {
  WEFT_TRY(target, target_of(state.catalog, request.run->target));
  WEFT_TRY(choice, plan_for_ranks(state, request.settings, plan.graph, target, /*compare=*/false));
  WEFT_TRY(proof, require_proof(state, request.settings, *request.run, plan.graph, choice.chosen.plan));
  const run::LocalRanksOptions options = local_ranks_of(request);
  WEFT_TRY(outcome, run::run_distributed(choice.chosen.plan, options, feed, start, run));
  return Trained{.outcome = outcome.training,
                 .weights = std::move(outcome.weights),
                 .threads = options.workers,
                 .by_definition = outcome.reference_units,
                 .distribution = distribute::print(choice.distribution),
                 .unproven = proof.holds || !request.settings.prove ? std::string() : proof.text,
                 .reports = outcome.rank == 0};
}

}  // namespace

Answer run_train(Session::State& state, const Context& context, const language::syntax::Run& run) {
  WEFT_TRY(request, read_request(state, run));
  if (!run.data)
    return user_error(
        "TRAIN needs data to learn from",
        fmt::format("TRAIN {} FROM 'data.csv' STEPS 1000", language::print_name(run.model.text)), run.span);
  if (!run.steps)
    return user_error(
        "TRAIN needs a number of steps",
        fmt::format("TRAIN {} FROM '{}' STEPS 1000", language::print_name(run.model.text), run.data->text),
        run.span);
  if (run.steps->whole == 0)
    return user_error("TRAIN needs at least one step", "STEPS 1000", run.steps->span);
  WEFT_TRY_STATUS(check_checkpoint(request.settings.running, run.span));
  WEFT_TRY(bound, bind_request(state, context, request, Mode::train));
  std::vector<std::pair<std::string, std::int64_t>> sizes;
  for (const language::BoundSize& size : bound.sizes) sizes.emplace_back(size.name, size.size);
  auto plan = train::make_training_plan(std::move(bound.graph), request.settings.training);
  if (!plan.ok()) return at(std::move(plan).error(), run.model.span);

  const RunOptions& running = request.settings.running;
  const std::string model(run.model.text);
  const auto known = running.restart ? state.weights.end() : state.weights.find(model);
  run::Weights start;
  if (known != state.weights.end())
    start = known->second;
  else
    start.seed = static_cast<std::uint64_t>(running.seed);
  start.model = model;
  start.sizes = std::move(sizes);
  auto feed = run::open_feed(std::string(run.data->text), plan->graph, {running.holdout, start.seed});
  if (!feed.ok()) return about_data(std::move(feed).error(), run.data->span);

  const std::int64_t first_step = start.step;
  Watch watch(context, request, **feed, first_step);
  run::DistributedRun training;
  training.training = {
      .first_step = first_step, .steps = run.steps->whole, .interrupted = context.interrupted};
  training.training.on_step = [&](const run::StepReport& report) -> Status {
    watch.see(report);
    return {};
  };
  if (running.checkpoint_every > 0) {
    training.is_due = [every = running.checkpoint_every](std::int64_t step) { return step % every == 0; };
    training.on_weights = [&](std::int64_t, const run::Weights& weights) -> Status {
      return formats::save(running.checkpoint, run::to_checkpoint(weights));
    };
  }
  auto done = request.ranks > 1 ? train_on_ranks(state, request, *plan, **feed, start, training)
                                : train_alone(request, std::move(*plan), **feed, start, training);
  if (!done.ok()) return at(std::move(done).error(), run.span);
  const run::TrainingOutcome& outcome = done->outcome;
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
    auto found = score(state, context, request, **feed, weights);
    if (!found.ok()) return at(std::move(found).error(), run.span);
    tested = *found;
  }
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
    if (request.ranks > 1) json.update({{"ranks", request.ranks}, {"plan", done->distribution}});
    if (tested) json["test"] = to_json(*tested);
    return json.dump() + "\n";
  }
  std::string text =
      fmt::format("trained {} from step {} to {}: loss {} to {}\n", model, print_exact(first_step),
                  print_exact(weights.step), print_loss(outcome.first_loss), print_loss(outcome.last_loss));
  if (tested) text += print_score(*tested, (*feed)->example(), true);
  const std::string on = fmt::format("{} thread{}", done->threads, done->threads == 1 ? "" : "s");
  text += fmt::format("{} on {}, {} {}/s\n", print_seconds(outcome.seconds),
                      request.ranks > 1 ? fmt::format("{} ranks of {}", request.ranks, on) : on,
                      print_count(rate), (*feed)->example());
  if (request.ranks > 1) text += fmt::format("{}\n", done->distribution);
  if (!done->unproven.empty()) text += fmt::format("{}\n", done->unproven);
  if (done->by_definition > 0)
    text +=
        fmt::format("{} of its operators have no kernel for this precision and ran by definition, slowly\n",
                    done->by_definition);
  return text;
}

Answer run_infer(Session::State& state, const Context& context, const language::syntax::Run& run) {
  WEFT_TRY(request, read_request(state, run));
  if (!run.data)
    return user_error("INFER needs data to be asked about",
                      fmt::format("INFER {} FROM 'data.csv'", language::print_name(run.model.text)),
                      run.span);
  const auto known = state.weights.find(std::string(run.model.text));
  if (known == state.weights.end())
    return user_error(fmt::format("{} has learned nothing yet", run.model.text),
                      "TRAIN it, or LOAD what was saved", run.model.span);
  WEFT_TRY(bound, bind_request(state, context, request, Mode::infer));
  // Every row counts: a batch need not be full.
  auto feed =
      run::open_feed(std::string(run.data->text), bound.graph,
                     {request.settings.running.holdout, known->second.seed, /*partial_batches=*/true});
  if (!feed.ok()) return about_data(std::move(feed).error(), run.data->span);
  auto found = score(state, context, request, **feed, known->second);
  if (!found.ok()) return at(std::move(found).error(), run.span);
  if (context.format == Format::json) {
    Json json = {{"inferred", run.model.text}};
    json.update(to_json(*found));
    return json.dump() + "\n";
  }
  return fmt::format("{} after {} step{}, {}", run.model.text, print_exact(known->second.step),
                     known->second.step == 1 ? "" : "s", print_score(*found, (*feed)->example(), false));
}

}  // namespace weft::session
