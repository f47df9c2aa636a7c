// The page of a step: its data, what is omitted from large ones, text that is escaped, and a script
// that finds its elements. Also the trace of the same timelines, in the format of viewers.
#include "weft/app/explain/step_page.h"

#include <cmath>
#include <limits>
#include <map>
#include <regex>
#include <set>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "mesh_case.h"
#include "temporary_folder.h"
#include "weft/app/explain/report.h"
#include "weft/app/explain/step_page_data.h"
#include "weft/app/explain/step_page_parts.h"
#include "weft/app/session/step_page.h"
#include "weft/app/session/trace.h"
#include "weft/base/file.h"
#include "weft/program/tasks/stream.h"

namespace weft::explain {
namespace {

using Json = nlohmann::json;

// Data parallel: two products, each reduced over the ranks.
constexpr std::string_view kTwoSums = R"(plan p
%0 = input {name=x, type=f32[b=8,d=4], layout="sliced(b) on gpu"}
%1 = input {name=y, type=f32[b=8,f=4], layout="sliced(b) on gpu"}
%2 = contract %0, %1 {to=[d,f]} @first
%3 = all-reduce %2 {axis=gpu} @first
%4 = contract %1, %0 {to=[f,d]} @second
%5 = all-reduce %4 {axis=gpu} @second
return p=%3, q=%5
)";

// One millisecond per computing task, two per collective.
sim::Prediction prediction() {
  const plan::Graph graph = ops::read_plan(kTwoSums);
  const plan::Mesh mesh = plan::read_mesh("gpu=2").value();
  const sim::StepCosts costs{[](const program::Program&, const program::Task&) {
                               return sim::TaskCost{1e-3, sim::Source::datasheet};
                             },
                             [](const program::Exchange&, std::size_t, std::int64_t) {
                               return sim::ExchangeCost{0, 2e-3, "ring", sim::Source::datasheet};
                             }};
  return sim::predict(graph, mesh, spmd::infer_layouts(graph, mesh).value(), costs).value();
}

PageTimeline predicted_timeline(const sim::Prediction& prediction) {
  const sim::RankClass& ranks = prediction.classes.front();
  PageTimeline timeline{
      .ranks = ranks.ranks, .program = ranks.program, .timeline = ranks.timeline, .memory = ranks.memory};
  for (const sim::CriticalTask& task : prediction.critical) timeline.critical.push_back(task.task);
  return timeline;
}

PageTimeline measured_timeline(const sim::Prediction& prediction, std::int32_t rank) {
  PageTimeline timeline = predicted_timeline(prediction);
  timeline.ranks = {rank};
  timeline.measured = true;
  timeline.critical.clear();
  for (program::TaskTime& task : timeline.timeline.tasks) task.begin *= 2, task.end *= 2;
  timeline.timeline.seconds *= 2;
  return timeline;
}

// A single exchange along an axis of that name.
PageTimeline one_exchange(std::string axis) {
  auto program = std::make_shared<program::Program>();
  program->graph = std::make_shared<const plan::Graph>(ops::read_plan(kTwoSums));
  program::Exchange exchange;
  exchange.axis = std::move(axis);
  exchange.counts = {1, 1};
  program::Unit unit;
  unit.kernel = exchange;
  program->units.push_back(unit);
  program->tasks.push_back({.unit = 0, .begin = 0, .end = 1});
  program::assign_streams(*program);
  return {.ranks = {0}, .program = program, .timeline = {{{0, 1e-6, 0}}, 1e-6}};
}

std::string between(const std::string& text, std::string_view open, std::string_view close) {
  const std::size_t begin = text.find(open) + open.size();
  return text.substr(begin, text.find(close, begin) - begin);
}

Json data_of(const std::string& page) { return Json::parse(between(page, "id=\"data\">", "</script>")); }

std::size_t count(std::string_view text, std::string_view part) {
  std::size_t found = 0;
  for (std::size_t at = text.find(part); at != std::string_view::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

TEST(StepPage, DataHasAColumnPerPropertyAndARowPerTask) {
  const sim::Prediction predicted = prediction();
  const std::vector<PageTimeline> timelines = {predicted_timeline(predicted),
                                               measured_timeline(predicted, 1)};
  const Json data = Json::parse(print_data(timelines, 1000));
  ASSERT_EQ(data["timelines"].size(), 2u);
  const Json& first = data["timelines"][0];
  const std::size_t tasks = timelines[0].program->tasks.size();
  for (const char* column : {"unit", "begin", "length", "lane", "bytes"})
    EXPECT_EQ(first[column].size(), tasks) << column;
  for (const char* column : {"name", "where", "kind", "result"})
    EXPECT_EQ(first["units"][column].size(), timelines[0].program->units.size()) << column;
  EXPECT_EQ(first["name"], "ranks 0-1");
  EXPECT_EQ(first["lanes"], Json({"compute", "gpu"}));
  EXPECT_EQ(first["computing"], 1);
  EXPECT_FALSE(first["critical"].empty());
  EXPECT_FALSE(first["memory"]["when"].empty());
  EXPECT_EQ(first["beside"], -1);
  EXPECT_EQ(data["timelines"][1]["beside"], 0);

  for (std::size_t t = 0; t < tasks; ++t) {
    const std::size_t unit = first["unit"][t];
    const bool moves = first["lane"][t] == 1;
    EXPECT_EQ(moves, first["units"]["kind"][unit] == static_cast<int>(BarKind::all_reduce));
    if (moves) {
      EXPECT_EQ(first["length"][t], 2'000'000);
      EXPECT_EQ(first["bytes"][t], 64);
      const std::string where = data["strings"][first["units"]["where"][unit].get<std::size_t>()];
      EXPECT_TRUE(where == "first" || where == "second") << where;
    }
  }
}

TEST(StepPage, LoadsNothingExternal) {
  const sim::Prediction predicted = prediction();
  const std::string page = print_html({.title = "t", .timelines = {predicted_timeline(predicted)}});
  EXPECT_EQ(count(page, "http:"), 0u);
  EXPECT_EQ(count(page, "https:"), 0u);
  EXPECT_EQ(count(page, " src="), 0u);
  EXPECT_EQ(count(page, "url("), 0u);
  EXPECT_EQ(count(page, "@import"), 0u);
  EXPECT_NE(page.find("default-src 'none'"), std::string::npos);
}

TEST(StepPage, EscapesText) {
  constexpr std::string_view kEvil = "</script></title><script>alert(1)</script>\"'&";
  StepPage page{.title = std::string(kEvil), .subtitle = std::string(kEvil)};
  page.facts = {{std::string(kEvil), std::string(kEvil), std::string(kEvil)}};
  page.remarks = {std::string(kEvil)};
  page.tables = {{std::string(kEvil), {{std::string(kEvil)}}, {{std::string(kEvil)}}}};
  page.timelines = {one_exchange(std::string(kEvil) + "\xff")};
  const std::string html = print_html(page);
  EXPECT_EQ(count(html, "<script>alert"), 0u);
  EXPECT_EQ(count(html, "<script"), 2u);
  EXPECT_EQ(count(html, "</script>"), 2u);
  EXPECT_EQ(data_of(html)["timelines"][0]["lanes"][0].get<std::string>().substr(0, kEvil.size()), kEvil);
}

TEST(StepPage, ClosesEveryTag) {
  const sim::Prediction predicted = prediction();
  StepPage page{.title = "t", .timelines = {predicted_timeline(predicted), measured_timeline(predicted, 0)}};
  page.facts = {{"a", "b", "c"}};
  page.remarks = {"r"};
  page.tables = {{"table", {{"c"}, {"d", Align::right}}, {{"1", "2"}, {"3"}}, 0}};
  std::string html = std::regex_replace(print_html(page), std::regex("<(script|style)[^>]*>"), "<$1>");
  for (const std::string_view raw : {"script", "style"})
    for (std::size_t at = 0; (at = html.find(fmt::format("<{}>", raw), at)) != std::string::npos; ++at) {
      const std::size_t begin = at + raw.size() + 2;
      html.erase(begin, html.find(fmt::format("</{}>", raw), begin) - begin);
    }
  const std::set<std::string> alone = {"meta", "input"};
  std::vector<std::string> open;
  const std::regex tag("<(/?)([a-z0-9]+)[^>]*>");
  for (std::sregex_iterator i(html.begin(), html.end(), tag), end; i != end; ++i) {
    const std::string name = (*i)[2];
    if (alone.contains(name)) continue;
    if ((*i)[1].length() == 0) {
      open.push_back(name);
      continue;
    }
    ASSERT_FALSE(open.empty()) << name;
    ASSERT_EQ(open.back(), name) << html.substr(static_cast<std::size_t>(i->position()), 80);
    open.pop_back();
  }
  EXPECT_TRUE(open.empty()) << open.back();
}

TEST(StepPage, TheScriptFindsItsElements) {
  const sim::Prediction predicted = prediction();
  const std::string html = print_html({.title = "t", .timelines = {predicted_timeline(predicted)}});
  const std::string script = std::string(step_page_drawing()) + std::string(step_page_controls());
  const std::regex wanted("(?:byId|getElementById|frame)\\(\"([a-z]+)\"");
  std::size_t found = 0;
  for (std::sregex_iterator i(script.begin(), script.end(), wanted), end; i != end; ++i, ++found)
    EXPECT_EQ(count(html, fmt::format("id=\"{}\"", (*i)[1].str())), 1u) << (*i)[1];
  EXPECT_GT(found, 10u);
  for (std::size_t kind = 0; kind < kBarKinds; ++kind)
    EXPECT_EQ(count(step_page_style(), fmt::format("--k{}:", kind)), 2u) << "light and dark: " << kind;
}

TEST(StepPage, DescribesTheDrawingInText) {
  const sim::Prediction predicted = prediction();
  const std::string html = print_html(
      {.title = "t", .timelines = {predicted_timeline(predicted), measured_timeline(predicted, 1)}});
  EXPECT_NE(html.find("aria-label=\"predicted: ranks 0-1, "), std::string::npos);
  EXPECT_NE(html.find("all-reduce 4 ms"), std::string::npos);
  EXPECT_NE(html.find("all-reduce 8 ms"), std::string::npos);
  EXPECT_NE(html.find("The longest tasks, measured: rank 1"), std::string::npos);
  EXPECT_NE(html.find("<noscript>"), std::string::npos);
  EXPECT_NE(html.find(">all-reduce</button>"), std::string::npos);
  EXPECT_EQ(html.find(">all-to-all</button>"), std::string::npos) << "the legend has only existing kinds";
}

TEST(StepPage, HasNoScriptWithoutTimelines) {
  const std::string html = print_html({.title = "t"});
  EXPECT_EQ(count(html, "<script"), 0u);
  EXPECT_EQ(count(html, "<button"), 0u);
  EXPECT_NE(html.find("<h1>t</h1>"), std::string::npos);
}

TEST(StepPage, DrawsTheLongestOfManyTasks) {
  PageTimeline timeline = predicted_timeline(prediction());
  ASSERT_GE(timeline.timeline.tasks.size(), 4u);
  timeline.timeline.tasks[1].end = timeline.timeline.tasks[1].begin + 1;
  timeline.timeline.tasks[3].end = timeline.timeline.tasks[3].begin + 2;
  EXPECT_EQ(drawn_tasks(timeline, 2), (std::vector<std::uint32_t>{1, 3}));
  EXPECT_EQ(drawn_tasks(timeline, 1), (std::vector<std::uint32_t>{3}));
  EXPECT_EQ(drawn_tasks(timeline, 1000).size(), timeline.timeline.tasks.size());
}

TEST(StepPage, DrawsTheFirstOfManyRanksAndSaysSo) {
  const sim::Prediction predicted = prediction();
  StepPage page{.title = "t", .timelines = {predicted_timeline(predicted)}};
  for (std::int32_t rank = 0; rank < 40; ++rank) page.timelines.push_back(measured_timeline(predicted, rank));
  const std::string html = print_html(page);
  EXPECT_EQ(data_of(html)["timelines"].size(), 16u);
  EXPECT_NE(html.find("16 of 41 timelines are drawn"), std::string::npos);
}

TEST(StepPage, ToleratesOddTimesAndShortTimelines) {
  PageTimeline timeline = predicted_timeline(prediction());
  timeline.timeline.tasks.resize(2);
  timeline.timeline.tasks[0] = {std::nan(""), std::numeric_limits<double>::infinity(), 0};
  timeline.timeline.tasks[1] = {5, 1, 7};
  timeline.critical = {0, 4'000'000'000u};
  timeline.memory = {{std::nan(""), std::numeric_limits<double>::infinity()}};
  const Json data = data_of(print_html({.title = "t", .timelines = {timeline, {}}}));
  ASSERT_EQ(data["timelines"].size(), 1u) << "timelines without a program are omitted";
  EXPECT_EQ(data["timelines"][0]["begin"], Json({0, 5'000'000'000}));
  EXPECT_EQ(data["timelines"][0]["length"], Json({0, 0}));
  EXPECT_EQ(data["timelines"][0]["memory"]["bytes"], Json({0.0}));
}

TEST(StepPage, NamesRanks) {
  EXPECT_EQ(name_ranks({}), "no rank");
  EXPECT_EQ(name_ranks(std::vector<std::int32_t>{2}), "rank 2");
  EXPECT_EQ(name_ranks(std::vector<std::int32_t>{0, 1, 2, 3, 4, 5}), "ranks 0-5");
  EXPECT_EQ(name_ranks(std::vector<std::int32_t>{0, 8}), "ranks 0, 8");
  EXPECT_EQ(name_ranks(std::vector<std::int32_t>{0, 8, 16, 24, 32, 40}), "ranks 0, 8, 16, 24 and 2 more");
}

TEST(StepPage, HasTheLinesSectionsAndTimelinesOfAReport) {
  search::DistributionChoice choice;
  choice.distribution = distribute::read_distribution("gpu=2: slice b, shard optimizer").value();
  choice.chosen.prediction = prediction();
  choice.alternatives.emplace_back().name = "data parallel";
  choice.alternatives.back().why_not = "2x slower";
  choice.alternatives.back().distribution = distribute::read_distribution("gpu=2: slice b").value();
  Report report;
  report.task = "TRAIN";
  report.model = "mlp";
  report.cluster.name = "pair";
  report.cluster.axes = {{"gpu", 2, {}}};
  report.sizes = {{"b", 8}};
  report.roles.batch = {"b"};
  report.choice = &choice;
  report.prediction = &choice.chosen.prediction;
  report.measured.emplace().times.step_seconds = 2 * choice.chosen.prediction.seconds;
  report.measured->times.steps = 5;
  report.measured->ranks = "2 threads";
  const StepPage page = step_page(report);
  EXPECT_EQ(page.title, "TRAIN mlp ON pair");
  EXPECT_EQ(page.subtitle, "b = 8");
  ASSERT_GE(page.facts.size(), 2u);
  EXPECT_EQ(page.facts[0].name, "Plan");
  EXPECT_EQ(page.facts[0].value, "DP 2 (ZeRO-1)");
  EXPECT_TRUE(page.facts[1].note.find("predicted (2x as long)") != std::string::npos) << page.facts[1].note;
  ASSERT_GE(page.tables.size(), 3u);
  EXPECT_EQ(page.tables[0].option, "MESH");
  ASSERT_EQ(page.tables[0].rows.size(), 1u);
  EXPECT_EQ(page.tables[0].rows[0][0], "gpu");
  EXPECT_EQ(page.tables[0].rows[0][4], "optimizer");
  EXPECT_EQ(page.tables[1].option, "COLLECTIVES");
  const Section& plans = page.tables.back();
  ASSERT_EQ(plans.rows.size(), 2u);
  EXPECT_EQ(plans.marked, 0u);
  EXPECT_EQ(plans.below[1].back(), "2x slower");
  EXPECT_NE(print_html(page).find("2x slower"), std::string::npos);
  ASSERT_EQ(page.timelines.size(), 1u);
  EXPECT_EQ(page.timelines[0].critical.size(), choice.chosen.prediction.critical.size());
}

TEST(StepPage, IncludesMeasurements) {
  const sim::Prediction predicted = prediction();
  StepPage page{.title = "t", .timelines = {predicted_timeline(predicted)}};
  session::DistributedMeasurement measured;
  for (std::int32_t rank = 0; rank < 2; ++rank) {
    PageTimeline timeline = measured_timeline(predicted, rank);
    measured.ranks.push_back({timeline.program, timeline.timeline});
  }
  session::add_measured(page, measured);
  ASSERT_EQ(page.timelines.size(), 3u);
  EXPECT_TRUE(page.timelines[2].measured);
  EXPECT_EQ(page.timelines[2].ranks, std::vector<std::int32_t>{1});
  EXPECT_FALSE(page.timelines[2].memory.empty());
  const TemporaryFolder folder;
  const std::string path = folder / "step.html";
  ASSERT_TRUE(session::write_step_page(path, page).ok());
  EXPECT_EQ(read_file(path, 1 << 24).value(), print_html(page));
  EXPECT_FALSE(session::write_step_page(folder / "no/such/folder.html", page).ok());
}

// What Perfetto and chrome://tracing require of an event.
TEST(StepTrace, HasTheFormatOfViewers) {
  const sim::Prediction predicted = prediction();
  formats::Trace trace = session::trace_of(predicted);
  const PageTimeline measured = measured_timeline(predicted, 1);
  session::add_rank(trace, *measured.program, measured.timeline, 7, "measured: rank \"1\"");
  const Json json = Json::parse(print_trace_json(trace));
  ASSERT_TRUE(json["traceEvents"].is_array());
  std::set<int> processes;
  std::set<std::pair<int, int>> threads;
  std::map<std::pair<int, int>, double> ends;
  std::size_t bars = 0;
  for (const Json& event : json["traceEvents"]) {
    ASSERT_TRUE(event["ph"].is_string());
    ASSERT_TRUE(event["pid"].is_number_integer());
    ASSERT_TRUE(event["name"].is_string());
    const int process = event["pid"];
    if (event["ph"] == "M") {
      ASSERT_TRUE(event["args"]["name"].is_string());
      if (event["name"] == "process_name")
        EXPECT_TRUE(processes.insert(process).second) << "named twice: " << process;
      else
        EXPECT_TRUE(threads.insert({process, event["tid"].get<int>()}).second);
      continue;
    }
    ASSERT_EQ(event["ph"], "X");
    ++bars;
    ASSERT_TRUE(event["tid"].is_number_integer());
    ASSERT_TRUE(event["ts"].is_number());
    ASSERT_TRUE(event["dur"].is_number());
    const std::pair<int, int> thread = {process, event["tid"]};
    EXPECT_TRUE(processes.contains(process)) << "a name comes first";
    EXPECT_TRUE(threads.contains(thread));
    // Bars of one thread may nest but must not overlap; those of a stream follow each other.
    constexpr double kRounding = 1e-6;
    EXPECT_GE(event["dur"].get<double>(), 0);
    EXPECT_GE(event["ts"].get<double>(), ends[thread] - kRounding);
    ends[thread] = event["ts"].get<double>() + event["dur"].get<double>();
  }
  EXPECT_EQ(bars, 2 * measured.program->tasks.size());
  EXPECT_EQ(processes, (std::set<int>{0, 7}));
  double last = 0;
  for (const auto& [thread, end] : ends)
    if (thread.first == 0) last = std::max(last, end);
  EXPECT_NEAR(last, predicted.seconds * 1e6, 1e-3) << "microseconds";
}

}  // namespace
}  // namespace weft::explain
