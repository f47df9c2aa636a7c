// The simulator of a step: streams and waits, collectives that wait for all ranks, shared links,
// classes of equal ranks, memory and the critical path. Costs are invented, so that every time can
// be computed by hand.
#include "weft/predict/sim/step/predict.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include <gtest/gtest.h>

#include "mesh_case.h"
#include "weft/base/hash.h"
#include "weft/plan/cluster/cluster.h"
#include "weft/plan/spmd/localize.h"
#include "weft/predict/sim/link_sharing.h"
#include "weft/predict/sim/step/program_tasks.h"
#include "weft/predict/sim/step/rank_classes.h"
#include "weft/program/tasks/stream.h"

namespace weft::sim {
namespace {

using program::Program;

// One second per computing task; a collective takes `latency` and then `transfer`.
StepCosts even_costs(double latency, double transfer) {
  return {[](const Program&, const program::Task&) {
            return TaskCost{1, Source::datasheet};
          },
          [=](const program::Exchange&, std::size_t, std::int64_t) {
            return ExchangeCost{latency, transfer, "ring", Source::datasheet};
          },
          {}};
}

// Costs that depend on the kind and size of a unit, as real ones do, and are otherwise arbitrary.
StepCosts arbitrary_costs(std::uint64_t seed) {
  const auto draw = [seed](std::uint64_t a, std::uint64_t b) {
    return 1e-3 * static_cast<double>(1 + mix(seed ^ mix(a) ^ mix(b + 7)) % 997);
  };
  return {[=](const Program& program, const program::Task& task) {
            std::uint64_t elements = 0;
            for (const program::Place& place : program.units[task.unit].writes)
              elements += static_cast<std::uint64_t>(place.elements());
            return TaskCost{draw(task.unit, elements), Source::datasheet};
          },
          [=](const program::Exchange& exchange, std::size_t axis, std::int64_t bytes) {
            return ExchangeCost{draw(axis, 1), draw(exchange.node.value, static_cast<std::uint64_t>(bytes)),
                                "ring", Source::datasheet};
          },
          {0, 0, 1}};
}

struct Case {
  plan::Graph graph;
  plan::Mesh mesh;
  std::vector<plan::Layout> layouts;

  Case(std::string_view mesh_text, std::string_view plan_text)
      : graph(ops::read_plan(plan_text)),
        mesh(plan::read_mesh(mesh_text).value()),
        layouts(spmd::infer_layouts(graph, mesh).value()) {}

  Prediction predicted(const StepCosts& costs, const PredictOptions& options = {}) const {
    auto prediction = predict(graph, mesh, layouts, costs, options);
    if (!prediction.ok()) throw std::runtime_error(prediction.error().message);
    return std::move(prediction).value();
  }
};

// compute, collective, compute, collective: each collective waits for the task just before it.
std::shared_ptr<const Program> two_sums_by_hand() {
  Program program;
  program.graph = std::make_shared<const plan::Graph>();
  program.units.resize(4);
  for (std::uint32_t u = 0; u < 4; ++u) {
    program.units[u].kernel = program::Copy();
    program.tasks.push_back({.unit = u, .begin = 0, .end = 1});
  }
  for (const std::uint32_t u : {1, 3}) {
    program::Exchange exchange;
    exchange.axis = "gpu";
    exchange.counts = {16};
    program.units[u].kernel = exchange;
    program.tasks[u].waits = {u - 1};
  }
  program::assign_streams(program);
  return std::make_shared<const Program>(std::move(program));
}

TEST(PredictTest, ACollectiveOverlapsIndependentWork) {
  const plan::Mesh mesh = plan::read_mesh("gpu=4").value();
  const std::vector<std::shared_ptr<const Program>> programs = {two_sums_by_hand()};
  const Prediction prediction = predict(mesh, programs, Numbering(4, 0), even_costs(1, 2)).value();
  // [0][2]
  //    [==1==][==3==]
  EXPECT_DOUBLE_EQ(prediction.compute_seconds, 2);
  EXPECT_DOUBLE_EQ(prediction.communication_seconds, 6);
  EXPECT_DOUBLE_EQ(prediction.seconds, 7);
  EXPECT_DOUBLE_EQ(prediction.exposed_communication_seconds, 5);
  ASSERT_EQ(prediction.classes.size(), 1u);
  EXPECT_EQ(prediction.classes[0].ranks, (std::vector<std::int32_t>{0, 1, 2, 3}));
  EXPECT_EQ(prediction.bound, "communication on gpu: 86 % of the step");
  EXPECT_EQ(prediction.events, 4);
}

// The program's streams determine which exchanges are in flight together.
TEST(PredictTest, UsesTheStreamsOfTheProgram) {
  Program program = *two_sums_by_hand();
  std::get<program::Exchange>(program.units[3].kernel).axis = "node";
  const plan::Mesh mesh = plan::read_mesh("node=2, gpu=2").value();
  const auto seconds = [&] {
    const std::vector<std::shared_ptr<const Program>> programs = {std::make_shared<const Program>(program)};
    return predict(mesh, programs, Numbering(4, 0), even_costs(1, 2)).value().seconds;
  };
  program::assign_streams(program);
  EXPECT_EQ(program.streams, (std::vector<std::string>{"compute", "gpu", "node"}));
  // [0][2]
  //    [==1==]
  //       [==3==]
  EXPECT_DOUBLE_EQ(seconds(), 5);
  program.units[3].stream = program.units[1].stream;
  // [0][2]
  //    [==1==][==3==]
  EXPECT_DOUBLE_EQ(seconds(), 7);
}

TEST(PredictTest, WithoutOverlapEverythingIsSequential) {
  const Prediction prediction = Case("gpu=4", ops::kTwoSums).predicted(even_costs(1, 2), {.overlap = false});
  EXPECT_DOUBLE_EQ(prediction.seconds, 8);
  EXPECT_DOUBLE_EQ(prediction.exposed_communication_seconds, 6);
}

// Four computing tasks, with a collective among them that depends only on the first.
std::shared_ptr<const Program> sum_in_the_midst() {
  Program program;
  program.graph = std::make_shared<const plan::Graph>();
  program.units.resize(5);
  for (std::uint32_t u = 0; u < 5; ++u) {
    program.units[u].kernel = program::Copy();
    program.tasks.push_back({.unit = u, .begin = 0, .end = 1});
  }
  program::Exchange exchange;
  exchange.axis = "gpu";
  exchange.counts = {16};
  program.units[2].kernel = exchange;
  program.tasks[2].waits = {0};
  program::assign_streams(program);
  return std::make_shared<const Program>(std::move(program));
}

TEST(PredictTest, WorkersShareReadyTasksAndCollectivesKeepTheirOrder) {
  const plan::Mesh mesh = plan::read_mesh("gpu=2").value();
  const std::vector<std::shared_ptr<const Program>> programs = {sum_in_the_midst()};
  const auto seconds = [&](bool overlap, int workers, bool quick) {
    return predict(mesh, programs, Numbering(2, 0), even_costs(1, 2),
                   {.overlap = overlap, .workers = workers, .quick = quick})
        .value()
        .seconds;
  };
  for (const bool quick : {false, true}) {
    EXPECT_DOUBLE_EQ(seconds(true, 1, quick), 4);   // [0][1][3][4]     beside [0] [==2==]
    EXPECT_DOUBLE_EQ(seconds(true, 2, quick), 4);   // [0][3] [1][4]    the collective ends last
    EXPECT_DOUBLE_EQ(seconds(false, 1, quick), 7);  // one after the other
    EXPECT_DOUBLE_EQ(seconds(false, 2, quick),
                     5);  // [0] [==2==] [3]  two at a time, and the collective alone
  }                       // [1]         [4]
}

TEST(PredictTest, ListsTheCollectivesOfAStep) {
  const Prediction prediction = Case("gpu=4", ops::kTwoSums).predicted(even_costs(1, 2));
  ASSERT_EQ(prediction.collectives.size(), 1u);
  EXPECT_EQ(prediction.collectives[0].axis, "gpu");
  EXPECT_EQ(prediction.collectives[0].times, 2u);
  EXPECT_EQ(prediction.collectives[0].bytes, 64);
  EXPECT_EQ(prediction.collectives[0].price.algorithm, "ring");
}

TEST(PredictTest, CountsFlopsTrafficAndMemory) {
  const Prediction prediction = Case("gpu=4", ops::kTwoSums).predicted(even_costs(0, 0));
  EXPECT_DOUBLE_EQ(prediction.flops, 2 * 2 * 8 * 4 * 4);  // of the whole mesh
  ASSERT_EQ(prediction.traffic.size(), 1u);
  EXPECT_EQ(prediction.traffic[0].axis, "gpu");
  EXPECT_DOUBLE_EQ(prediction.traffic[0].bytes, 2 * (2 * 3.0 / 4) * 64);
  EXPECT_EQ(prediction.peak_bytes, static_cast<double>(prediction.classes[0].program->bytes()));
  EXPECT_DOUBLE_EQ(prediction.memory.total(), prediction.peak_bytes);
  EXPECT_DOUBLE_EQ(prediction.memory.inputs, 2 * 2 * 4 * 4);
}

// Sums over both axes of a mesh, in one order for one value and in the reverse order for the other.
constexpr std::string_view kCrossing = R"(plan p
%0 = input {name=x, type=f32[d=4], layout="partial(sum) on a, partial(sum) on b"}
%1 = input {name=y, type=f32[d=4], layout="partial(sum) on a, partial(sum) on b"}
%2 = all-reduce %0 {axis=a}
%3 = all-reduce %1 {axis=b}
return p=%2, q=%3
)";

TEST(PredictTest, AxesOnTheSameLinksShareThem) {
  const Case at("a=2, b=2", kCrossing);
  StepCosts costs = even_costs(1, 4);
  const double copies = at.predicted(costs).compute_seconds;  // of inputs whose memory collectives cannot use
  EXPECT_DOUBLE_EQ(at.predicted(costs).seconds, at.predicted(even_costs(0, 0)).seconds + 5);
  costs.wires = {0, 0};
  // Both overlap most of the time: 4 + 4 seconds of transfer through one port.
  EXPECT_GT(at.predicted(costs).seconds, 5 + 3);
  EXPECT_LE(at.predicted(costs).seconds, copies + 1 + 8);
}

// Axes that are factors of one cluster axis use the same network cards: two concurrent collectives
// of equal bytes take as long as one after the other.
TEST(PredictTest, TwoCollectivesShareOneCard) {
  const cluster::Link card{"ib", 1e9, 0, cluster::Shape::unstated, {}, 1};
  const cluster::Cluster nodes{"pod", {.name = "gpu"}, {{"node", 4, card}, {"gpu", 1, {}}}};
  const Case at("node_a=2, node_b=2", R"(plan p
%0 = input {name=x, type=f32[d=100000000], layout="partial(sum) on node_a, partial(sum) on node_b"}
%1 = input {name=y, type=f32[d=100000000], layout="partial(sum) on node_a, partial(sum) on node_b"}
%2 = all-reduce %0 {axis=node_a}
%3 = all-reduce %1 {axis=node_b}
return p=%2, q=%3
)");
  StepCosts costs = cost::step_costs(nodes, at.mesh).value();
  const double shared = at.predicted(costs).seconds;
  costs.wires = {0, 1};  // as if each axis had its own card
  EXPECT_NEAR(shared / at.predicted(costs).seconds, 2, 0.01);
}

TEST(LinkSharingTest, SplitsAPortAmongItsTransfers) {
  LinkSharing sharing(2, 1);
  const std::vector<std::uint32_t> first = {0}, both = {0, 1};
  const std::int32_t on_first = sharing.add_route(0, first), on_both = sharing.add_route(0, both);
  const auto a = sharing.start(0, on_first, 10);
  EXPECT_EQ(sharing.next(), (std::pair(10.0, a)));
  const auto b = sharing.start(4, on_both, 10);  // a has 6 left, now at half speed
  EXPECT_EQ(sharing.next(), (std::pair(16.0, a)));
  sharing.finish(16, a);  // b has 4 left
  EXPECT_EQ(sharing.next(), (std::pair(20.0, b)));
  sharing.finish(20, b);
  EXPECT_FALSE(sharing.next().has_value());
}

TEST(LinkSharingTest, UnusedBandwidthGoesToOthers) {
  LinkSharing sharing(2, 1);
  const std::vector<std::uint32_t> first = {0}, both = {0, 1}, second = {1};
  const auto a = sharing.start(0, sharing.add_route(0, first), 10);
  sharing.start(0, sharing.add_route(0, both), 10);  // b, c and d each have a third of the second port
  const std::int32_t on_second = sharing.add_route(0, second);
  sharing.start(0, on_second, 10);
  sharing.start(0, on_second, 10);
  const auto next = sharing.next();  // so that a has two thirds of the first
  ASSERT_TRUE(next.has_value());
  EXPECT_EQ(next->second, a);
  EXPECT_DOUBLE_EQ(next->first, 15);
}

TEST(LinkSharingTest, LinksAreIndependent) {
  LinkSharing sharing(1, 2);
  const std::vector<std::uint32_t> only = {0};
  const auto a = sharing.start(0, sharing.add_route(0, only), 10);
  sharing.start(0, sharing.add_route(1, only), 20);
  EXPECT_EQ(sharing.next(), (std::pair(10.0, a)));
}

TEST(LinkSharingTest, WorkIsConserved) {
  // Through one port, all transfers together end when their seconds are used up, in any order.
  LinkSharing sharing(1, 1);
  const std::vector<std::uint32_t> only = {0};
  const std::int32_t route = sharing.add_route(0, only);
  double total = 0, now = 0;
  for (int i = 0; i < 20; ++i) {
    const double seconds = 1 + static_cast<double>(mix(static_cast<std::uint64_t>(i)) % 100);
    total += seconds;
    sharing.start(0, route, seconds);
  }
  while (const auto next = sharing.next()) {
    now = next->first;
    sharing.finish(now, next->second);
  }
  EXPECT_NEAR(now, total, 1e-9 * total);
}

TEST(RankClassesTest, EvenShardsAreOneKindAndUnevenOnesFew) {
  const auto kinds = [](std::string_view mesh, std::string_view plan) {
    const Case at(mesh, plan);
    return rank_kinds(at.graph, at.mesh, at.layouts);
  };
  EXPECT_EQ(kinds("gpu=4", ops::kTwoSums), (Numbering{0, 0, 0, 0}));
  // 8 rows on 3 ranks: 3, 3, 2; on 5: 2, 2, 2, 2, 0.
  EXPECT_EQ(kinds("gpu=3", ops::kTwoSums), (Numbering{0, 0, 1}));
  EXPECT_EQ(kinds("gpu=5", ops::kTwoSums), (Numbering{0, 0, 0, 0, 1}));
}

TEST(RankClassesTest, GroupsSplitKinds) {
  const plan::Mesh mesh = plan::read_mesh("node=2, gpu=3").value();
  // Rank 5 is of a different kind; ranks that share a group with it along gpu (3, 4) or node (2)
  // differ from the others.
  EXPECT_EQ(rank_classes(mesh, Numbering{0, 0, 0, 0, 0, 1}), (Numbering{0, 0, 1, 2, 2, 3}));
  EXPECT_EQ(rank_classes(mesh, Numbering{0, 0, 0, 0, 0, 0}), (Numbering{0, 0, 0, 0, 0, 0}));
  const Meetings meetings = find_meetings(mesh, Numbering{0, 0, 1, 2, 2, 3});
  ASSERT_EQ(meetings.all.size(), 4u);
  EXPECT_EQ(meetings.all[meetings.of_axis[1][2]].classes, (std::vector<std::uint32_t>{2, 3}));
  EXPECT_EQ(meetings.all[meetings.of_axis[0][1]].classes, (std::vector<std::uint32_t>{1, 3}));
}

// Rows and columns sliced on two axes, sums on either, a gather, and work between them.
constexpr std::string_view kMixed = R"(plan p
%0 = input {name=x, type=f32[b=7,d=5], layout="sliced(b) on node, sliced(d) on gpu"}
%1 = parameter {name=w, type=f32[d=5,f=6], layout="sliced(d) on gpu"}
%2 = contract %0, %1 {to=[b,f]}
%3 = all-reduce %2 {axis=gpu}
%4 = relu %3
%5 = contract %4, %0 {to=[f,d]}
%6 = all-reduce %5 {axis=node}
%7 = all-gather %6 {axis=gpu, along=d}
%8 = contract %4, %4 {to=[b]}
%9 = all-gather %8 {axis=node, along=b}
return g=%7, s=%9
)";

TEST(PredictTest, ClassesAgreeWithSimulatingEveryRank) {
  for (const char* mesh :
       {"node=1, gpu=2", "node=2, gpu=3", "node=3, gpu=2", "node=4, gpu=4", "node=5, gpu=6"})
    for (const bool overlap : {true, false})
      for (std::uint64_t seed = 0; seed < 5; ++seed) {
        const Case at(mesh, kMixed);
        const StepCosts costs = arbitrary_costs(seed);
        const Prediction all = at.predicted(costs, {.exact = true, .overlap = overlap});
        const Prediction few = at.predicted(costs, {.overlap = overlap});
        EXPECT_DOUBLE_EQ(few.seconds, all.seconds) << mesh << " " << seed;
        ASSERT_EQ(all.classes.size(), static_cast<std::size_t>(at.mesh.ranks()));
        EXPECT_LE(few.classes.size(), all.classes.size());
        for (const RankClass& group : few.classes)
          for (const std::int32_t rank : group.ranks) {
            const program::Timeline& alone = all.classes[static_cast<std::size_t>(rank)].timeline;
            ASSERT_EQ(alone.tasks.size(), group.timeline.tasks.size());
            for (std::size_t t = 0; t < alone.tasks.size(); ++t)
              EXPECT_DOUBLE_EQ(alone.tasks[t].end, group.timeline.tasks[t].end) << mesh << " " << rank;
          }
      }
}

TEST(PredictTest, RanksOfOneKindHaveEqualCosts) {
  const Case at("node=2, gpu=3", kMixed);
  const Numbering kinds = rank_kinds(at.graph, at.mesh, at.layouts);
  const StepCosts costs = arbitrary_costs(3);
  std::map<std::int32_t, std::vector<double>> prices;
  for (std::int32_t rank = 0; rank < at.mesh.ranks(); ++rank) {
    auto local = spmd::localize(at.graph, at.mesh, at.layouts, rank, spmd::Exchanges::stay);
    ASSERT_TRUE(local.ok());
    auto program = program::compile(std::make_shared<const plan::Graph>(std::move(local->graph)), {});
    ASSERT_TRUE(program.ok());
    const auto tasks =
        estimate_tasks(std::make_shared<const Program>(std::move(*program)), at.mesh, costs, true);
    ASSERT_TRUE(tasks.ok());
    std::vector<double> seconds = tasks->seconds;
    for (const ExchangeTask& exchange : tasks->exchanges) seconds.push_back(exchange.price.seconds());
    const auto [known, fresh] = prices.try_emplace(kinds[static_cast<std::size_t>(rank)], seconds);
    EXPECT_EQ(known->second, seconds) << rank;
  }
  EXPECT_GT(prices.size(), 1u);
}

// Nothing starts before its dependencies, nothing on a stream before its predecessor, and the
// critical path has no gaps except where ranks wait for each other.
TEST(PredictTest, TimelinesAreValidAndTheCriticalPathIsTight) {
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    const Case at("node=2, gpu=3", kMixed);
    const Prediction prediction = at.predicted(arbitrary_costs(seed), {.workers = seed % 2 == 0 ? 1 : 3});
    for (const RankClass& group : prediction.classes) {
      const auto& times = group.timeline.tasks;
      std::map<int, double> free;
      std::vector<std::size_t> by_begin(times.size());
      for (std::size_t t = 0; t < times.size(); ++t) by_begin[t] = t;
      std::ranges::sort(by_begin, {}, [&](std::size_t t) { return std::pair(times[t].begin, times[t].end); });
      for (const std::size_t t : by_begin) {
        for (const std::uint32_t wait : group.program->tasks[t].waits)
          EXPECT_LE(times[wait].end, times[t].begin);
        EXPECT_LE(free[times[t].worker], times[t].begin);
        free[times[t].worker] = times[t].end;
        EXPECT_LE(times[t].end, prediction.seconds);
      }
    }
    double at_end = 0;
    ASSERT_FALSE(prediction.critical.empty());
    for (const CriticalTask& task : prediction.critical) {
      const program::TaskTime& time = prediction.classes[task.rank_class].timeline.tasks[task.task];
      EXPECT_DOUBLE_EQ(time.begin, at_end);
      at_end = time.end;
    }
    EXPECT_DOUBLE_EQ(at_end, prediction.seconds);
  }
}

TEST(PredictTest, WorkersWithoutOverlapNeverWaitForEachOther) {
  for (std::uint64_t seed = 0; seed < 10; ++seed)
    for (const int workers : {2, 5}) {
      const Case at("node=2, gpu=3", kMixed);
      const PredictOptions options{.overlap = false, .workers = workers};
      auto prediction = predict(at.graph, at.mesh, at.layouts, arbitrary_costs(seed), options);
      ASSERT_TRUE(prediction.ok()) << prediction.error().message;
      // While a collective is in flight, its rank does nothing else.
      for (const RankClass& group : prediction->classes) {
        const auto& times = group.timeline.tasks;
        for (std::size_t t = 0; t < times.size(); ++t) {
          if (!std::holds_alternative<program::Exchange>(
                  group.program->units[group.program->tasks[t].unit].kernel))
            continue;
          for (std::size_t other = 0; other < times.size(); ++other)
            EXPECT_TRUE(other == t || times[other].end <= times[t].begin ||
                        times[t].end <= times[other].begin);
        }
      }
      EXPECT_DOUBLE_EQ(prediction->seconds, predict(at.graph, at.mesh, at.layouts, arbitrary_costs(seed),
                                                    {.exact = true, .overlap = false, .workers = workers})
                                                ->seconds);
    }
}

TEST(PredictTest, TheMemoryCurveStaysWithinThePackedSize) {
  const Prediction prediction =
      Case("node=2, gpu=3", kMixed).predicted(arbitrary_costs(1), {.overlap = false});
  for (const RankClass& group : prediction.classes) {
    ASSERT_FALSE(group.memory.empty());
    double most = 0;
    for (std::size_t i = 0; i < group.memory.size(); ++i) {
      most = std::max(most, group.memory[i].second);
      if (i > 0) {
        EXPECT_LT(group.memory[i - 1].first, group.memory[i].first);
      }
    }
    EXPECT_LE(most, static_cast<double>(group.program->bytes()));
    EXPECT_GE(most, static_cast<double>(group.program->persistent_bytes));
    // At the end of the step, only persistent memory is left.
    EXPECT_DOUBLE_EQ(group.memory.back().second, static_cast<double>(group.program->persistent_bytes));
  }
}

TEST(PredictTest, IsDeterministic) {
  const Case at("node=4, gpu=4", kMixed);
  const Prediction first = at.predicted(arbitrary_costs(9)), second = at.predicted(arbitrary_costs(9));
  EXPECT_EQ(first.seconds, second.seconds);
  EXPECT_EQ(first.events, second.events);
  ASSERT_EQ(first.critical.size(), second.critical.size());
  for (std::size_t i = 0; i < first.critical.size(); ++i)
    EXPECT_EQ(first.critical[i].task, second.critical[i].task);
}

TEST(PredictTest, QuickModeIsExactIfRanksAreEqual) {
  const Case at("gpu=4", ops::kTwoSums);
  const Prediction whole = at.predicted(arbitrary_costs(2)),
                   quick = at.predicted(arbitrary_costs(2), {.quick = true});
  EXPECT_EQ(quick.seconds, whole.seconds);
  EXPECT_EQ(quick.flops, whole.flops);
  EXPECT_LE(quick.peak_bytes, whole.peak_bytes);
  EXPECT_DOUBLE_EQ(quick.memory.total(), quick.peak_bytes);
  EXPECT_TRUE(quick.critical.empty());
  EXPECT_TRUE(quick.classes[0].timeline.tasks.empty());
  // Uneven shards: one class for all, and one program.
  EXPECT_EQ(Case("node=2, gpu=3", kMixed).predicted(arbitrary_costs(2), {.quick = true}).classes.size(), 1u);
}

TEST(PredictTest, NamesLinksWithoutBandwidth) {
  StepCosts costs = even_costs(1, std::numeric_limits<double>::infinity());
  const Case at("gpu=4", ops::kTwoSums);
  const auto refused = predict(at.graph, at.mesh, at.layouts, costs);
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().message.find("mesh axis gpu"), std::string::npos) << refused.error().message;
}

TEST(PredictTest, RejectsRanksThatDisagree) {
  const Case two("gpu=2", ops::kTwoSums);
  const auto program_of = [&](std::string_view text) {
    const Case at("gpu=2", text);
    auto local = spmd::localize(at.graph, at.mesh, at.layouts, 0, spmd::Exchanges::stay).value();
    return std::make_shared<const Program>(
        program::compile(std::make_shared<const plan::Graph>(std::move(local.graph)), {}).value());
  };
  const std::vector<std::shared_ptr<const Program>> programs = {program_of(ops::kTwoSums),
                                                                program_of(R"(plan p
%0 = input {name=x, type=f32[d=4]}
%1 = relu %0
return y=%1
)")};
  const auto refused = predict(two.mesh, programs, Numbering{0, 1}, even_costs(1, 1));
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().message.find("do not run the same collectives"), std::string::npos);
}

TEST(PredictTest, AMeshOfAThousandIsAsFastAsOneOfFour) {
  const Case at("node=128, gpu=8", kMixed);
  const Prediction prediction = at.predicted(arbitrary_costs(4), {.timeline = false});
  EXPECT_LE(prediction.classes.size(), 8u);
  EXPECT_LT(prediction.events, 200);
  std::size_t ranks = 0;
  for (const RankClass& group : prediction.classes) {
    ranks += group.ranks.size();
    EXPECT_TRUE(group.timeline.tasks.empty());
  }
  EXPECT_EQ(ranks, 1024u);
}

}  // namespace
}  // namespace weft::sim
