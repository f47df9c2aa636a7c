#include "weft/app/command/validate.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <map>
#include <optional>

#include <fmt/format.h>

#include "weft/app/command/anchor_step.h"
#include "weft/app/command/recipe_problem.h"
#include "weft/app/explain/validation.h"
#include "weft/app/session/command_catalog.h"
#include "weft/app/session/reply.h"
#include "weft/app/session/state.h"
#include "weft/base/file.h"
#include "weft/base/hash.h"
#include "weft/base/units.h"
#include "weft/formats/gzip.h"
#include "weft/predict/cost/plan_cost.h"
#include "weft/predict/cost/roofline.h"
#include "weft/predict/cost/uncertainty.h"
#include "weft/translate/imports/hugging_face.h"
#include "weft/translate/runs/run.h"

namespace weft::command {
namespace {

constexpr std::int64_t kMostBytes = std::int64_t{256} << 20;

// The name of a run's cluster in the catalog.
constexpr std::string_view kCluster = "measured";

bool is_unseen(std::string_view id) { return (Hasher().text(id).digest().low & 1) == 1; }

Result<std::vector<runs::RunRow>> read_rows(const std::string& path) {
  WEFT_TRY(text, read_file(path, kMostBytes));
  if (!path.ends_with(".gz")) return runs::read_run_table(text, path);
  WEFT_TRY(inflated, formats::inflate_gzip(text, kMostBytes, path));
  return runs::read_run_table(inflated, path.substr(0, path.size() - 3));
}

// What tables of these names were measured with, unless a column or --stack says otherwise.
std::string stack_of(const std::string& path, const runs::RunRow& row) {
  constexpr std::pair<std::string_view, std::string_view> kStacks[] = {
      {"korthikanti", "megatron_2022"}, {"megatron_sc21", "megatron_2022"}, {"bloom", "deepspeed"},
      {"bigscience", "deepspeed"},      {"vtrain", "megatron_deepspeed"},   {"mpt", "fsdp"},
      {"torchtitan", "torchtitan"},     {"nanotron", "nanotron"},
  };
  const std::string name = std::filesystem::path(path).filename().string();
  for (const auto& [prefix, stack] : kStacks)
    if (name.starts_with(prefix)) return std::string(stack);
  const auto framework = row.fields.find("framework");
  if (framework != row.fields.end() && (framework->second == "maxtext" || framework->second == "paxml"))
    return "maxtext";
  return "megatron";
}

Result<cluster::Cluster> cluster_of(const language::Catalog& catalog, const runs::RunCluster& given) {
  const auto device = catalog.devices.find(runs::device_name(given.device));
  if (device == catalog.devices.end())
    return user_error(fmt::format("the catalog lacks the device {}", given.device));
  cluster::Cluster made;
  made.name = std::string(kCluster);
  made.device = device->second;
  // Variants of a device differ in memory: 40 and 80 GB.
  if (given.memory_bytes > 0 && given.memory_bytes < 0.9 * made.device.memory_bytes)
    made.device.memory_bytes = given.memory_bytes;
  if (given.memory_bytes > 1.1 * made.device.memory_bytes) made.device.memory_bytes = given.memory_bytes;
  if (given.memory_bytes_per_second > 0 &&
      given.memory_bytes_per_second < 0.85 * device->second.memory_bytes_per_second)
    made.device.memory_bytes_per_second = given.memory_bytes_per_second;
  const std::int64_t nodes = given.devices / given.devices_per_node;
  if (nodes > 1)
    made.axes.push_back(
        {"node",
         nodes,
         {.name = "node", .bytes_per_second = given.across_bytes_per_second, .latency_seconds = 5e-6}});
  if (nodes > 1 && !given.fabric.empty()) {
    const auto known = catalog.clusters.find(given.fabric);
    if (known == catalog.clusters.end())
      return user_error(fmt::format("unknown network: {}", given.fabric),
                        "a network is a cluster of the catalog: SHOW CLUSTERS");
    made.axes.front().link = known->second.axes.front().link;
    made.axes.front().link.name = "node";
  }
  made.axes.push_back(
      {"gpu",
       given.devices_per_node,
       {.name = "gpu", .bytes_per_second = given.within_bytes_per_second, .latency_seconds = 2e-6}});
  return made;
}

// Rows of one key share everything but how the step is split.
std::string problem_key(const runs::Run& run) {
  const runs::RunCluster& c = run.cluster;
  return fmt::format("{} {} {} {} {} {} {} {} {} {} {} {} {}", run.config, run.stack, c.device, c.devices,
                     c.devices_per_node, c.memory_bytes, c.memory_bytes_per_second, c.within_bytes_per_second,
                     c.across_bytes_per_second, run.recipe.global_batch, run.recipe.sequence,
                     static_cast<int>(run.recipe.precision), c.fabric);
}

// A run whose series is what one measured step of it calibrates.
struct SeriesRun {
  runs::Run run;
  std::string series;
  recipe::StepValues predicted = {};  // 0: none
};

// Runs of one model, device, stack and precision. Tables that do not name the model have its sizes.
std::string series_of(const runs::Run& run, const runs::RunFields& fields) {
  std::string model;
  if (!fields.contains("model"))
    for (const char* const size : {"layers", "hidden", "heads", "experts"})
      if (const auto found = fields.find(size); found != fields.end())
        model += fmt::format("{} {} ", size, found->second);
  return fmt::format("{}{} {} {}", model, run.series, run.stack, name(run.recipe.precision));
}

double peak_of(runs::PeakOf stage, const recipe::RecipeCost& price) {
  if (price.bytes_by_stage.empty()) return price.peak_bytes;
  switch (stage) {
    case runs::PeakOf::first_stage: return price.bytes_by_stage.front();
    case runs::PeakOf::last_stage: return price.bytes_by_stage.back();
    case runs::PeakOf::fullest_stage: break;
  }
  return price.peak_bytes;
}

// Measured and predicted bytes by stage. Launchers number the ranks of a stage consecutively.
std::vector<std::pair<double, double>> by_stage(const std::vector<double>& ranks,
                                                const std::vector<double>& predicted) {
  std::vector<std::pair<double, double>> made;
  for (const double bytes : predicted) made.emplace_back(0, bytes);
  if (predicted.empty() || ranks.size() % predicted.size() != 0) return made;
  const std::size_t each = ranks.size() / predicted.size();
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    double& most = made[r / each].first;
    most = std::max(most, ranks[r]);
  }
  return made;
}

// The peak rate of a device in the run's precision. NVFP4 products are at most twice as fast as f8 products.
double peak_rate_of(const cluster::Device& device, recipe::Precision precision) {
  if (precision == recipe::Precision::nvfp4) return 2 * cost::peak_rate(device, plan::DType::f8e4m3);
  const bool is_f8 = precision == recipe::Precision::fp8;
  return cost::peak_rate(device, is_f8 ? plan::DType::f8e4m3 : plan::DType::bf16);
}

// No step exceeds the peak rate of its devices: a degree or a batch of such a row is wrong.
Status check_possible(const runs::Run& run, double flops, const cluster::Device& device) {
  const double peak = peak_rate_of(device, run.recipe.precision);
  const double needed =
      run.step_seconds > 0 ? flops / (run.step_seconds * static_cast<double>(run.cluster.devices)) : 0;
  if (peak <= 0 || needed <= peak) return {};
  return user_error(fmt::format("impossible: a step of {} needs {}/s of each device, whose peak is {}/s",
                                print_seconds(run.step_seconds), print_flops(needed), print_flops(peak)));
}

class Validator {
 public:
  explicit Validator(const Validate& request) : request_(request) {
    session::load_known(known_);
    state_.catalog = known_;
  }

  Result<std::string> run() {
    const auto began = std::chrono::steady_clock::now();
    if (request_.files.empty())
      return user_error("expected tables of measured runs", "weft validate runs.csv");
    explain::ValidationText text;
    for (const std::string& path : request_.files) {
      auto file = validate_file(path);
      const bool interrupted = request_.interrupted && request_.interrupted();
      if (!file.ok() && (interrupted || request_.files.size() == 1)) return file.error();
      // Of several files, one that holds no runs is named, and the others are estimated.
      text.files.push_back(file.ok() ? *std::move(file)
                                     : explain::ValidatedFile{path, {}, {{path, file.error().message}}});
    }
    text.anchored = std::move(anchored_);
    text.half = request_.half == Half::fitted ? "fitted" : request_.half == Half::unseen ? "unseen" : "both";
    text.rows = request_.rows;
    text.width = request_.width;
    text.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
    return request_.format == session::Format::json ? explain::print_json(text) : explain::print_text(text);
  }

 private:
  Result<explain::ValidatedFile> validate_file(const std::string& path) {
    explain::ValidatedFile file{path, {}, {}};
    WEFT_TRY(rows, read_rows(path));
    std::vector<SeriesRun> chosen;
    for (runs::RunRow& row : rows) {
      if (request_.half != Half::both && is_unseen(row.id) != (request_.half == Half::unseen)) continue;
      if (!request_.only.empty() && row.id.find(request_.only) == std::string::npos) continue;
      if (request_.most_rows > 0 && static_cast<std::int64_t>(chosen.size()) >= request_.most_rows) break;
      if (!request_.stack.empty()) row.fields["stack"] = request_.stack;
      row.fields.emplace("stack", stack_of(path, row));
      auto run = runs::run_of(row);
      if (!run.ok()) {
        file.left_out.emplace_back(row.id, run.error().message);
        continue;
      }
      std::string series = series_of(*run, row.fields);
      chosen.push_back({std::move(*run), std::move(series)});
    }
    std::ranges::stable_sort(chosen, {}, [](const SeriesRun& one) { return problem_key(one.run); });
    std::string key;
    for (SeriesRun& one : chosen) {
      const runs::Run& run = one.run;
      if (request_.interrupted && request_.interrupted()) return user_error("interrupted");
      if (problem_key(run) != key) {
        key = problem_key(run);
        problem_ = open(run);
        flops_ = problem_.ok() ? cost::plan_flops((*problem_)->prepared().plan.graph) : 0;
      }
      if (problem_.ok())
        if (const Status possible =
                check_possible(run, flops_, (*problem_)->pricer().problem().cluster->device);
            !possible.ok()) {
          file.left_out.emplace_back(run.id, possible.error().message);
          continue;
        }
      auto priced = problem_.ok() ? (*problem_)->pricer().price(run.recipe)
                                  : Result<recipe::EstimatedRecipe>(problem_.error());
      if (!priced.ok()) {
        file.left_out.emplace_back(run.id, priced.error().message);
        continue;
      }
      file.runs.push_back(compare(run, *priced));
      one.predicted = {priced->price.seconds, priced->price.peak_bytes};
    }
    if (request_.anchor) {
      WEFT_TRY(anchored, anchor_series(chosen));
      anchored.path = path;
      anchored_.push_back(std::move(anchored));
    }
    return file;
  }

  // Predicts the runs of each series again, after its smallest run was measured. Of several smallest, a hash of the
  // ids chooses, so that no error has a say in it.
  Result<explain::AnchoredFile> anchor_series(const std::vector<SeriesRun>& all) {
    std::map<std::string, std::vector<const SeriesRun*>> by_series;
    for (const SeriesRun& one : all)
      if (one.run.outcome == runs::Outcome::ran && one.run.step_seconds > 0 && one.predicted.seconds > 0)
        by_series[one.series].push_back(&one);
    explain::AnchoredFile file;
    for (const auto& [series, of] : by_series) {
      if (of.size() < 2) continue;
      if (request_.interrupted && request_.interrupted()) return user_error("interrupted");
      const SeriesRun& smallest = **std::ranges::min_element(of, {}, [](const SeriesRun* one) {
        return std::pair(one->run.cluster.devices, Hasher().text(one->run.id).digest().low);
      });
      auto anchored = anchor(smallest.run);
      if (!anchored.ok()) {
        file.refused.emplace_back(smallest.run.id, anchored.error().message);
        continue;
      }
      ++file.series;
      WEFT_TRY_STATUS(predict_anchored(of, smallest, anchored->stack, file));
    }
    return file;
  }

  Result<recipe::Anchor> anchor(const runs::Run& run) {
    if (auto opened = open(run); !opened.ok()) return opened.error();
    return anchor_step(state_, {model_, std::string(kCluster), run.recipe, run.stack},
                       {run.step_seconds, run.peak_bytes}, request_.interrupted);
  }

  Status predict_anchored(const std::vector<const SeriesRun*>& series, const SeriesRun& anchor,
                          const cluster::Stack& stack, explain::AnchoredFile& file) {
    std::string key;
    for (const SeriesRun* const one : series) {
      if (one == &anchor) continue;
      runs::Run run = one->run;
      run.stack = stack.name;
      if (problem_key(run) != key) {
        key = problem_key(run);
        problem_ = open(run, &stack);
      }
      if (!problem_.ok()) return problem_.error();
      WEFT_TRY(priced, (*problem_)->pricer().price(run.recipe));
      file.runs.push_back({run.id,
                           anchor.run.id,
                           {run.step_seconds, one->predicted.seconds, priced.price.seconds},
                           {run.peak_bytes, one->predicted.peak_bytes, priced.price.peak_bytes}});
    }
    return {};
  }

  // `stack`: one that the catalog does not have.
  Result<std::unique_ptr<RecipeProblem>> open(const runs::Run& run, const cluster::Stack* stack = nullptr) {
    WEFT_TRY(cluster, cluster_of(state_.catalog, run.cluster));
    if (run.config != config_) {
      WEFT_TRY(imported, imports::import_hugging_face(
                             run.config, {.name = "measured_model", .otherwise = {}, .plain_rotary = true}));
      state_.catalog = known_;
      WEFT_TRY(created, session::create_all(state_.catalog, imported.text));
      model_ = created.model;
      config_ = run.config;
    }
    state_.catalog.clusters.insert_or_assign(cluster.name, cluster);
    if (stack != nullptr) state_.catalog.stacks.insert_or_assign(stack->name, *stack);
    // A run may fill its device: whether it fits is a matter of all memory that it needs, not of a reserve.
    return RecipeProblem::make(state_, model_, cluster.name, run.recipe, run.stack, request_.interrupted, {},
                               "memory_reserve = 0");
  }

  explain::ValidatedRun compare(const runs::Run& run, const recipe::EstimatedRecipe& priced) const {
    explain::ValidatedRun made;
    made.id = run.id;
    made.stack = run.stack;
    made.series = run.series;
    made.choice = fmt::format("{} {} {} {}", run.series, run.cluster.devices, run.recipe.global_batch,
                              run.recipe.sequence);
    made.step_interval = cost::step_uncertainty(*(*problem_)->pricer().problem().cluster,
                                                !(*problem_)->pricer().roles().expert.empty())
                             .share;
    made.plan = print(priced.spread.distribution);
    made.unseen = is_unseen(run.id);
    made.measured_seconds = run.step_seconds;
    made.predicted_seconds = priced.price.seconds;
    made.measured_bytes = run.peak_bytes;
    made.predicted_bytes = peak_of(run.peak_of, priced.price);
    made.stages = by_stage(run.peak_bytes_by_rank, priced.price.bytes_by_stage);
    made.ran = run.outcome == runs::Outcome::ran;
    made.certain = run.outcome != runs::Outcome::presumed_out_of_memory;
    made.fits = priced.price.fits;
    const recipe::RecipeCost& price = priced.price;
    made.terms = {{"products", price.products},
                  {"attention", price.attention},
                  {"other kernels", price.computing - price.products - price.attention},
                  {"waiting", priced.price.waiting},
                  {"bubble", priced.price.bubble},
                  {"end of step", priced.price.updating}};
    for (const auto& [kind, bytes] : priced.price.memory.kinds()) made.memory.emplace_back(kind, bytes);
    return made;
  }

  const Validate& request_;
  language::Catalog known_;
  session::Session::State state_;
  std::vector<explain::AnchoredFile> anchored_;
  std::string config_, model_;
  Result<std::unique_ptr<RecipeProblem>> problem_ = user_error("nothing was estimated yet");
  double flops_ = 0;  // per step of the problem, by one device
};

}  // namespace

session::Reply run(const Validate& request) { return session::to_reply(Validator(request).run()); }

}  // namespace weft::command
