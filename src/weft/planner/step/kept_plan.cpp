#include "weft/planner/step/kept_plan.h"

#include <algorithm>
#include <optional>
#include <type_traits>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "weft/plan/graph/hash.h"
#include "weft/plan/graph/text.h"
#include "weft/planner/step/local_ranks.h"
#include "weft/planner/step/plan_for.h"
#include "weft/planner/step/plan_pipeline.h"
#include "weft/planner/step/plan_step.h"
#include "weft/runtime/run/algorithm_list.h"
#include "weft/runtime/run/json_number.h"
#include "weft/runtime/run/rank_comparison.h"

namespace weft::planner {
namespace {

using nlohmann::ordered_json;

struct KeptPlan {
  std::string version;
  std::int64_t ranks = 1, workers = 1;
  std::string model;  // hash of the one-device plan, including sizes and optimizer
  std::string asked;  // settings and hints
  std::string distribution, algorithms;
  std::string text;  // the plan as text
};

std::string asked_of(const Knowledge& state, const Settings& settings) {
  std::vector<std::string> asked =
      print_changed(settings, [](const SettingSpec& spec) { return spec.does_decide(Decides::plan); });
  for (const KeptHint& hint : state.hints) asked.push_back("HINT " + hint.text);
  return fmt::format("{}", fmt::join(asked, ", "));
}

// Splits at commas outside quotes.
std::vector<std::string> items_of(std::string_view asked) {
  std::vector<std::string> items;
  bool is_quoted = false;
  std::size_t begin = 0;
  for (std::size_t at = 0; at <= asked.size(); ++at) {
    if (at < asked.size() && asked[at] == '\'') is_quoted = !is_quoted;
    if (at < asked.size() && (is_quoted || !asked.substr(at).starts_with(", "))) continue;
    if (at > begin) items.emplace_back(asked.substr(begin, at - begin));
    begin = at + 2;
  }
  return items;
}

// Replaces setting names of older versions by current ones, and sorts by them.
std::string with_current_names(std::string_view asked) {
  std::vector<std::string> items = items_of(asked);
  const auto name_of = [](std::string_view item) { return item.substr(0, item.find(" = ")); };
  std::size_t settings = 0;
  for (std::string& item : items) {
    if (item.starts_with("HINT ")) break;
    const std::string_view name = name_of(item);
    item = fmt::format("{}{}", current_name(name), std::string_view(item).substr(name.size()));
    ++settings;
  }
  std::ranges::stable_sort(items.begin(), items.begin() + static_cast<std::ptrdiff_t>(settings), {}, name_of);
  return fmt::format("{}", fmt::join(items, ", "));
}

std::int64_t workers_now(const Prepared& prepared) {
  return prepared.ranks == 1 ? prepared.target.threads
                             : std::max<std::int64_t>(prepared.target.threads / prepared.ranks, 1);
}

KeptPlan keep(const Knowledge& state, const Prepared& prepared, const PlanToTrain& plan) {
  KeptPlan kept;
  kept.version = WEFT_VERSION;
  kept.ranks = prepared.ranks;
  kept.workers = workers_now(prepared);
  kept.model = plan::structural_hash(prepared.plan.graph).hex();
  kept.asked = asked_of(state, prepared.settings);
  if (const auto& spread = plan.choice.spread) {
    kept.distribution = distribute::print(spread->distribution);
    kept.text = fmt::format("# mesh: {}\n{}", print(spread->chosen.plan.mesh),
                            plan::print(spread->chosen.plan.graph));
  } else {
    kept.text = plan::print(plan.choice.plan);
  }
  kept.algorithms = run::print_algorithms(plan.options.algorithms);
  return kept;
}

// Visits the fields in the order in which they are written.
template <class Kept, class Visit>
void for_fields(Kept& kept, const Visit& visit) {
  visit("spread", kept.distribution);
  visit("ranks", kept.ranks);
  visit("workers", kept.workers);
  visit("asked", kept.asked);
  visit("version", kept.version);
  visit("model", kept.model);
  visit("algorithms", kept.algorithms);
  visit("plan", kept.text);
}

std::string print(const KeptPlan& kept) {
  ordered_json written;
  for_fields(kept, [&](const char* name, const auto& field) { written[name] = field; });
  return written.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}

Result<KeptPlan> read_kept(const std::string& text) try {
  const ordered_json read = ordered_json::parse(text);
  KeptPlan kept;
  const char* wrong = nullptr;
  for_fields(kept, [&](const char* name, auto& field) {
    const ordered_json& value = read.at(name);
    if constexpr (std::is_integral_v<std::remove_reference_t<decltype(field)>>) {
      const auto whole = run::read_whole(value, 1, plan::kMostRanks);
      if (!whole) wrong = name;
      field = whole.value_or(1);
    } else {
      value.get_to(field);
    }
  });
  kept.asked = with_current_names(kept.asked);
  if (wrong != nullptr)
    return user_error(
        fmt::format("the plan that the weights were trained with cannot be read: expected {} from 1 to {}",
                    wrong, plan::kMostRanks));
  return kept;
} catch (const ordered_json::exception&) {
  return user_error("the plan that the weights were trained with cannot be read");
}

// Why the plan does not match this statement; empty if it does.
std::string why_not(const KeptPlan& kept, const KeptPlan& now) {
  const auto quoted = [](const std::string& asked) { return asked.empty() ? "nothing" : "'" + asked + "'"; };
  if (kept.ranks != now.ranks)
    return fmt::format("they were trained on {} rank{}, this run has {}", kept.ranks,
                       kept.ranks == 1 ? "" : "s", now.ranks);
  if (kept.model != now.model) return "the model, its sizes or its optimizer changed";
  if (kept.asked != now.asked)
    return fmt::format("they were planned with {}, this run has {}", quoted(kept.asked), quoted(now.asked));
  if (kept.workers != now.workers)
    return fmt::format("each rank had {} thread{} then and has {} now, which changes the order of sums",
                       kept.workers, kept.workers == 1 ? "" : "s", now.workers);
  return {};
}

// The plan as written, without a search.
Result<PlanToTrain> follow(const Knowledge& state, const Prepared& prepared, const KeptPlan& kept) {
  PlanToTrain plan;
  WEFT_TRY(algorithms, run::read_algorithms(kept.algorithms));
  if (prepared.ranks == 1) {
    WEFT_TRY(choice, adopt_plan_alone(state, prepared, kept.text));
    plan.choice = std::move(choice);
    return plan;
  }
  WEFT_TRY(choice, adopt_plan(state, prepared, kept.distribution, kept.text, /*compare=*/false));
  plan.choice = std::move(choice);
  WEFT_TRY(options, local_ranks_of(prepared, plan.choice.spread->chosen.prediction));
  plan.options = std::move(options);
  plan.options.algorithms = std::move(algorithms);
  return plan;
}

Result<PlanToTrain> search_anew(const Knowledge& state, const Observer& context, const Prepared& prepared) {
  WEFT_TRY(choice, plan_to_run(state, prepared.ranks > 1 ? &context : nullptr, prepared));
  if (was_interrupted(choice)) return user_error("interrupted", "nothing was trained");
  return to_train(state, prepared, std::move(choice));
}

Result<PlanToTrain> follow_or_search(const Knowledge& state, const Observer& context,
                                     const Prepared& prepared, const std::string& text, bool tells) {
  // A distribution with stages or micro-batches already determines the plan.
  WEFT_TRY(in_time, requested_pipeline(prepared.settings, prepared.run->span));
  if (text.empty() || in_time || !prepared.settings.running.follow_plan)
    return search_anew(state, context, prepared);
  std::string why;
  auto kept = read_kept(text);
  if (kept.ok()) {
    PlanToTrain unknown;
    unknown.choice.plan = prepared.plan.graph.clone();
    why = why_not(*kept, keep(state, prepared, unknown));
  } else {
    why = kept.error().message;
  }
  if (why.empty()) {
    auto followed = follow(state, prepared, *kept);
    if (followed.ok()) return followed;
    why = followed.error().message;
  }
  WEFT_TRY(anew, search_anew(state, context, prepared));
  if (!tells) return anew;
  const KeptPlan now = keep(state, prepared, anew);
  if (!kept.ok() || kept->text != now.text || kept->algorithms != now.algorithms ||
      kept->workers != now.workers)
    state.warnings.add("training continues with a different plan than the weights were trained with",
                       user_error(why));
  return anew;
}

}  // namespace

Result<PlanToTrain> plan_to_train(const Knowledge& state, const Observer& context, const Prepared& prepared,
                                  const std::string& kept, bool tells) {
  if (prepared.ranks == 1) {
    WEFT_TRY(plan, follow_or_search(state, context, prepared, kept, tells));
    plan.kept = print(keep(state, prepared, plan));
    return plan;
  }
  // All ranks search at the same time, so that none waits for longer than its own search takes.
  run::RankComparison searching(fmt::format("the plan of {}", prepared.run->model.text));
  auto found = follow_or_search(state, context, prepared, kept, tells);
  WEFT_TRY_STATUS(searching.end(found.ok() ? Status() : Status(found.error())));
  found->kept = print(keep(state, prepared, *found));
  WEFT_TRY(first, run::from_first_rank(found->kept));
  if (first == found->kept) return found;
  WEFT_TRY(theirs, read_kept(first));
  WEFT_TRY(plan, follow(state, prepared, theirs));
  plan.kept = std::move(first);
  return plan;
}

Result<PlanToTrain> to_train(const Knowledge& state, const Prepared& prepared, search::Choice choice) {
  PlanToTrain plan;
  plan.choice = std::move(choice);
  if (prepared.ranks > 1) {
    WEFT_TRY(options, local_ranks_of(prepared, plan.choice.spread->chosen.prediction));
    plan.options = std::move(options);
  }
  plan.kept = print(keep(state, prepared, plan));
  return plan;
}

}  // namespace weft::planner
