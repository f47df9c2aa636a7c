#include "weft/app/explain/step_page.h"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

#include "weft/app/explain/step_page_data.h"
#include "weft/app/explain/step_page_parts.h"
#include "weft/base/units.h"
#include "weft/formats/xml_document.h"

namespace weft::explain {
namespace {

using formats::escape_attribute;

// Limits that keep the page responsive in a browser.
constexpr std::size_t kMostTimelines = 16, kMostPredicted = 8, kMostTasks = 400'000;

std::string table_html(const Section& table) {
  std::string text = fmt::format("<div class=\"wide\"><table><caption>{}</caption><thead><tr>",
                                 escape_attribute(table.title));
  const auto right = [&](std::size_t column) {
    return column < table.columns.size() && table.columns[column].align == Align::right ? " class=\"right\""
                                                                                        : "";
  };
  for (std::size_t c = 0; c < table.columns.size(); ++c)
    text += fmt::format("<th scope=\"col\"{}>{}</th>", right(c), escape_attribute(table.columns[c].title));
  text += "</tr></thead><tbody>\n";
  for (std::size_t r = 0; r < table.rows.size(); ++r) {
    text += r == table.marked ? "<tr class=\"marked\">" : "<tr>";
    for (std::size_t c = 0; c < table.rows[r].size(); ++c)
      text += c == 0
                  ? fmt::format("<th scope=\"row\"{}>{}</th>", right(c), escape_attribute(table.rows[r][c]))
                  : fmt::format("<td{}>{}</td>", right(c), escape_attribute(table.rows[r][c]));
    text += "</tr>\n";
    if (r >= table.below.size()) continue;
    for (const std::string& remark : table.below[r])
      if (!remark.empty())
        text += fmt::format("<tr><td class=\"below\" colspan=\"{}\">{}</td></tr>\n", table.columns.size(),
                            escape_attribute(remark));
  }
  text += "</tbody></table>\n";
  if (!table.drawing.empty()) text += fmt::format("<pre>{}</pre>\n", escape_attribute(table.drawing));
  for (const std::string& line : table.lines)
    text += fmt::format("<p class=\"help\">{}</p>\n", escape_attribute(line));
  return text + "</div>\n";
}

double length(const PageTimeline& timeline, std::size_t task) {
  const double seconds = timeline.timeline.tasks[task].end - timeline.timeline.tasks[task].begin;
  return std::isfinite(seconds) && seconds > 0 ? seconds : 0;
}

BarKind kind_of_task(const PageTimeline& timeline, std::size_t task) {
  return kind_of(timeline.program->units[timeline.program->tasks[task].unit]);
}

struct Total {
  std::size_t tasks = 0;
  double seconds = 0;
};
using Totals = std::array<Total, kBarKinds>;

Totals totals(const PageTimeline& timeline) {
  Totals sums;
  for (std::size_t t = 0; t < task_count(timeline); ++t) {
    Total& sum = sums[static_cast<std::size_t>(kind_of_task(timeline, t))];
    ++sum.tasks;
    sum.seconds += length(timeline, t);
  }
  for (const PagePass& pass : timeline.passes) {
    Total& sum = sums[static_cast<std::size_t>(kind_of(pass))];
    ++sum.tasks;
    sum.seconds += std::max(0.0, pass.end - pass.begin);
  }
  return sums;
}

std::string title_of(const PageTimeline& timeline) {
  return fmt::format("{}: {}", timeline.measured ? "measured" : "predicted", name_of(timeline));
}

// Alternative text for the drawing.
std::string in_words(const PageTimeline& timeline) {
  std::string text = fmt::format("{}, {} tasks in {}", title_of(timeline), task_count(timeline),
                                 print_seconds(timeline.timeline.seconds));
  const Totals sums = totals(timeline);
  for (std::size_t k = 0; k < kBarKinds; ++k)
    if (sums[k].tasks > 0)
      text += fmt::format("; {} {}", name(static_cast<BarKind>(k)), print_seconds(sums[k].seconds));
  return text;
}

Section time_by_kind(std::span<const PageTimeline> timelines) {
  Section table{"Time per rank by kind", {{"kind"}, {"tasks", Align::right}}};
  std::vector<Totals> sums;
  for (const PageTimeline& timeline : timelines) {
    sums.push_back(totals(timeline));
    table.columns.push_back({title_of(timeline), Align::right});
  }
  for (std::size_t k = 0; k < kBarKinds; ++k) {
    std::size_t tasks = 0;
    for (const Totals& sum : sums) tasks = std::max(tasks, sum[k].tasks);
    if (tasks == 0) continue;
    std::vector<std::string> row = {std::string(name(static_cast<BarKind>(k))),
                                    print_exact(static_cast<std::int64_t>(tasks))};
    for (const Totals& sum : sums) row.push_back(print_seconds(sum[k].seconds));
    table.rows.push_back(std::move(row));
  }
  return table;
}

Section longest_tasks(const PageTimeline& timeline) {
  constexpr std::size_t kRows = 15;
  Section table{
      fmt::format("The longest tasks, {}", title_of(timeline)),
      {{"task"}, {"where"}, {"begins", Align::right}, {"takes", Align::right}, {"bytes", Align::right}}};
  const program::Program& program = *timeline.program;
  for (const std::uint32_t t : drawn_tasks(timeline, kRows)) {
    const program::Unit& unit = program.units[program.tasks[t].unit];
    table.rows.push_back({describe(program, unit), where(program, unit),
                          print_seconds(timeline.timeline.tasks[t].begin), print_seconds(length(timeline, t)),
                          print_bytes(bytes_of(program, program.tasks[t]))});
  }
  return table;
}

std::string facts_html(const StepPage& page) {
  std::string text = "<dl class=\"facts\">\n";
  for (const PageFact& fact : page.facts)
    text +=
        fmt::format("<div><dt>{}</dt><dd>{}</dd><dd class=\"note\">{}</dd></div>\n",
                    escape_attribute(fact.name), escape_attribute(fact.value), escape_attribute(fact.note));
  text += "</dl>\n";
  if (page.remarks.empty()) return text;
  text += "<ul class=\"remarks\">\n";
  for (const std::string& remark : page.remarks)
    text += fmt::format("<li>{}</li>\n", escape_attribute(remark));
  return text + "</ul>\n";
}

std::string legend_html(std::span<const PageTimeline> timelines) {
  std::array<bool, kBarKinds> is_there{};
  bool critical = false;
  for (const PageTimeline& timeline : timelines) {
    critical = critical || !timeline.critical.empty();
    for (std::size_t t = 0; t < task_count(timeline); ++t)
      is_there[static_cast<std::size_t>(kind_of_task(timeline, t))] = true;
    for (const PagePass& pass : timeline.passes) is_there[static_cast<std::size_t>(kind_of(pass))] = true;
  }
  std::string text = "<div class=\"legend\" role=\"group\" aria-label=\"legend: press to highlight\">\n";
  for (std::size_t k = 0; k < kBarKinds; ++k)
    if (is_there[k])
      text += fmt::format(
          "<button type=\"button\" data-kind=\"{0}\" aria-pressed=\"false\"><i "
          "style=\"background:var(--k{0})\">"
          "</i>{1}</button>\n",
          k, name(static_cast<BarKind>(k)));
  if (critical)
    text +=
        "<button type=\"button\" id=\"critical\" aria-pressed=\"false\"><i class=\"critical\"></i>critical "
        "path</button>\n";
  return text + "<span><i class=\"exposed\"></i>exposed: communication only</span></div>\n";
}

std::string timelines_html(std::span<const PageTimeline> timelines) {
  std::string text = "<section id=\"timelines\"><h2>Timelines</h2>\n";
  text += legend_html(timelines);
  text += step_page_tools();
  text +=
      "<noscript><p>The drawing needs JavaScript; the tables below show the same data.</p></noscript>\n"
      "<div id=\"stage\"><div class=\"axis\"><div id=\"overview\" aria-hidden=\"true\"><div></div></div>"
      "<canvas id=\"axis\" aria-hidden=\"true\"></canvas></div>\n";
  for (const PageTimeline& timeline : timelines)
    text += fmt::format(
        "<figure class=\"track\"><figcaption><b class=\"{0}\">{0}</b> {1} <span>{2}</span></figcaption>"
        "<canvas tabindex=\"0\" role=\"application\" aria-roledescription=\"timeline\" aria-label=\"{3}\" "
        "aria-describedby=\"help\"></canvas></figure>\n",
        timeline.measured ? "measured" : "predicted", escape_attribute(name_ranks(timeline.ranks)),
        print_seconds(timeline.timeline.seconds), escape_attribute(in_words(timeline)));
  return text +
         "<div id=\"hair\"></div><div id=\"pointed\"></div><div id=\"picked\"></div></div>\n<div id=\"tip\" "
         "aria-hidden=\"true\"></div>"
         "<p id=\"said\" class=\"unseen\" aria-live=\"polite\"></p></section>\n";
}

struct Shown {
  std::vector<PageTimeline> timelines;
  std::size_t tasks_each = kMostTasks;
  std::string left_out;  // as text
};

Shown shown_of(const std::vector<PageTimeline>& all) {
  Shown shown;
  for (const bool measured : {false, true})
    for (const PageTimeline& timeline : all)
      if (timeline.program != nullptr && timeline.measured == measured &&
          shown.timelines.size() < (measured ? kMostTimelines : kMostPredicted))
        shown.timelines.push_back(timeline);
  if (shown.timelines.empty()) return shown;
  if (shown.timelines.size() < all.size())
    shown.left_out = fmt::format("{} of {} timelines are drawn", shown.timelines.size(), all.size());
  shown.tasks_each = kMostTasks / shown.timelines.size();
  std::size_t most = 0;
  for (const PageTimeline& timeline : shown.timelines) most = std::max(most, task_count(timeline));
  if (most > shown.tasks_each)
    shown.left_out += fmt::format("{}the {} longest of up to {} tasks of a rank are drawn",
                                  shown.left_out.empty() ? "" : "; ",
                                  print_exact(static_cast<std::int64_t>(shown.tasks_each)),
                                  print_exact(static_cast<std::int64_t>(most)));
  return shown;
}

}  // namespace

std::string print_html(const StepPage& page) {
  const Shown shown = shown_of(page.timelines);
  const std::string title = escape_attribute(page.title);
  std::string text = fmt::format(
      "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; "
      "script-src 'unsafe-inline'\">\n<title>{}</title>\n<style>\n{}</style>\n</head>\n<body>\n",
      title, step_page_style());
  text += fmt::format(
      "<header><div><h1>{}</h1><p>{}</p></div>{}</header>\n<main>\n", title, escape_attribute(page.subtitle),
      shown.timelines.empty() ? "" : "<button type=\"button\" id=\"theme\">light or dark</button>");
  text += facts_html(page);
  if (!shown.timelines.empty()) text += timelines_html(shown.timelines);
  if (!shown.left_out.empty()) text += fmt::format("<p class=\"help\">{}</p>\n", shown.left_out);
  for (const Section& table : page.tables) text += table_html(table);
  if (!shown.timelines.empty()) {
    text += table_html(time_by_kind(shown.timelines));
    text += "<details><summary>The timelines as tables</summary>\n";
    for (const PageTimeline& timeline : shown.timelines) text += table_html(longest_tasks(timeline));
    text += "</details>\n";
    text += fmt::format("<script type=\"application/json\" id=\"data\">{}</script>\n",
                        print_data(shown.timelines, shown.tasks_each));
    text += fmt::format("<script>\n{}{}</script>\n", step_page_drawing(), step_page_controls());
  }
  return text + "</main>\n</body>\n</html>\n";
}

}  // namespace weft::explain
