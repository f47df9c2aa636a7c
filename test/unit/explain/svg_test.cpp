// Drawings: text is escaped, curves are where they belong, and programs show ranks over time.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "weft/app/explain/plot.h"
#include "weft/app/explain/program_table.h"
#include "weft/app/explain/space_time.h"
#include "weft/app/explain/step_order.h"
#include "weft/app/explain/svg.h"
#include "weft/app/explain/ticks.h"

namespace weft::explain {
namespace {

using collective::Buffer;
using collective::Kind;
using collective::Op;
using collective::Program;
using collective::Slot;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

std::size_t count(std::string_view text, std::string_view part) {
  std::size_t found = 0;
  for (std::size_t at = text.find(part); at != std::string_view::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

// Whether every element is closed in the right order and no attribute contains a bare < or &.
bool well_formed(std::string_view text) {
  std::vector<std::string> open;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] == '&') {
      const std::string_view rest = text.substr(at);
      if (!rest.starts_with("&amp;") && !rest.starts_with("&lt;") && !rest.starts_with("&gt;") &&
          !rest.starts_with("&quot;"))
        return false;
    }
    if (text[at] != '<') continue;
    const std::size_t end = text.find('>', at);
    if (end == std::string_view::npos) return false;
    const std::string_view tag = text.substr(at + 1, end - at - 1);
    if (count(tag, "\"") % 2 != 0 || tag.find('<') != std::string_view::npos) return false;
    const std::string name(tag.substr(0, tag.find_first_of(" /", 1)));
    if (name[0] == '/') {
      if (open.empty() || "/" + open.back() != name) return false;
      open.pop_back();
    } else if (!tag.ends_with('/')) {
      open.push_back(name);
    }
    at = end;
  }
  return open.empty();
}

TEST(Svg, EscapesTextAndSurvivesAnyNumber) {
  Svg svg(100, 50);
  svg.text(1, 2, "a<b> & \"c\"\x01\xff é", {.anchor = Anchor::end, .bold = true, .upright = true});
  svg.rect(std::nan(""), kInfinity, -5, 1.2345, {.fill = "\"/><script>", .title = "<&>"});
  svg.line({0, 0}, {0, 0}, {.stroke = "#000", .arrow = true});  // too short for an arrowhead
  svg.polyline({}, {.stroke = "#000"});
  const std::string text = std::move(svg).finish();
  EXPECT_TRUE(well_formed(text)) << text;
  EXPECT_NE(text.find("a&lt;b&gt; &amp; &quot;c&quot;\xef\xbf\xbd\xef\xbf\xbd é"), std::string::npos) << text;
  EXPECT_NE(text.find("<rect x=\"0\" y=\"0\" width=\"0\" height=\"1.23\""), std::string::npos) << text;
  EXPECT_EQ(text.find("<script"), std::string::npos);
  EXPECT_EQ(text.find("nan"), std::string::npos);
  EXPECT_EQ(count(text, "<polygon"), 0u);
}

TEST(Ticks, AreRound) {
  EXPECT_EQ(round_ticks(118, 6), (std::vector<double>{0, 20, 40, 60, 80, 100}));
  EXPECT_EQ(round_ticks(1, 1), (std::vector<double>{0, 1}));
  EXPECT_LE(round_ticks(1e-300, 6).size(), 25u);
}

PlotCurve curve(std::string name, std::size_t color, bool measured = false) {
  PlotCurve out{.name = std::move(name), .points = {}, .measured = measured, .color = color};
  for (std::int64_t bytes = 128; bytes <= 1 << 20; bytes *= 2)
    out.points.push_back({bytes, 1e-5 * static_cast<double>(color + 1) + static_cast<double>(bytes) * 1e-11});
  return out;
}

TEST(Plot, DrawsCurvesLegendAndWinners) {
  const std::vector<PlotCurve> curves = {curve("ring & co", 0), curve("tree", 1),
                                         curve("tree, measured", 1, true)};
  const std::vector<PlotRange> winners = {{128, 65535, "ring & co", 0}, {65536, 1 << 20, "tree", 1}};
  for (const PlotMeasure measure : {PlotMeasure::time, PlotMeasure::bus_bandwidth}) {
    const auto text =
        plot(curves, winners, {.title = "times", .measure = measure, .kind = Kind::all_reduce, .ranks = 8});
    ASSERT_TRUE(text.ok());
    EXPECT_TRUE(well_formed(*text)) << *text;
    EXPECT_EQ(count(*text, "<circle"), 14u + 1u);                   // dots, and one in the legend
    EXPECT_EQ(count(*text, ">ring &amp; co</text>"), 2u) << *text;  // legend and winner
    EXPECT_EQ(count(*text, ">ring &amp; co: 128 B to 64 KiB</title>"), 1u) << *text;
    EXPECT_EQ(count(*text, ">128 B</text>"), 1u);
    EXPECT_EQ(count(*text, measure == PlotMeasure::time ? ">10 us</text>" : "bus bandwidth, GB/s"), 1u)
        << *text;
  }
}

TEST(Plot, OmitsInvalidPoints) {
  const std::vector<PlotCurve> odd = {
      {.name = "odd", .points = {{0, 1}, {-4, 1}, {8, 0}, {8, -1}, {8, std::nan("")}, {8, kInfinity}}}};
  const auto none = plot(odd, {}, {});
  ASSERT_FALSE(none.ok());
  EXPECT_EQ(none.error().message, "expected at least one measured or predicted time to plot, found none");
  for (const double seconds : {1e-280, 1e-6, 1e300}) {
    const std::vector<PlotCurve> one = {{.name = "one", .points = {{INT64_MAX, seconds}}}};
    for (const PlotMeasure measure : {PlotMeasure::time, PlotMeasure::bus_bandwidth}) {
      const auto text = plot(one, {}, {.title = "", .measure = measure});
      ASSERT_TRUE(text.ok());
      EXPECT_TRUE(well_formed(*text));
      EXPECT_LT(text->size(), 100'000u);
    }
  }
}

collective::Step step(Op op, std::int32_t chunks = 1) {
  collective::Step out;
  out.op = op;
  out.count = chunks;
  return out;
}

collective::Threadblock block(std::int32_t send_to, std::int32_t receive_from,
                              std::vector<collective::Step> steps) {
  return {.send_to = send_to, .receive_from = receive_from, .channel = 0, .steps = std::move(steps)};
}

// A ring all-reduce with one chunk per rank.
Program ring(std::int32_t ranks) {
  Program program;
  program.name = "ring";
  program.collective.kind = Kind::all_reduce;
  program.collective.ranks = program.collective.chunks = ranks;
  program.placement = collective::Placement::in_place;
  for (std::int32_t rank = 0; rank < ranks; ++rank) {
    collective::Threadblock own = block((rank + 1) % ranks, (rank + ranks - 1) % ranks, {});
    const auto add = [&](Op op, std::int32_t chunk) {
      const Slot slot{Buffer::input, ((chunk % ranks) + ranks) % ranks};
      own.steps.push_back(step(op));
      own.steps.back().source = own.steps.back().target = slot;
    };
    add(Op::send, rank);
    for (std::int32_t k = 1; k < ranks - 1; ++k) add(Op::receive_reduce_send, rank - k);
    add(Op::receive_reduce_copy_send, rank + 1);
    for (std::int32_t k = 0; k < ranks - 2; ++k) add(Op::receive_copy_send, rank - k);
    add(Op::receive, rank + 2);
    program.ranks.emplace_back().blocks.push_back(own);
    program.ranks.back().input_chunks = ranks;
  }
  return program;
}

TEST(StepOrder, FollowsBlocksWaitsAndMessages) {
  const StepOrder order = order_steps(ring(3));
  ASSERT_EQ(order.steps.size(), 15u);
  EXPECT_EQ(order.messages.size(), 12u);
  for (std::size_t id = 0; id < order.steps.size(); ++id) EXPECT_EQ(order.depths[id], order.steps[id].step);

  Program waits;
  waits.ranks.resize(1);
  waits.ranks[0].blocks = {block(-1, -1, {step(Op::copy)}), block(-1, -1, {step(Op::nop), step(Op::copy)})};
  waits.ranks[0].blocks[1].steps[0].wait_block = 0;
  waits.ranks[0].blocks[1].steps[0].wait_step = 0;
  EXPECT_EQ(order_steps(waits).depths, (std::vector<std::int32_t>{0, 1, 2}));
  waits.ranks[0].blocks[0].steps[0].wait_block = 1;  // each waits for the other
  waits.ranks[0].blocks[0].steps[0].wait_step = 1;
  EXPECT_EQ(order_steps(waits).depths, (std::vector<std::int32_t>{-1, -1, -1}));
}

TEST(StepOrder, SplitsASendAmongReceives) {
  Program program;
  program.ranks.resize(2);
  program.ranks[0].blocks = {block(1, -1, {step(Op::send, 3), step(Op::send)})};
  program.ranks[1].blocks = {block(-1, 0, {step(Op::receive), step(Op::receive, 3), step(Op::receive)})};
  const StepOrder order = order_steps(program);
  ASSERT_EQ(order.messages.size(), 3u);
  EXPECT_EQ(order.messages[0].chunks, 1);
  EXPECT_EQ(order.messages[1].chunks, 2);
  EXPECT_EQ(order.messages[1].receiver, 3);
  EXPECT_EQ(order.messages[2].sender, 1);
  EXPECT_EQ(order.depths, (std::vector<std::int32_t>{0, 1, 1, 2, -1}));  // no rank sends for the last one
}

TEST(SpaceTime, DrawsABoxPerStepAndAnArrowPerMessage) {
  const auto text = draw_space_time(ring(4));
  ASSERT_TRUE(text.ok());
  EXPECT_TRUE(well_formed(*text)) << *text;
  EXPECT_EQ(count(*text, "<title>gpu "), 28u);
  EXPECT_EQ(count(*text, "<polygon"), 24u);
  EXPECT_EQ(count(*text, ">rrs receive_reduce_send</text>"), 1u);
  EXPECT_EQ(count(*text, ">rank 3</text>"), 1u);
  EXPECT_EQ(count(*text, "can never run"), 0u);
  EXPECT_EQ(count(*text, "not shown"), 0u);
}

TEST(SpaceTime, MarksStepsThatCanNeverRun) {
  Program program = ring(4);
  program.name = "<ring>";
  program.ranks[2].blocks[0].steps.erase(program.ranks[2].blocks[0].steps.begin());
  const auto text = draw_space_time(program);
  ASSERT_TRUE(text.ok());
  EXPECT_TRUE(well_formed(*text));
  EXPECT_EQ(count(*text, ">can never run</text>"), 1u);
}

TEST(SpaceTime, PlacesBoxesByTheTimeline) {
  const Program program = ring(3);
  std::vector<StepTime> timeline;
  for (const PlacedStep& each : order_steps(program).steps)
    timeline.push_back({2e-6 * each.step, 2e-6 * each.step + 1e-6});
  const auto text = draw_space_time(program, {.timeline = timeline});
  ASSERT_TRUE(text.ok());
  EXPECT_TRUE(well_formed(*text));
  EXPECT_EQ(count(*text, "step 4: receive i2, 8 us to 9 us</title>"), 1u) << *text;
  EXPECT_EQ(count(*text, ">2 us</text>"), 1u);
  timeline[0].end = -1;
  EXPECT_FALSE(draw_space_time(program, {.timeline = timeline}).ok());
  timeline.pop_back();
  const auto shorter = draw_space_time(program, {.timeline = timeline});
  ASSERT_FALSE(shorter.ok());
  EXPECT_EQ(shorter.error().message, "expected a timeline of 15 steps, found 14");
}

TEST(SpaceTime, ReportsOmittedRanks) {
  const auto text = draw_space_time(ring(6), {.most_ranks = 2});
  ASSERT_TRUE(text.ok());
  EXPECT_EQ(count(*text, "<title>gpu "), 22u);
  EXPECT_EQ(count(*text, ">ranks 2 to 5 are not shown</text>"), 1u);
  const auto many = draw_space_time(ring(6), {.most_steps = 65});
  ASSERT_FALSE(many.ok());
  EXPECT_EQ(many.error().message, "expected at most 65 steps to draw, found 66");
  EXPECT_TRUE(draw_space_time(Program{}).ok());  // an empty program gives an empty drawing
}

TEST(ProgramTable, DescribesEveryStep) {
  Program program = ring(2);
  program.ranks[0].blocks[0].steps[1].publishes = true;
  program.ranks[0].blocks[0].steps[1].count = 2;
  collective::Step copy = step(Op::copy);
  copy.target = {Buffer::scratch, 7};
  copy.wait_block = 0;
  copy.wait_step = 1;
  program.ranks[0].blocks.push_back(block(-1, -1, {copy}));
  EXPECT_EQ(
      program_table(program, {.rank = 0, .width = 120}),
      "rank  block  step  op                        source       target       to  from  channel  after\n"
      "   0      0     0  send                      input[0]                   1              0\n"
      "                1  receive_reduce_copy_send  input[1..2]  input[1..2]   1     1                  "
      "publish\n"
      "                2  receive                                input[0]            1\n"
      "          1     0  copy                      input[0]     scratch[7]                   0  0.1\n");
  EXPECT_NE(program_table(program, {.most_rows = 2}).find("\n5 more steps\n"), std::string::npos);
}

TEST(ProgramTable, PrintsASummary) {
  EXPECT_EQ(program_summary(ring(4)),
            "ring\n"
            "  all_reduce, 4 ranks, in place, Simple, 1 channel\n"
            "  4 threadblocks, at most 1 per rank; 28 steps, at most 7 per block\n"
            "  24 messages of 24 chunks; the busiest rank sends 6 chunks, 1.5x of the 4 that a call has\n");
  EXPECT_TRUE(program_summary(Program{}).starts_with("unnamed program\n"));
}

}  // namespace
}  // namespace weft::explain
