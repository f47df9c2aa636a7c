#include "weft/app/explain/improvement.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "weft/app/explain/predicted_step.h"
#include "weft/app/explain/whole.h"
#include "weft/base/units.h"

namespace weft::explain {
namespace {

using Json = nlohmann::ordered_json;
using recipe::EstimatedRecipe;
using recipe::RecipeCost;

std::vector<std::pair<std::string_view, double>> time_parts(const RecipeCost& price) {
  return {{"compute", price.computing},
          {"exposed communication", price.waiting},
          {"bubble", price.bubble},
          {"gradient sums and update", price.updating}};
}

// The report of a recipe. Only its lines are printed, without Next and Use, which are specific to
// Weft.
Report report_of(const ImprovementText& text, const EstimatedRecipe& priced) {
  Report report = text.about;
  const RecipeCost& price = priced.price;
  report.task.clear();
  report.terms = terms_of(report, priced.spread.distribution);
  if (report.terms.empty()) report.terms = "one device";
  StepFacts& facts = report.step.emplace();
  facts.seconds = price.seconds;
  for (const auto& [what, seconds] : time_parts(price)) facts.shares.push_back({std::string(what), seconds});
  for (const auto& [what, bytes] : price.memory.kinds()) facts.memory.push_back({std::string(what), bytes});
  facts.memory_bytes = price.peak_bytes;
  facts.fits = price.fits;
  if (priced.recipe.pipeline > 1) facts.fullest = fmt::format("stage {}", price.fullest);
  facts.limit = what_dominates(priced, report.memory_limit);
  return report;
}

// The two reports as columns of a table.
std::string side_by_side(const Report& today, const Report* better, std::size_t width) {
  Table table({{""}, {"today", Align::left, Fit::wrap}, {"better", Align::left, Fit::wrap}});
  const StepFacts now = step_of(today), then = better != nullptr ? step_of(*better) : StepFacts();
  for (const ReportLine& line : report_lines()) {
    const LineText one = line.text(today, now);
    if (line.after_others || one.value.empty()) continue;
    table.add({std::string(line.label), whole_text(line, one),
               better != nullptr ? whole_text(line, line.text(*better, then)) : std::string()});
  }
  return table.print(width);
}

// How each part of the step changes, the largest saving first.
std::vector<std::string> reasons(const RecipeCost& before, const RecipeCost& after, std::string_view per) {
  const auto a = time_parts(before), b = time_parts(after);
  std::vector<std::pair<double, std::string>> saved;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double less = a[i].second - b[i].second;
    if (std::abs(less) >= 0.005 * before.seconds)
      saved.emplace_back(less, fmt::format("{} {} -> {}", a[i].first, print_seconds(a[i].second),
                                           print_seconds(b[i].second)));
  }
  std::ranges::stable_sort(saved, [](const auto& x, const auto& y) { return x.first > y.first; });
  std::vector<std::string> words;
  if (!before.fits && after.fits)
    words.push_back(fmt::format("it fits: {} -> {} per {}", print_bytes(before.peak_bytes),
                                print_bytes(after.peak_bytes), per));
  for (const auto& [less, text] : saved) words.push_back(text);
  return words;
}

std::string change_words(const std::vector<recipe::Change>& changes) {
  std::vector<std::string> words;
  for (const recipe::Change& change : changes)
    words.push_back(fmt::format("{} {} -> {}", change.what, change.from, change.to));
  return fmt::format("{}", fmt::join(words, ", "));
}

// "Why       bubble 1.2 s -> 400 ms": continuation lines are indented.
std::string labelled(std::string_view label, std::string_view text, std::size_t width) {
  return wrap(fmt::format("{:<10}{}", label, text), width, 10);
}

Json price_json(const EstimatedRecipe& priced) {
  const RecipeCost& price = priced.price;
  Json memory = Json::object();
  for (const auto& [what, bytes] : price.memory.kinds()) memory[std::string(what)] = whole(bytes);
  return {{"recipe", describe(priced.recipe)}, {"plan", print(priced.spread.distribution)},
          {"step_seconds", price.seconds},     {"computing_seconds", price.computing},
          {"waiting_seconds", price.waiting},  {"bubble_seconds", price.bubble},
          {"update_seconds", price.updating},  {"memory_per_rank_bytes", whole(price.peak_bytes)},
          {"memory", std::move(memory)},       {"fits", price.fits}};
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::size_t begin = 0;
  while (begin < text.size()) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    lines.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return lines;
}

// The line without trailing continuation characters.
std::string_view bare(std::string_view line) {
  while (!line.empty() && (line.back() == '\\' || line.back() == ' ' || line.back() == ','))
    line.remove_suffix(1);
  return line;
}

}  // namespace

std::string what_dominates(const EstimatedRecipe& priced, double memory_bytes) {
  const RecipeCost& price = priced.price;
  if (!price.fits) {
    const auto kinds = price.memory.kinds();
    const auto most = std::ranges::max_element(kinds, {}, [](const auto& kind) { return kind.second; });
    return fmt::format("memory: {} per device, of which {} is {}; {} available",
                       print_bytes(price.peak_bytes), print_bytes(most->second), most->first,
                       print_bytes(memory_bytes));
  }
  const auto share = [&](double seconds) { return rounded_percent(seconds / price.seconds); };
  const recipe::Recipe& recipe = priced.recipe;
  const double most = std::max({price.waiting, price.bubble, price.updating});
  if (most < 0.02 * price.seconds) return fmt::format("compute: {} of the step", share(price.computing));
  if (most == price.bubble)
    return fmt::format("pipeline bubble: {} of the step, with {} stages and {} micro-batches", share(most),
                       recipe.pipeline, recipe.micro_batches());
  if (most == price.updating)
    return fmt::format("gradient sums and update: {} of the step, across DP {}", share(most),
                       recipe.data_degree());
  std::vector<std::string> degrees;
  const std::pair<std::string_view, std::int64_t> cuts[] = {
      {"TP", recipe.tensor}, {"EP", recipe.expert}, {"CP", recipe.context}};
  for (const auto& [what, degree] : cuts)
    if (degree > 1) degrees.push_back(fmt::format("{} {}", what, degree));
  std::string whose = fmt::format("communication of {}", fmt::join(degrees, " and "));
  if (degrees.empty())
    whose = recipe.zero == 3 ? "parameter all-gathers (ZeRO-3) and gradient sums"
                             : fmt::format("gradient sums across DP {}", recipe.data_degree());
  return fmt::format("exposed {}: {} of the step", whose, share(most));
}

// A diff by longest common subsequence; configurations are short.
std::string marked_lines(const std::string& before, const std::string& after) {
  const std::vector<std::string> old_lines = lines_of(before), new_lines = lines_of(after);
  const std::size_t n = old_lines.size(), m = new_lines.size();
  std::vector<std::vector<std::size_t>> longest(n + 1, std::vector<std::size_t>(m + 1));
  const auto same = [&](std::size_t i, std::size_t j) { return bare(old_lines[i]) == bare(new_lines[j]); };
  for (std::size_t i = n; i-- > 0;)
    for (std::size_t j = m; j-- > 0;)
      longest[i][j] = same(i, j) ? longest[i + 1][j + 1] + 1 : std::max(longest[i + 1][j], longest[i][j + 1]);
  std::string text;
  for (std::size_t i = 0, j = 0; i < n || j < m;) {
    if (i < n && j < m && same(i, j)) {
      text += fmt::format("  {}\n", new_lines[j]);
      ++i, ++j;
    } else if (i < n && (j == m || longest[i + 1][j] >= longest[i][j + 1])) {
      text += fmt::format("- {}\n", old_lines[i++]);
    } else {
      text += fmt::format("+ {}\n", new_lines[j++]);
    }
  }
  return text;
}

std::string memory_text(const EstimatedRecipe& priced, double limit) {
  const RecipeCost& price = priced.price;
  std::string out = fmt::format("{}\n{:<10}{} of {} per device{}{}\n", describe(priced.recipe), "Memory",
                                print_bytes(price.peak_bytes), print_bytes(limit),
                                priced.recipe.pipeline > 1 ? fmt::format(" (stage {})", price.fullest) : "",
                                price.fits ? "" : ": does not fit");
  for (const auto& [what, bytes] : price.memory.kinds())
    if (bytes > 0) out += fmt::format("{:<10}{} {}\n", "", print_bytes(bytes), what);
  if (const double more = price.needed_bytes - price.peak_bytes; more > 0)
    out += fmt::format("{:<10}{} more for the software's buffers and fragmentation\n", "", print_bytes(more));
  return out;
}

std::string memory_json(const EstimatedRecipe& priced, double limit) {
  const RecipeCost& price = priced.price;
  Json memory = Json::object();
  for (const auto& [what, bytes] : price.memory.kinds()) memory[std::string(what)] = whole(bytes);
  return Json({{"schema", 1},
               {"recipe", describe(priced.recipe)},
               {"memory_per_rank_bytes", whole(price.peak_bytes)},
               {"memory_limit_bytes", whole(limit)},
               {"memory", std::move(memory)},
               {"fits", price.fits}})
             .dump() +
         "\n";
}

namespace {

// "TP 8 · PP 4 takes 1.2 s, 2.1 % less: within 3 % the simpler plan is preferred".
std::string left_words(const ImprovementText& text) {
  const recipe::Improvement& found = *text.improvement;
  const RecipeCost& answer = found.better ? found.better->price : found.today.price;
  const RecipeCost& left = found.fastest->price;
  return fmt::format("{} takes {}, {:.1f} % less: within {:.1f} %, the simpler plan is preferred",
                     terms_of(text.about, found.fastest->spread.distribution), print_seconds(left.seconds),
                     100 * (1 - left.seconds / answer.seconds), 100 * found.simpler_within);
}

}  // namespace

std::string print_text(const ImprovementText& text) {
  const recipe::Improvement& found = *text.improvement;
  const EstimatedRecipe& today = found.today;
  const std::size_t width = text.about.width;
  std::string out = wrap(headline(text.about), width) + "\n";
  if (text.anchored) out += print_text(*text.anchored, width);
  const Report now = report_of(text, today);
  if (found.better) {
    const EstimatedRecipe& better = *found.better;
    const Report then = report_of(text, better);
    out += side_by_side(now, &then, width) + "\n";
    if (today.price.fits)
      out += labelled("Faster", fmt::format("{:.2f}x", today.price.seconds / better.price.seconds), width);
    std::string_view label = "Why";
    for (const std::string& reason : reasons(today.price, better.price, now.per()))
      out += labelled(std::exchange(label, ""), reason, width);
    out += labelled("Changed", change_words(recipe::changes(today.recipe, better.recipe)), width) + "\n";
    out += marked_lines(text.before.text, text.after.text) + "\n";
    for (const std::string& lost : text.after.lost)
      out += wrap(fmt::format("{} cannot express: {}", name(text.language), lost), width);
  } else {
    out += side_by_side(now, nullptr, width) + "\n";
    out += today.price.fits ? "no better configuration was found: keep this one\n\n"
                            : "no configuration that fits was found either: use more devices or a smaller "
                              "batch\n\n";
  }
  if (found.fastest) out += labelled("Left", left_words(text), width);
  if (found.beyond) {
    out += wrap(fmt::format("faster still, {}, but {} cannot express it: {}",
                            print_seconds(found.beyond->priced.seconds), name(text.language),
                            terms_of(text.about, found.beyond->distribution)),
                width);
    for (const std::string& lost : found.beyond_lost)
      out += wrap(fmt::format("  it lacks {}", lost), width, 4);
  }
  for (const std::string& note : text.notes) out += wrap(fmt::format("note: {}", note), width);
  for (const recipe::TrailStep& step : found.trail)
    out += wrap(fmt::format("{}: {} -> {}", change_words(step.changes),
                            step.before.fits ? print_seconds(step.before.seconds) : "does not fit",
                            print_seconds(step.after.seconds)),
                width);
  out += fmt::format("{} candidates tried in {}{}\n", found.looked_at, print_seconds(text.seconds),
                     found.ended_early ? "; stopped: out of time" : "");
  if (found.families_left > 0)
    out += wrap(fmt::format("{} of {} known configurations were not tried: give it more time",
                            found.families_left, found.families + found.families_left),
                width);
  return out;
}

std::string print_json(const ImprovementText& text) {
  const recipe::Improvement& found = *text.improvement;
  Json json = {{"schema", 1},
               {"model", text.about.model},
               {"cluster", text.about.cluster.name},
               {"language", name(text.language)}};
  for (const auto& [size, value] : text.about.sizes) json["sizes"][size] = value;
  json["precision"] = text.precision;
  json["memory_limit_bytes"] = whole(text.about.memory_limit);
  if (text.anchored) json["anchor"] = Json::parse(print_json(*text.anchored));
  json["today"] = price_json(found.today);
  json["today"]["bound_by"] = what_dominates(found.today, text.about.memory_limit);
  json["better"] = nullptr;
  if (found.better) {
    Json better = price_json(*found.better);
    better["speedup"] = found.today.price.fits ? Json(found.today.price.seconds / found.better->price.seconds)
                                               : Json(nullptr);
    better["why"] =
        fmt::format("{}", fmt::join(reasons(found.today.price, found.better->price, text.about.per()), "; "));
    better["changes"] = Json::array();
    for (const recipe::Change& change : recipe::changes(found.today.recipe, found.better->recipe))
      better["changes"].push_back({{"what", change.what}, {"from", change.from}, {"to", change.to}});
    better["configuration"] = text.after.text;
    better["lost"] = text.after.lost;
    json["better"] = std::move(better);
  }
  if (found.beyond)
    json["beyond"] = {{"plan", print(found.beyond->distribution)},
                      {"step_seconds", found.beyond->priced.seconds},
                      {"lost", found.beyond_lost}};
  if (found.fastest) {
    json["left"] = price_json(*found.fastest);
    json["left"]["simpler_within"] = found.simpler_within;
  }
  json["known_configurations"] = found.families;
  json["known_configurations_left"] = found.families_left;
  json["notes"] = text.notes;
  json["candidates_tried"] = found.looked_at;
  json["looked_at"] = found.looked_at;
  json["ended_early"] = found.ended_early;
  json["seconds"] = text.seconds;
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace weft::explain
