#include "weft/app/explain/improvement.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "weft/app/explain/predicted_step.h"
#include "weft/app/explain/summary.h"
#include "weft/app/explain/whole.h"
#include "weft/base/units.h"

namespace weft::explain {
namespace {

using Json = nlohmann::ordered_json;
using recipe::PricedRecipe;
using recipe::RecipePrice;

std::vector<std::pair<std::string_view, double>> time_parts(const RecipePrice& price) {
  return {{"computing", price.computing},
          {"waiting for exchanges", price.waiting},
          {"bubble", price.bubble},
          {"sums of gradients and update", price.updating}};
}

std::string step_line(const RecipePrice& price) {
  std::vector<std::string> parts;
  for (const auto& [what, seconds] : time_parts(price))
    if (seconds >= 0.0005 * price.seconds)
      parts.push_back(fmt::format("{} {}", what, print_seconds(seconds)));
  return fmt::format("{}: {}", print_seconds(price.seconds), fmt::join(parts, ", "));
}

std::string memory_text(const RecipePrice& price, double limit) {
  std::string text = fmt::format("{} a device", print_bytes(price.peak_bytes));
  if (limit > 0)
    text += price.fits
                ? fmt::format(", {} of {}", rounded_percent(price.peak_bytes / limit), print_bytes(limit))
                : fmt::format(", which does not fit: there are {}", print_bytes(limit));
  return text + ": " + memory_kinds(price.memory);
}

// What the change saves, the most first.
std::string why(const RecipePrice& before, const RecipePrice& after) {
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
  for (const auto& [less, text] : saved) words.push_back(text);
  if (!before.fits && after.fits)
    words.insert(words.begin(), fmt::format("it fits: {} -> {} a device", print_bytes(before.peak_bytes),
                                            print_bytes(after.peak_bytes)));
  return fmt::format("{}", fmt::join(words, "; "));
}

std::string change_words(const std::vector<recipe::Change>& changes) {
  std::vector<std::string> words;
  for (const recipe::Change& change : changes)
    words.push_back(fmt::format("{} {} -> {}", change.what, change.from, change.to));
  return fmt::format("{}", fmt::join(words, ", "));
}

// "today     tensor 8, ...", what follows indented.
std::string labelled(std::string_view label, std::string_view text, std::size_t width) {
  return wrap(fmt::format("{:<10}{}", label, text), width, 10);
}

Json price_json(const PricedRecipe& priced) {
  const RecipePrice& price = priced.price;
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

// Without what only says that more follows.
std::string_view bare(std::string_view line) {
  while (!line.empty() && (line.back() == '\\' || line.back() == ' ' || line.back() == ','))
    line.remove_suffix(1);
  return line;
}

}  // namespace

std::string what_dominates(const PricedRecipe& priced, double memory_bytes) {
  const RecipePrice& price = priced.price;
  if (!price.fits) {
    const auto kinds = price.memory.kinds();
    const auto most = std::ranges::max_element(kinds, {}, [](const auto& kind) { return kind.second; });
    return fmt::format("memory: {} a device, {} of it {}; there are {}", print_bytes(price.peak_bytes),
                       print_bytes(most->second), most->first, print_bytes(memory_bytes));
  }
  const auto share = [&](double seconds) { return rounded_percent(seconds / price.seconds); };
  const recipe::Recipe& recipe = priced.recipe;
  const double most = std::max({price.waiting, price.bubble, price.updating});
  if (most < 0.02 * price.seconds) return fmt::format("computing: {} of the step", share(price.computing));
  if (most == price.bubble)
    return fmt::format("the pipeline's bubble: {} of the step, with {} stages and {} micro-batches",
                       share(most), recipe.pipeline, recipe.micro_batches());
  if (most == price.updating)
    return fmt::format("sums of gradients and the update: {} of the step, over data {}", share(most),
                       recipe.data_degree());
  std::vector<std::string> degrees;
  const std::pair<std::string_view, std::int64_t> cuts[] = {
      {"tensor", recipe.tensor}, {"expert", recipe.expert}, {"context", recipe.context}};
  for (const auto& [what, degree] : cuts)
    if (degree > 1) degrees.push_back(fmt::format("{} {}", what, degree));
  std::string whose = fmt::format("exchanges of {}", fmt::join(degrees, " and "));
  if (degrees.empty())
    whose = recipe.zero == 3 ? "gathering parameters (ZeRO 3) and summing gradients"
                             : fmt::format("sums of gradients over data {}", recipe.data_degree());
  return fmt::format("{} that nothing hides: {} of the step", whose, share(most));
}

// By the longest common run of lines, as a diff has it; configurations are short.
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

std::string print_text(const ImprovementText& text) {
  const recipe::Improvement& found = *text.improvement;
  const PricedRecipe& today = found.today;
  const std::size_t width = text.width;
  std::string out = wrap(headline("TRAIN", text.model, text.cluster_name, text.sizes,
                                  {{"precision", text.precision}, {"optimizer", "adamw"}}),
                         width) +
                    "\n";
  out += labelled("today", describe(today.recipe), width);
  out += labelled("", print(today.spread.distribution), width);
  out += labelled("step", step_line(today.price), width);
  out += labelled("memory", memory_text(today.price, text.memory_bytes), width);
  out += labelled("bound by", what_dominates(today, text.memory_bytes), width) + "\n";
  if (found.better) {
    const PricedRecipe& better = *found.better;
    const bool fits = today.price.fits;
    out += labelled("better", describe(better.recipe), width);
    out += labelled("", print(better.spread.distribution), width);
    out += labelled("step",
                    fits ? fmt::format("{:.2f}x as fast: {}", today.price.seconds / better.price.seconds,
                                       step_line(better.price))
                         : step_line(better.price),
                    width);
    out += labelled("memory", memory_text(better.price, text.memory_bytes), width);
    out += labelled("why", why(today.price, better.price), width);
    out += labelled("changed", change_words(recipe::changes(today.recipe, better.recipe)), width) + "\n";
    out += marked_lines(text.before.text, text.after.text) + "\n";
    for (const std::string& lost : text.after.lost)
      out += wrap(fmt::format("no words for this in {}: {}", name(text.language), lost), width);
  } else if (today.price.fits) {
    out += "nothing better was found: keep it\n\n";
  } else {
    out += "nothing that fits was found either: more devices, or a smaller batch\n\n";
  }
  if (found.beyond) {
    out += wrap(fmt::format("quicker still, {}, and not to be said in {}: {}",
                            print_seconds(found.beyond->priced.seconds), name(text.language),
                            print(found.beyond->distribution)),
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
  out += fmt::format("looked at {} recipes in {}{}\n", found.looked_at, print_seconds(text.seconds),
                     found.ended_early ? "; stopped: the time was up" : "");
  return out;
}

std::string print_json(const ImprovementText& text) {
  const recipe::Improvement& found = *text.improvement;
  Json json = {{"model", text.model}, {"cluster", text.cluster_name}, {"language", name(text.language)}};
  for (const auto& [size, value] : text.sizes) json["sizes"][size] = value;
  json["precision"] = text.precision;
  json["memory_limit_bytes"] = whole(text.memory_bytes);
  json["today"] = price_json(found.today);
  json["today"]["bound_by"] = what_dominates(found.today, text.memory_bytes);
  json["better"] = nullptr;
  if (found.better) {
    Json better = price_json(*found.better);
    better["speedup"] = found.today.price.fits ? Json(found.today.price.seconds / found.better->price.seconds)
                                               : Json(nullptr);
    better["why"] = why(found.today.price, found.better->price);
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
  json["notes"] = text.notes;
  json["looked_at"] = found.looked_at;
  json["ended_early"] = found.ended_early;
  json["seconds"] = text.seconds;
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace weft::explain
