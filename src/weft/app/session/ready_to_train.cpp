#include "weft/app/session/ready_to_train.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include <fmt/format.h>

#include "weft/app/session/learn.h"
#include "weft/plan/graph/hash.h"
#include "weft/planner/step/fit_memory.h"
#include "weft/runtime/run/local_ranks.h"

namespace weft::session {
namespace {

// The checkpoint to resume from; null if the statement starts anew.
Result<std::unique_ptr<run::Weights>> find_checkpoint(const Session::State& state, const Context& context,
                                                      const language::syntax::Run& run,
                                                      const RunOptions& running, std::int64_t begin) {
  const bool restarted = run::launch_restarts() > 0;
  if (running.resume == true && running.checkpoint.empty())
    return user_error("resume needs a checkpoint", "for example: checkpoint = 'model.safetensors'", run.span);
  std::error_code unused;
  if (!running.resume.value_or(restarted) || running.checkpoint.empty() ||
      !std::filesystem::exists(running.checkpoint, unused))
    return std::unique_ptr<run::Weights>();
  auto read = read_weights_file(state, context, run.model, running.checkpoint);
  if (!read.ok()) {
    Error error = std::move(read).error();
    if (!error.span.known()) error.span = run.span;
    return error;
  }
  // Without resume = true, only a checkpoint of this launch is used, not that of an earlier one.
  if (!running.resume && read->launch != run::launch_name()) return std::unique_ptr<run::Weights>();
  if (read->step <= begin) return std::unique_ptr<run::Weights>();
  return std::make_unique<run::Weights>(std::move(*read));
}

}  // namespace

Error about_data(Error error, Span span) {
  error.span = span;
  if (error.hint.empty())
    error.hint = error.fault == Fault::world ? "FROM names a file, relative to the current directory"
                                             : "a table row holds the model's inputs in order; any file "
                                               "except .csv, .npy, .npz and .bin is read as text";
  return error;
}

Result<ReadyToTrain> make_ready_to_train(const Session::State& state, const Context& context,
                                         const language::syntax::Run& run) {
  ReadyToTrain ready;
  WEFT_TRY(prepared, prepare(state, run, Purpose::run, context.interrupted));
  ready.prepared = std::move(prepared);
  const RunOptions& running = ready.prepared.settings.running;
  const std::string model(run.model.text);
  const auto known = running.restart ? state.weights.end() : state.weights.find(model);
  if (known == state.weights.end()) {
    ready.own = std::make_unique<run::Weights>();
    ready.own->model = model;
    ready.own->seed = static_cast<std::uint64_t>(running.seed);
  }
  ready.start = ready.own ? ready.own.get() : &known->second;
  ready.from_file = !ready.own && state.loaded.contains(model);
  ready.begin = ready.start->step;
  ready.end = ready.begin + run.steps->whole;
  WEFT_TRY(checkpoint, find_checkpoint(state, context, run, running, ready.begin));
  if (checkpoint) {
    ready.own = std::move(checkpoint);
    ready.start = ready.own.get();
    ready.from_file = true;
  }
  const double held = ready.prepared.ranks == 1 ? static_cast<double>(run::bytes_of(*ready.start)) : 0;
  WEFT_TRY_STATUS(fit_memory(state, context, ready.prepared, held));
  auto feed = run::open_feed(
      data_of(run), ready.prepared.plan.graph,
      {.holdout = running.holdout, .seed = ready.start->seed, .holdout_drawn = running.holdout_drawn});
  if (!feed.ok()) return about_data(std::move(feed).error(), run.data[0].file.span);
  ready.feed = std::move(*feed);
  return ready;
}

std::vector<run::Claim> claims_of(const ReadyToTrain& ready) {
  std::vector<std::string> settings = print_changed(
      ready.prepared.settings, [](const SettingSpec& spec) { return !spec.does_decide(Decides::host); });
  settings.insert(settings.begin(), fmt::format("STEPS {}", ready.end - ready.begin));
  return {
      {"versions of weft", WEFT_VERSION, true, "run the same weft on all hosts"},
      {"settings", fmt::format("{}", fmt::join(settings, ", ")), true,
       "run the same statements on all hosts"},
      {"nodes in the model", plan::structural_hash(ready.prepared.plan.graph).hex(), false,
       "create the same model on all hosts"},
      {"weights", run::digest_of(*ready.start).hex(), false,
       "LOAD the same file on all hosts, from a shared folder"},
      {"data", ready.feed->digest().hex(), false,
       "the files that FROM names must have the same contents on all hosts"},
  };
}

}  // namespace weft::session
