#include "weft/planner/statement/prepare.h"

#include <algorithm>
#include <filesystem>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "weft/base/machine.h"
#include "weft/base/nearest.h"
#include "weft/language/print.h"
#include "weft/parallel/train/f8_products.h"
#include "weft/parallel/train/local_norms.h"
#include "weft/plan/cluster/rates.h"
#include "weft/planner/search/rewrite/rewrite_forward.h"
#include "weft/planner/statement/combinations.h"
#include "weft/planner/statement/requested_pipeline.h"
#include "weft/planner/statement/rule_source.h"
#include "weft/planner/target/find_target.h"
#include "weft/planner/target/gpu_target.h"
#include "weft/predict/cost/mesh_links.h"
#include "weft/predict/cost/unit_seconds.h"
#include "weft/rules/rule/library.h"
#include "weft/runtime/run/local_ranks.h"

namespace weft::planner {

using language::syntax::Run;
using language::syntax::Task;

Result<std::vector<std::string_view>> sizes_of(const language::Catalog& catalog,
                                               const language::syntax::Name& model) {
  const auto found = catalog.models.find(model.text);
  if (found == catalog.models.end())
    return language::unknown("model", model, language::names_of(catalog.models));
  std::vector<std::string_view> names;
  for (const language::syntax::Size& size : found->second.statement->body.sizes)
    names.push_back(size.name.text);
  return names;
}

void note_old_names(const Knowledge& state, std::string_view name, const language::syntax::Value& value) {
  for (const auto& [before, now] : renamed_words(name, value))
    state.warnings.note_once(fmt::format("{} is now called {}", before, now), "the old name still works");
}

void note_old_names(const Knowledge& state, std::span<const language::syntax::Setting> list,
                    std::span<const std::string_view> sizes) {
  for (const language::syntax::Setting& setting : list)
    if (std::ranges::find(sizes, setting.name.text) == sizes.end())
      note_old_names(state, setting.name.text, setting.value);
}

std::vector<run::DataFile> data_of(const Run& run) {
  std::vector<run::DataFile> files;
  for (const language::syntax::DataFile& file : run.data)
    files.push_back({std::string(file.input.text), std::string(file.file.text)});
  return files;
}

namespace {

std::optional<search::Parallelism> parallelism_of(language::syntax::HintKind kind) {
  switch (kind) {
    using enum language::syntax::HintKind;
    case slice:
    case replicate: break;
    case data: return search::Parallelism::data;
    case tensor: return search::Parallelism::tensor;
    case pipeline: return search::Parallelism::pipeline;
    case expert: return search::Parallelism::expert;
    case context: return search::Parallelism::context;
    case zero: return search::Parallelism::zero;
  }
  return std::nullopt;
}

search::FixedPart fixed_by(std::span<const KeptHint> hints) {
  search::FixedPart fixed;
  for (const KeptHint& hint : hints) {
    if (const auto kind = parallelism_of(hint.kind))
      fixed.degrees.push_back({*kind, hint.degree, hint.axis, hint.within});
    else if (hint.kind == language::syntax::HintKind::replicate)
      fixed.exceptions.push_back({hint.subject, hint.axis, {}});
    else if (hint.tensor.empty())
      fixed.slices.push_back({hint.subject, hint.axis});
    else
      fixed.exceptions.push_back({hint.tensor, hint.axis, hint.subject});
  }
  return fixed;
}

// Reports an unwritable file before the work rather than after it.
Status check_folder_of(const std::string& file, Span span) {
  const std::filesystem::path folder = std::filesystem::path(file).parent_path();
  std::error_code problem;
  if (folder.empty() || std::filesystem::is_directory(folder, problem)) return {};
  Error error =
      environment_error(fmt::format("cannot save to {}: folder {} does not exist", file, folder.string()),
                        "create the folder first");
  error.span = span;
  return error;
}

Status check_checkpoint(const RunOptions& running, Span span) {
  if (running.checkpoint.empty() && running.checkpoint_best.empty() && running.checkpoint_every > 0)
    return user_error("checkpoint_every needs a file to save to",
                      "for example: checkpoint = 'model.safetensors'", span);
  if (!running.checkpoint_best.empty() && running.checkpoint_every == 0)
    return user_error("checkpoint_best needs checkpoint_every, the steps between checkpoints",
                      "for example: checkpoint_every = 100", span);
  WEFT_TRY_STATUS(check_folder_of(running.checkpoint, span));
  return check_folder_of(running.checkpoint_best, span);
}

Status check_schedule(const RunOptions& running, std::int64_t steps, Span span) {
  const std::int64_t all = running.schedule_steps > 0 ? running.schedule_steps : steps;
  if (running.warmup <= all) return {};
  return user_error(fmt::format("warmup takes {} steps, but the schedule has {}", running.warmup, all),
                    "use a shorter warmup or more STEPS", span);
}

Status check_train(const Run& run, const Settings& settings) {
  const std::string model = language::print_name(run.model.text);
  if (run.data.empty())
    return user_error("TRAIN needs training data", fmt::format("TRAIN {} FROM 'data.csv' STEPS 1000", model),
                      run.span);
  if (!run.steps)
    return user_error("TRAIN needs a number of steps",
                      fmt::format("TRAIN {} FROM '{}' STEPS 1000", model, run.data[0].file.text), run.span);
  if (run.steps->whole == 0)
    return user_error("TRAIN needs at least one step", "STEPS 1000", run.steps->span);
  if (settings.running.test_every > 0 && settings.running.holdout == 0)
    return user_error("test_every needs rows to test on", "for example: holdout = 1000", run.span);
  WEFT_TRY_STATUS(check_folder_of(settings.running.log, run.span));
  WEFT_TRY_STATUS(check_schedule(settings.running, run.steps->whole, run.span));
  return check_checkpoint(settings.running, run.span);
}

Status check_asked(const Run& run, const Knowledge& state) {
  if (run.task == Task::infer && run.data.empty())
    return user_error("INFER needs input data",
                      fmt::format("INFER {} FROM 'data.csv'", language::print_name(run.model.text)),
                      run.span);
  if (run.into) WEFT_TRY_STATUS(check_folder_of(std::string(run.into->text), run.into->span));
  if (!state.weights.contains(std::string(run.model.text)))
    return user_error(fmt::format("{} is not trained yet", run.model.text), "TRAIN it, or LOAD a checkpoint",
                      run.model.span);
  return {};
}

// Sizes of trained or loaded weights become overrides, except the batch: the first index of the
// first input.
void take_learned_sizes(const Knowledge& state, const language::syntax::Name& model,
                        std::span<const std::string_view> declared,
                        std::vector<language::SizeOverride>& overrides) {
  const auto known = state.weights.find(std::string(model.text));
  if (known == state.weights.end()) return;
  const language::syntax::Body& body = state.catalog.models.find(model.text)->second.statement->body;
  const std::string_view batch = body.inputs.empty() || body.inputs[0].indices.empty()
                                     ? std::string_view()
                                     : body.inputs[0].indices[0].text;
  for (const auto& [name, size] : known->second.sizes) {
    const bool given = std::ranges::find(overrides, name, &language::SizeOverride::name) != overrides.end();
    if (given || name == batch || std::ranges::find(declared, name) == declared.end()) continue;
    overrides.push_back({name, size, {}});
  }
}

// Makes the model's plan, in TRAIN including gradients and updates.
Status make_plan(Prepared& prepared, plan::Graph forward) {
  if (!prepared.trains()) {
    prepared.plan.graph = std::move(forward);
    return {};
  }
  auto made = make_learning(prepared, std::move(forward));
  if (!made.ok()) {
    Error error = std::move(made).error();
    if (!error.span.known()) error.span = prepared.run->model.span;
    if (error.hint.empty()) error.hint = "training needs a loss and PARAMETERs that it depends on";
    return error;
  }
  prepared.plan = std::move(*made);
  return {};
}

}  // namespace

Result<train::Recompute> recompute_of(const Settings& settings) {
  train::Recompute asked = settings.recompute.value_or(train::Recompute());
  if (settings.distribution.empty()) return asked;
  WEFT_TRY(distribution, distribute::read_distribution(settings.distribution));
  if (distribution.recompute.is_nothing()) return asked;
  if (settings.recompute && asked != distribution.recompute)
    return user_error(fmt::format("recompute = '{}', but the distribution has recompute {}", print(asked),
                                  print(distribution.recompute)),
                      "give it only once");
  return std::move(distribution.recompute);
}

Result<train::TrainingPlan> make_learning(const Prepared& prepared, plan::Graph forward) {
  WEFT_TRY(again, recompute_of(prepared.settings));
  WEFT_TRY(plan, prepared.goals.empty()
                     ? train::make_training_plan(std::move(forward), prepared.settings.training)
                     : train::make_training_plan_for(std::move(forward), prepared.goals));
  return train::with_recomputation(std::move(plan), again);
}

std::string print_goals(const Prepared& prepared) {
  std::string text;
  for (const train::Goal& goal : prepared.goals)
    text +=
        fmt::format("{}{} by {}", text.empty() ? "" : ", ", goal.loss, train::name(goal.options.optimizer));
  return text;
}

std::vector<std::pair<std::string, std::int64_t>> Prepared::named_sizes() const {
  std::vector<std::pair<std::string, std::int64_t>> named;
  for (const language::BoundSize& size : sizes) named.emplace_back(size.name, size.size);
  return named;
}

double Prepared::seconds_of_planning() const {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
}

Status check_runs_here(const Prepared& prepared) {
  const Run& run = *prepared.run;
  if (prepared.target.is_job()) {
    if (run.task == Task::train) return {};
    return user_error(
        fmt::format("{} runs on one rank, not on a job", run.task == Task::infer ? "INFER" : "GENERATE"),
        "leave out ON to run on this machine", run.target->span);
  }
  const bool named = run.target && !run.target->local;  // a cluster or device that may look like this machine
  if (!prepared.target.runs_here() || (named && prepared.target.kind == TargetKind::local))
    return user_error(fmt::format("running on a cluster is not supported yet: {}", run.target->cluster.text),
                      "ON LOCAL and ON GPU run on this machine; EXPLAIN plans for a cluster",
                      run.target->span);
  if (!run.target || !run.target->ranks) return {};
  const std::int64_t ranks = run.target->ranks->whole;
  if (ranks > 1 && run.task != Task::train)
    return user_error(fmt::format("{} runs on one rank of this machine: {} {}",
                                  run.task == Task::infer ? "INFER" : "GENERATE",
                                  !prepared.target.on_gpu() ? "LOCAL" : "GPU RANKS", ranks),
                      !prepared.target.on_gpu()
                          ? "ON LOCAL runs one rank; SET threads sets its number of threads"
                          : "ON GPU runs one rank",
                      run.target->span);
  if (ranks < 1 || ranks > run::kMostLocalRanks)
    return user_error(
        fmt::format("expected 1 to {} ranks on this machine, found LOCAL {}", run::kMostLocalRanks, ranks),
        {}, run.target->span);
  return {};
}

namespace {

// Below this, tiling gains nothing: the last-level cache holds a good part of the logits.
constexpr std::int64_t kLeastLogits = std::int64_t{64} << 20;

// Least bytes of logits for which a loss is tiled; none: never. Only CPUs have a kernel for it.
// Plans that do not train keep no logits, so their losses are tiled only if requested.
std::optional<std::int64_t> logits_to_tile(const Prepared& prepared, language::Mode mode) {
  const std::optional<bool> asked = prepared.settings.tiled_loss;
  if (asked == false || (!asked && mode != language::Mode::train) || prepared.target.on_gpu() ||
      cost::has_matrix_unit(prepared.target.device))
    return std::nullopt;
  return asked == true ? 0 : kLeastLogits;
}

// Applies the rules that run before differentiation, if enabled.
search::RewrittenForward rewritten_first(const Knowledge& state, const Prepared& prepared,
                                         const plan::Graph& forward, language::Mode mode) {
  const std::vector<std::string>& off = prepared.settings.optimizer_off;
  if (prepared.settings.rules == false || std::ranges::find(off, "rewrite") != off.end()) return {};
  // On a GPU, these rules pay only for narrow dtypes: attention in f32 uses plain multiply-adds
  // there, while products in TF32 are several times as fast.
  const search::ForwardRewrites which = {
      .attention = (!prepared.target.on_gpu() || train::is_narrow(prepared.settings.precision)) &&
                   prepared.target.stack.fused_attention != 0,
      .logits_from = logits_to_tile(prepared, mode),
      .learns = mode == language::Mode::train};
  const search::ProveRule prove = [&](const rule::Rule& rule) { return prove_once(state, rule); };
  static const search::ForwardRules shipped(rule::shipped_rules());
  return search::rewrite_forward(forward, prepared.target.device, shipped, prove, which);
}

language::BindOptions binding_of(const Prepared& prepared, language::Mode mode,
                                 const std::function<bool()>& interrupted) {
  return {.mode = mode,
          .sizes = prepared.overrides,
          .precision = prepared.settings.precision,
          .plan_limit = prepared.settings.plan_limit,
          .interrupted = interrupted};
}

}  // namespace

Result<std::vector<search::Step>> first_steps(const Knowledge& state, const Prepared& prepared) {
  const language::Mode mode = prepared.trains() ? language::Mode::train : language::Mode::infer;
  WEFT_TRY(bound, language::bind(state.catalog, prepared.run->model, binding_of(prepared, mode, {})));
  return rewritten_first(state, prepared, bound.graph, mode).trail;
}

Result<language::BoundModel> bind_again(const Knowledge& state, const Prepared& prepared, language::Mode mode,
                                        std::span<const language::SizeOverride> sizes,
                                        const std::function<bool()>& interrupted) {
  language::BindOptions options = binding_of(prepared, mode, interrupted);
  for (const language::SizeOverride& size : sizes) {
    std::erase_if(options.sizes, [&](const auto& other) { return other.name == size.name; });
    options.sizes.push_back(size);
  }
  WEFT_TRY(bound, language::bind(state.catalog, prepared.run->model, options));
  if (auto found = rewritten_first(state, prepared, bound.graph, mode); found.plan)
    bound.graph = std::move(*found.plan);
  if (prepared.settings.training.precision.mixed) {
    WEFT_TRY(wide, train::with_wide_losses(bound.graph));
    bound.graph = std::move(wide);
  }
  if (mode != language::Mode::train && prepared.settings.training.precision.f8_products) {
    WEFT_TRY(in_f8, train::with_f8_products(bound.graph));
    bound.graph = std::move(in_f8);
  }
  if (mode != language::Mode::train || train::count_batch_norms(bound.graph) == 0) return bound;
  WEFT_TRY(shares, norm_shares_of(prepared.settings, bound.graph, prepared.ranks));
  if (shares == 1) return bound;
  auto local = train::with_local_norms(bound.graph, shares);
  if (!local.ok()) {
    Error error = std::move(local).error();
    error.span = prepared.run->span;
    return error;
  }
  bound.graph = std::move(*local);
  return bound;
}

namespace {

// Options per loss. All others are per statement.
constexpr std::string_view kGoalOptions[] = {"beta1",    "beta2",        "clip_norm",
                                             "epsilon",  "every",        "learning_rate",
                                             "momentum", "weight_decay", "weight_decay_on"};

Result<train::Goal> goal_of(const language::syntax::Goal& said, const Settings& settings) {
  Settings own = settings;
  train::Goal goal;
  goal.loss = said.loss.text;
  goal.span = said.span;
  for (const language::syntax::Name& name : said.over) goal.over.emplace_back(name.text);
  if (said.optimizer.given()) {
    const auto found = train::find_optimizer(said.optimizer.text);
    if (!found) {
      std::string hint = did_you_mean(said.optimizer.text, train::optimizer_names());
      if (hint.empty()) hint = fmt::format("optimizers are {}", fmt::join(train::optimizer_names(), ", "));
      return user_error(fmt::format("unknown optimizer: {}", said.optimizer.text), std::move(hint),
                        said.optimizer.span);
    }
    own.training.optimizer = *found;
  }
  std::vector<std::string_view> given;
  for (const language::syntax::Setting& option : said.options) {
    if (std::ranges::find(given, option.name.text) != given.end())
      return user_error(fmt::format("{} is given twice", option.name.text), "remove one of them",
                        option.name.span);
    given.push_back(option.name.text);
    if (std::ranges::find(kGoalOptions, option.name.text) == std::end(kGoalOptions)) {
      std::string hint = did_you_mean(option.name.text, kGoalOptions);
      if (hint.empty())
        hint = fmt::format("a loss may have {}; other options belong in WITH (...)",
                           fmt::join(kGoalOptions, ", "));
      return user_error(fmt::format("a loss has no option {}", option.name.text), std::move(hint),
                        option.name.span);
    }
    if (option.name.text != "every") {
      WEFT_TRY_STATUS(apply(own, option.name, option.value));
      continue;
    }
    if (option.value.kind != language::syntax::ValueKind::number || !option.value.number.is_whole ||
        option.value.number.whole < 1)
      return user_error("expected every to be a whole number of steps, at least 1", "for example: every = 5",
                        option.value.span);
    goal.every = option.value.number.value;
  }
  goal.options = own.training;
  return goal;
}

Result<std::vector<train::Goal>> goals_of(const Run& run, const Settings& settings) {
  std::vector<train::Goal> goals;
  for (const language::syntax::Goal& said : run.goals) {
    WEFT_TRY(goal, goal_of(said, settings));
    goals.push_back(std::move(goal));
  }
  return goals;
}

Status check_precision(const Run& run, const Settings& settings) {
  const train::TrainingOptions& training = settings.training;
  if (!training.precision.mixed || !train::is_narrow(training.gradients) ||
      training.gradients == training.precision.compute)
    return {};
  return user_error(
      fmt::format("gradients are reduced in f32 or in the type of the computation: gradient_precision = {}, "
                  "precision = {}",
                  plan::name(training.gradients), training.precision.name),
      fmt::format("gradient_precision = {}, or f32", plan::name(training.precision.compute)), run.span);
}

std::string stated_rates(const cluster::Device& device) {
  std::vector<std::string_view> names;
  for (std::size_t i = 0; i < cluster::kPrecisions; ++i)
    if (const auto format = static_cast<cluster::Precision>(i); device.rate(format) > 0)
      names.push_back(cluster::name(format));
  return fmt::format("{}", fmt::join(names, ", "));
}

// CPUs convert f8 operands as they multiply. For matrix units, the data sheet shows whether they
// can.
Status check_f8(const Run& run, const Prepared& prepared) {
  if (!prepared.settings.training.precision.f8_products) return {};
  std::vector<const cluster::Device*> devices = {&prepared.target.device};
  for (const cluster::DeviceKind& kind : prepared.target.kinds) devices.push_back(&kind.device);
  for (const cluster::Device* device : devices)
    if (cost::has_matrix_unit(*device) && device->rate(cluster::Precision::f8) <= 0)
      return user_error(fmt::format("precision = f8 needs a device with an f8 rate: {} has none, only {}",
                                    device->name, stated_rates(*device)),
                        "use precision = bf16, or a device such as h100", run.span);
  return {};
}

// If a launcher may start fewer ranks than LOCAL names, its number counts. A distribution for all
// of them does not apply to fewer.
void take_ranks_that_are_left(const Knowledge& state, Prepared& prepared) {
  const std::int64_t asked = prepared.target.devices(), left = run::launched_ranks();
  if (!prepared.trains() || asked == 1 || asked == left || !run::launch_is_elastic()) return;
  prepared.target.name = fmt::format("LOCAL {}", left);
  prepared.target.axes.front().size = left;
  if (prepared.settings.distribution.empty()) return;
  state.warnings.add(
      fmt::format("the plan is for {} ranks", left),
      user_error(fmt::format("the distribution has {} ranks: {}", asked, prepared.settings.distribution)));
  prepared.settings.distribution.clear();
}

}  // namespace

namespace {

// NVFP4 has no rate in data sheets that a product reaches: only measured devices have one.
Result<cluster::ProductFormat> product_format_of(const Prepared& prepared) {
  using cluster::ProductFormat;
  const ProductFormat format = prepared.settings.stack_products;
  if (format != ProductFormat::nvfp4) return format;
  const cluster::Device& device = prepared.target.device;
  if (device.rates != nullptr && device.rates->find(cluster::RateKind::product, "nvfp4") != nullptr)
    return format;
  return user_error(fmt::format("no rates of NVFP4 products are known for {}", device.name),
                    "b200, b300, gb200, gb300 and rtx_pro_6000 have them; or multiply in f8",
                    prepared.run->span);
}

// The software that trains on a cluster. Weft itself runs what runs here.
Status take_stack(const Knowledge& state, Prepared& prepared) {
  const std::string& name = prepared.settings.stack;
  WEFT_TRY(format, product_format_of(prepared));
  prepared.target.stack.product_format = format;
  if (name.empty() || name == "weft") return {};
  const auto found = state.catalog.stacks.find(name);
  if (found == state.catalog.stacks.end())
    return language::unknown("stack", {name, prepared.run->span}, language::names_of(state.catalog.stacks));
  if (prepared.target.runs_here())
    return user_error(fmt::format("the stack {} does not run on {}", name, prepared.target.name),
                      "name a cluster or a device after ON, or leave the stack out", prepared.run->span);
  prepared.target.stack = found->second;
  prepared.target.stack.product_format = format;
  return {};
}

}  // namespace

Result<Prepared> prepare(const Knowledge& state, const Run& run, Purpose purpose,
                         const std::function<bool()>& interrupted) {
  Prepared prepared;
  prepared.run = &run;
  prepared.settings = state.settings;
  WEFT_TRY(names, sizes_of(state.catalog, run.model));
  WEFT_TRY(overrides, apply_list(prepared.settings, run.settings, names, run.model.text));
  prepared.overrides = std::move(overrides);
  note_old_names(state, run.settings, names);
  prepared.settings.training.scheduled = prepared.settings.running.warmup > 0 ||
                                         prepared.settings.running.schedule != run::ScheduleKind::constant;
  WEFT_TRY_STATUS(check_precision(run, prepared.settings));
  WEFT_TRY(goals, goals_of(run, prepared.settings));
  prepared.goals = std::move(goals);
  if (!prepared.settings.running.restart) take_learned_sizes(state, run.model, names, prepared.overrides);
  WEFT_TRY(target, find_target(state.catalog, run.target, prepared.settings,
                               purpose == Purpose::plan ? Intent::plan : Intent::run, run.span));
  prepared.target = std::move(target);
  WEFT_TRY_STATUS(take_stack(state, prepared));
  if (purpose == Purpose::run && run.target && run.target->local) take_ranks_that_are_left(state, prepared);
  if (Status combined = check_combinations(prepared.settings, prepared.target, prepared.trains());
      !combined.ok()) {
    Error error = std::move(combined).error();
    error.span = run.span;
    return error;
  }
  WEFT_TRY_STATUS(check_f8(run, prepared));
  prepared.ranks = prepared.target.devices();
  prepared.fixed = fixed_by(state.hints);
  if (purpose == Purpose::run) {
    WEFT_TRY_STATUS(check_runs_here(prepared));
    WEFT_TRY_STATUS(prepared.trains() ? check_train(run, prepared.settings) : check_asked(run, state));
  }
  const language::Mode mode = prepared.trains() ? language::Mode::train : language::Mode::infer;
  WEFT_TRY(bound, bind_again(state, prepared, mode, {}, interrupted));
  prepared.sizes = std::move(bound.sizes);
  if (prepared.trains() && train::count_batch_norms(bound.graph) > 0) {
    WEFT_TRY(shares, norm_shares_of(prepared.settings, bound.graph, prepared.ranks));
    prepared.norm_shares = shares;
  }
  if (prepared.target.on_gpu())
    state.warnings.add("convolutions run in the reference implementation, which is slow",
                       check_libraries(bound.graph));
  WEFT_TRY_STATUS(make_plan(prepared, std::move(bound.graph)));
  return prepared;
}

Result<Prepared> prepare_again(const Knowledge& state, const PlanRequest& request,
                               std::span<const language::SizeOverride> sizes,
                               const std::function<bool()>& interrupted) {
  Prepared made(request);
  const language::Mode mode = made.trains() ? language::Mode::train : language::Mode::infer;
  WEFT_TRY(bound, bind_again(state, made, mode, sizes, interrupted));
  made.sizes = std::move(bound.sizes);
  WEFT_TRY_STATUS(make_plan(made, std::move(bound.graph)));
  return made;
}

}  // namespace weft::planner
