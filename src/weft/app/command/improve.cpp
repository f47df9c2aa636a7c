#include "weft/app/command/improve.h"

#include <algorithm>
#include <cctype>
#include <chrono>
#include <filesystem>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "weft/app/command/anchor_step.h"
#include "weft/app/command/recipe_problem.h"
#include "weft/app/explain/improvement.h"
#include "weft/app/session/command_catalog.h"
#include "weft/app/session/explain_distributed.h"
#include "weft/app/session/find_cluster.h"
#include "weft/app/session/measured_cluster.h"
#include "weft/app/session/reply.h"
#include "weft/app/session/state.h"
#include "weft/base/file.h"
#include "weft/language/bind.h"
#include "weft/planner/search/distribution/fold.h"
#include "weft/planner/step/plan_for.h"
#include "weft/translate/imports/hugging_face.h"
#include "weft/translate/recipe/model_shape.h"
#include "weft/translate/runs/measured_step.h"

namespace weft::command {
namespace {

using recipe::Language;
using recipe::Recipe;

constexpr std::int64_t kMostRecipeBytes = std::int64_t{16} << 20;

struct GivenRecipe {
  Language language = Language::megatron;
  std::string file;  // empty: given on the command line
  std::string text;
  Recipe recipe;
};

bool is_of_a_name(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-'; }

// The flag or key that a message starts with or names first: "--bf16 and --fp16 ..",
// "zero_optimization.stage: ..", "unknown key: zero".
std::string_view named_in(std::string_view message, Language language) {
  for (const std::string_view unknown : {"unknown setting: ", "unknown key: "})
    if (message.starts_with(unknown)) {
      const std::string_view path = message.substr(unknown.size());
      const std::size_t dot = path.rfind('.');
      return dot == std::string_view::npos ? path : path.substr(dot + 1);
    }
  std::size_t begin = language == Language::megatron ? message.find("--") : 0, end = begin;
  if (begin == std::string_view::npos) return {};
  for (; end < message.size() && (is_of_a_name(message[end]) || message[end] == '.'); ++end)
    if (message[end] == '.') begin = end + 1;
  const bool is_key = end < message.size() && message[end] == ':';
  return language == Language::megatron || is_key ? message.substr(begin, end - begin) : std::string_view();
}

// Finds `word` as a whole word.
Span find_word(std::string_view text, std::string_view word) {
  for (std::size_t at = text.find(word); !word.empty() && at != std::string_view::npos;
       at = text.find(word, at + 1)) {
    const std::size_t end = at + word.size();
    if ((at == 0 || !is_of_a_name(text[at - 1])) && (end == text.size() || !is_of_a_name(text[end])))
      return Span{static_cast<std::uint32_t>(at), static_cast<std::uint32_t>(word.size())};
  }
  return {};
}

// The place in the configuration that an error refers to: the flag or key that the message names,
// else the flag or key of the first parallel degree that it mentions.
Span place_of(const GivenRecipe& given, const std::string& message) {
  if (const Span named = find_word(given.text, named_in(message, given.language)); named.known())
    return named;
  const std::string_view setting = recipe::setting_about(given.language, message, given.text);
  if (setting.empty()) return {};
  if (const Span whole = find_word(given.text, setting); whole.known()) return whole;
  return Span{static_cast<std::uint32_t>(given.text.find(setting)),
              static_cast<std::uint32_t>(setting.size())};
}

Error placed_in(const GivenRecipe& given, Error error) {
  if (!error.span.known()) error.span = place_of(given, error.message);
  if (!given.file.empty()) error.message = fmt::format("{}: {}", given.file, error.message);
  return error.span.known() ? session::in_text(given.text, std::move(error)) : error;
}

struct LanguageOption {
  Language language;
  std::string Improve::*given;
};
constexpr LanguageOption kOptions[] = {
    {Language::megatron, &Improve::megatron},     {Language::deepspeed, &Improve::deepspeed},
    {Language::torchtitan, &Improve::torchtitan}, {Language::nemo, &Improve::nemo},
    {Language::bridge, &Improve::bridge},         {Language::accelerate, &Improve::accelerate},
    {Language::maxtext, &Improve::maxtext}};

// A command line instead of a file: flags, or overrides such as model.num_layers=32.
bool is_command(Language language, const std::string& text) {
  if (language == Language::megatron) return text.find("--") != std::string::npos;
  const bool overrides =
      language == Language::nemo || language == Language::bridge || language == Language::maxtext;
  return overrides && text.find('=') != std::string::npos;
}

Result<GivenRecipe> read_given(const Improve& request, std::int64_t devices) {
  GivenRecipe given;
  std::string text;
  std::size_t found = 0;
  for (const LanguageOption& option : kOptions)
    if (const std::string& one = request.*option.given; !one.empty()) {
      ++found;
      given.language = option.language;
      text = one;
    }
  if (found != 1)
    return user_error(
        fmt::format("expected one configuration, found {}", found),
        "--megatron 'FLAGS', --deepspeed ds_config.json, --torchtitan job.toml, --nemo, --bridge, "
        "--accelerate or --maxtext FILE");
  if (is_command(given.language, text)) {
    given.text = std::move(text);
  } else {
    given.file = std::move(text);
    WEFT_TRY(content, read_file(given.file, kMostRecipeBytes));
    given.text = std::move(content);
  }
  auto read = recipe::read(given.language, given.text, devices);
  if (!read.ok()) return placed_in(given, std::move(read).error());
  given.recipe = std::move(*read);
  return given;
}

// Fills fields missing from the configuration with command-line options.
Status complete_recipe(const Improve& request, GivenRecipe& given, std::int64_t devices) {
  Recipe& recipe = given.recipe;
  const auto take = [&](std::int64_t asked, std::int64_t& field, std::string_view option,
                        std::string_view what) -> Status {
    if (asked != 0 && field != 0 && asked != field)
      return user_error(
          fmt::format("{} and the configuration differ: {} of {} and {}", option, what, asked, field),
          "give it only once");
    if (asked != 0) field = asked;
    return {};
  };
  WEFT_TRY_STATUS(take(request.batch, recipe.global_batch, "--batch", "a batch"));
  WEFT_TRY_STATUS(take(request.sequence, recipe.sequence, "--sequence", "sequences"));
  if (recipe.global_batch == 0) {
    recipe.devices = devices;
    // One pass per step and replica.
    const std::int64_t data = recipe.data_degree();
    recipe.global_batch = recipe.default_batch;
    if (recipe.global_batch == 0 && __builtin_mul_overflow(recipe.micro_batch, data, &recipe.global_batch))
      recipe.global_batch = 0;
    if (recipe.global_batch > 0)
      recipe.notes.push_back(fmt::format("the batch is not given: {} per step, the default of {}",
                                         recipe.global_batch, recipe::name(given.language)));
  }
  if (Status checked = recipe::check(recipe, devices); !checked.ok())
    return placed_in(given, std::move(checked).error());
  recipe.devices = devices;
  if (recipe.global_batch == 0)
    return user_error("the configuration does not give the batch size per step", "--batch 1024");
  return {};
}

struct ImproveModel {
  std::string name;
  std::vector<std::string> notes;
};

Result<ImproveModel> find_model(language::Catalog& catalog, const std::string& reference) {
  ImproveModel model{reference, {}};
  if (catalog.models.contains(reference)) return model;
  const bool script = reference.ends_with(".weft");
  if (!script && !reference.ends_with(".json")) {
    const language::syntax::Name name{.text = reference, .span = {}};
    WEFT_TRY_STATUS(planner::sizes_of(catalog, name));  // fails and suggests the closest name
    return model;
  }
  WEFT_TRY(text, read_file(reference, kMostRecipeBytes));
  if (script) {
    WEFT_TRY(created, session::create_all(catalog, text));
    if (created.model.empty()) return user_error(fmt::format("{} creates no model", reference));
    model.name = std::move(created.model);
    return model;
  }
  const std::filesystem::path path(reference);
  const std::string stem = path.stem().string(), folder = path.parent_path().filename().string();
  const std::string name = imports::name_from(stem == "config" && !folder.empty() ? folder : stem);
  // Only times matter here, not values: scaled rotary angles cost the same as plain ones.
  auto imported = imports::import_hugging_face(text, {.name = {}, .otherwise = name, .plain_rotary = true});
  if (!imported.ok()) {
    Error error = std::move(imported).error();
    error.message = fmt::format("{}: {}", reference, error.message);
    return error;
  }
  // The model or its layers may have the same names as shipped ones.
  catalog.models.clear();
  catalog.layers.clear();
  WEFT_TRY(created, session::create_all(catalog, imported->text));
  model.name = std::move(created.model);
  model.notes = std::move(imported->notes);
  return model;
}

// Sizes that the configuration states are those of the model; the others are filled in.
Status complete_model(const GivenRecipe& given, const recipe::RecipeEstimator& pricer,
                      const std::string& model, Recipe& recipe) {
  const plan::Graph& graph = *pricer.problem().plan;
  const std::vector<std::int64_t> iterations = search::layers_of_nodes(graph);
  const recipe::ModelShape actual =
      recipe::model_shape(graph, pricer.roles(), iterations.empty() ? 0 : std::ranges::max(iterations) + 1);
  const std::pair<std::int64_t recipe::ModelShape::*, std::string_view> sizes[] = {
      {&recipe::ModelShape::layers, "layers"},       {&recipe::ModelShape::hidden, "hidden size"},
      {&recipe::ModelShape::inner, "inner size"},    {&recipe::ModelShape::heads, "attention heads"},
      {&recipe::ModelShape::key_heads, "key heads"}, {&recipe::ModelShape::experts, "experts"}};
  for (const auto& [size, what] : sizes) {
    std::int64_t& stated = recipe.model.*size;
    const std::int64_t found = actual.*size;
    if (stated != 0 && found != 0 && stated != found) {
      Error error = user_error(fmt::format("the configuration and the model {} differ: {} of {} and {}",
                                           model, what, stated, found),
                               "give the model that the configuration trains");
      return placed_in(given, std::move(error));
    }
    if (stated == 0) stated = found;
  }
  for (Status checked : {recipe::check(recipe, recipe.devices), recipe::check_in(given.language, recipe)})
    if (!checked.ok()) return placed_in(given, std::move(checked).error());
  return {};
}

constexpr std::int64_t kMostLogBytes = std::int64_t{256} << 20;

Error in_option(std::string_view option, Error error) {
  error.message = fmt::format("{}: {}", option, error.message);
  return error;
}

class Improver {
 public:
  explicit Improver(const Improve& request) : request_(request) { session::load_known(state_.catalog); }

  Result<std::string> run() {
    const auto began = std::chrono::steady_clock::now();
    if (request_.model.empty())
      return user_error("--model is missing", "give a config.json or a shipped model: gpt2");
    if (request_.on.empty())
      return user_error("--on is missing", "give a cluster: pod, or a script that creates one");
    WEFT_TRY(cluster, session::find_described_cluster(request_.on));
    cluster.name = cluster.name.empty() ? "cluster" : cluster.name;
    WEFT_TRY(given, read_given(request_, cluster.devices()));
    const Recipe as_read = given.recipe;
    WEFT_TRY_STATUS(complete_recipe(request_, given, cluster.devices()));
    WEFT_TRY(model, find_model(state_.catalog, request_.model));
    state_.catalog.clusters.insert_or_assign(cluster.name, cluster);

    AnchoredStep step{
        model.name, cluster.name, given.recipe,
        request_.stack.empty() ? std::string(recipe::stack_of(given.language)) : request_.stack};
    std::optional<explain::AnchoredStepText> anchored;
    if (!request_.measured.empty()) {
      WEFT_TRY(made, anchor(given, step));
      anchored = std::move(made);
      step.stack = anchored->anchor.stack.name;
      if (!request_.save_stack.empty())
        WEFT_TRY_STATUS(
            write_file_atomically(request_.save_stack, recipe::print_create(anchored->anchor.stack)));
    } else if (!request_.save_stack.empty()) {
      return user_error("--save-stack needs a measured step", "--measured 'step=1.31s, memory=61GiB'");
    }
    WEFT_TRY(problem, RecipeProblem::make(state_, step.model, step.cluster, step.recipe, step.stack,
                                          request_.interrupted, request_.on_progress));
    recipe::RecipeEstimator& pricer = problem->pricer();
    WEFT_TRY_STATUS(complete_model(given, pricer, model.name, given.recipe));
    if (request_.memory_only) return memory_of(pricer, given);
    // Printing takes a little of the time too.
    constexpr double kLongest = 1e9, kForPrinting = 0.02;
    if (request_.seconds > 0)
      pricer.end_at(began + std::chrono::duration_cast<std::chrono::steady_clock::duration>(
                                std::chrono::duration<double>((1 - kForPrinting) *
                                                              std::min(request_.seconds, kLongest))));
    auto found = recipe::improve(pricer, given.recipe,
                                 {.language = given.language,
                                  .simpler_within = planner::simpler_within(problem->prepared().settings,
                                                                            problem->prepared().target)});
    if (!found.ok()) return placed_in(given, std::move(found).error());

    explain::ImprovementText text;
    text.anchored = std::move(anchored);
    text.about = session::report_of(state_, problem->prepared());
    text.about.memory_limit = pricer.problem().memory_bytes;
    text.about.width = request_.width;
    text.precision = precision_word(given.recipe.precision);
    text.improvement = &*found;
    text.language = given.language;
    if (found->better) {
      recipe::Rewritten rewritten =
          recipe::rewrite(given.language, given.text, as_read, found->better->recipe);
      text.before.text = std::move(rewritten.before);
      text.after = std::move(rewritten.after);
    }
    text.notes = given.recipe.notes;
    // The configuration gives the sequence.
    std::ranges::copy_if(model.notes, std::back_inserter(text.notes), [&](const std::string& note) {
      return given.recipe.sequence == 0 || !note.starts_with("texts of ");
    });
    text.notes.insert(text.notes.end(), found->today.spread.notes.begin(), found->today.spread.notes.end());
    if (found->better)
      for (const std::string& note : found->better->spread.notes)
        if (std::ranges::find(text.notes, note) == text.notes.end()) text.notes.push_back(note);
    text.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
    if (!request_.to.empty() && found->better)
      WEFT_TRY_STATUS(write_file_atomically(request_.to, text.after.text));
    return request_.format == session::Format::json ? explain::print_json(text) : explain::print_text(text);
  }

 private:
  // Calibrates the stack by the measured step of today's configuration.
  Result<explain::AnchoredStepText> anchor(const GivenRecipe& given, const AnchoredStep& step) {
    const bool is_stated = request_.measured.find('=') != std::string::npos;
    explain::AnchoredStepText text;
    if (is_stated) {
      auto stated = runs::read_stated_step(request_.measured);
      if (!stated.ok()) return in_option("--measured", std::move(stated).error());
      text.given = std::move(*stated);
    } else {
      auto log = read_file(request_.measured, kMostLogBytes);
      if (!log.ok()) {
        Error error = in_option("--measured", std::move(log).error());
        error.hint = "give a trainer's log, or values: 'step=1.31s, memory=61GiB'";
        return error;
      }
      WEFT_TRY(read, runs::read_trainer_log(*log, request_.measured));
      text.given = std::move(read);
    }
    const Recipe& recipe = given.recipe;
    WEFT_TRY(seconds, text.given.step_seconds(recipe.global_batch, recipe.sequence, recipe.devices));
    text.measured = {seconds, text.given.peak_bytes};
    auto made = anchor_step(state_, step, text.measured, request_.interrupted);
    if (!made.ok()) return placed_in(given, std::move(made).error());
    text.anchor = std::move(*made);
    return text;
  }

  Result<std::string> memory_of(recipe::RecipeEstimator& pricer, const GivenRecipe& given) const {
    auto priced = pricer.price(given.recipe);
    if (!priced.ok()) return placed_in(given, std::move(priced).error());
    const double limit = pricer.problem().memory_bytes;
    return request_.format == session::Format::json ? explain::memory_json(*priced, limit)
                                                    : explain::memory_text(*priced, limit);
  }

  const Improve& request_;
  session::Session::State state_;
};

}  // namespace

session::Reply run(const Improve& request) { return session::to_reply(Improver(request).run()); }

}  // namespace weft::command
