// The costs of a step's parts: mesh axes and their links, collectives compared with NCCL's measured
// times, product shapes, earlier measurements, and whole steps compared with published ones.
#include "weft/predict/cost/step_costs.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "temporary_folder.h"
#include "weft/base/median.h"
#include "weft/language/bind.h"
#include "weft/language/shipped.h"
#include "weft/parallel/distribute/distribute.h"
#include "weft/parallel/train/training_plan.h"
#include "weft/plan/graph/text.h"
#include "weft/plan/ops/operators.h"
#include "weft/predict/cost/exchange_seconds.h"
#include "weft/predict/cost/mesh_links.h"
#include "weft/predict/cost/operator_time.h"
#include "weft/predict/cost/unit_seconds.h"
#include "weft/predict/sim/step/predict.h"

namespace weft::cost {
namespace {

using Kind = program::Exchange::Kind;

cluster::Device a100() {
  cluster::Device device{.name = "a100"};
  device.flops_per_second[static_cast<std::size_t>(cluster::Precision::f32)] = 19.5e12;
  device.flops_per_second[static_cast<std::size_t>(cluster::Precision::bf16)] = 312e12;
  device.memory_bytes_per_second = 2.039e12;
  device.memory_bytes = 80e9;
  device.launch_seconds = 4e-6;
  return device;
}

cluster::Cluster nodes_of_a100(std::int64_t nodes, std::int64_t gpus = 8, double network = 25e9) {
  return {"pod",
          a100(),
          {{"node", nodes, {"ib", network, 5e-6, cluster::Shape::unstated, {}, 1}},
           {"gpu", gpus, {"gpu", 300e9, 2e-6, cluster::Shape::unstated, {}, 1}}}};
}

cluster::Cluster local(std::int64_t ranks) {
  cluster::Device core{.name = "cpu_core"};
  core.flops_per_second[static_cast<std::size_t>(cluster::Precision::f32)] = 80e9;
  core.memory_bytes_per_second = 10e9;
  return {"LOCAL", core, {{"rank", ranks, {}}}};
}

plan::Mesh mesh_of(std::string_view text) { return plan::read_mesh(text).value(); }

program::Program compiled(std::string_view text) {
  auto graph = plan::read(text, ops::all());
  if (!graph.ok()) throw std::runtime_error(graph.error().message);
  return program::compile(std::make_shared<const plan::Graph>(std::move(*graph)), {}).value();
}

// -- mesh axes
// -------------------------------------------------------------------------------------------------

TEST(MeshLinksTest, AMeshAxisIsAClusterAxisOrAFactorOfOne) {
  const auto links = mesh_links(nodes_of_a100(4), mesh_of("node=4, gpu_a=2, gpu_b=4"));
  ASSERT_TRUE(links.ok()) << links.error().message;
  ASSERT_EQ(links->size(), 3u);
  EXPECT_EQ((*links)[0].bytes_per_second, 25e9);
  EXPECT_TRUE((*links)[0].across_nodes);
  EXPECT_EQ((*links)[1].cluster_axis, 1u);
  EXPECT_EQ((*links)[1].stride, 4);
  EXPECT_EQ((*links)[2].stride, 1);
  EXPECT_FALSE((*links)[2].across_nodes);
  const auto costs = step_costs(nodes_of_a100(4), mesh_of("node=4, gpu_a=2, gpu_b=4"));
  ASSERT_TRUE(costs.ok());
  EXPECT_EQ(costs->wires, (std::vector<std::int32_t>{0, 1, 1}));
}

TEST(MeshLinksTest, AClusterAxisOfOneMayBeOmitted) {
  EXPECT_TRUE(mesh_links(nodes_of_a100(1), mesh_of("gpu=8")).ok());
  EXPECT_TRUE(mesh_links(nodes_of_a100(8, 1), mesh_of("node_x=2, node_y=4")).ok());
}

TEST(MeshLinksTest, RejectsAMeshThatDoesNotFitTheCluster) {
  const auto message = [](std::string_view mesh) {
    const auto links = mesh_links(nodes_of_a100(4), mesh_of(mesh));
    return links.ok() ? std::string() : links.error().message;
  };
  EXPECT_EQ(message("node=4, gpu=4"),
            "the mesh does not match the cluster: axis gpu has 4 ranks in the mesh, 8 in pod");
  EXPECT_EQ(message("gpu=8, node=4"),
            "the mesh does not match the cluster: axis node has 1 ranks in the mesh, 4 in pod");
  EXPECT_NE(message("node=4, gpu=8, gpus=2").find("mesh axis gpus"), std::string::npos);
  EXPECT_NE(message("node=4, gpux=8").find("mesh axis gpux"), std::string::npos);
}

TEST(MeshLinksTest, DirectLinksGiveASubgroupLessBandwidth) {
  cluster::Cluster full = nodes_of_a100(1);
  full.axes[1].link.shape = cluster::Shape::full;
  const auto rate = [&](std::string_view mesh, std::size_t axis) {
    return mesh_links(full, mesh_of(mesh)).value()[axis].bytes_per_second;
  };
  EXPECT_DOUBLE_EQ(rate("gpu=8", 0), 300e9);
  EXPECT_DOUBLE_EQ(rate("gpu_a=2, gpu_b=4", 1), 300e9 * 3 / 7);
}

// -- collectives
// -----------------------------------------------------------------------------------------------

MeshLink link_of(std::int32_t ranks, double latency, double rate, bool across_nodes = false) {
  return {0, "", ranks, 1, across_nodes, latency, rate};
}

TEST(ExchangeSecondsTest, MoreBytesTakeLongerAndOneRankTakesNoTime) {
  for (const Kind kind : {Kind::all_reduce, Kind::reduce_scatter, Kind::all_gather, Kind::all_to_all,
                          Kind::broadcast_from, Kind::permute_ranks}) {
    const MeshLink link = link_of(8, 2e-6, 300e9);
    double before = 0;
    for (double bytes = 1; bytes < 1e10; bytes *= 2) {
      const double seconds = exchange_seconds(kind, link, bytes).seconds();
      EXPECT_GE(seconds, before);
      EXPECT_GE(seconds, sent_bytes(kind, 8, bytes) / 300e9);
      before = seconds;
    }
    EXPECT_EQ(exchange_seconds(kind, link_of(1, 0, 0), 1e6).seconds(), 0);
  }
}

TEST(ExchangeSecondsTest, WithoutBandwidthTheTimeIsInfinite) {
  const MeshLink link = link_of(2, 2e-6, 0);
  EXPECT_TRUE(std::isinf(exchange_seconds(Kind::all_reduce, link, 8).seconds()));
  EXPECT_TRUE(std::isfinite(exchange_seconds(Kind::all_reduce, link, 0).seconds()));
}

TEST(ExchangeSecondsTest, TreesTakeFewerStepsForSmallMessagesOfManyRanks) {
  const MeshLink many = link_of(128, 5e-6, 50e9, true);
  EXPECT_EQ(exchange_seconds(Kind::all_reduce, many, 1024).algorithm, "all_reduce_double_binary_tree");
  EXPECT_EQ(exchange_seconds(Kind::all_reduce, many, 8e9).algorithm, "all_reduce_ring");
}

std::filesystem::path published(std::string_view name) {
  return std::filesystem::path(WEFT_SOURCE_DIR) / "../shared/corpus/published" / name;
}

TEST(ExchangeSecondsTest, IsNearTheMeasuredTimesOfNccl) {
  const auto path = published("nccl_allreduce_a100.json");
  if (!std::filesystem::exists(path)) GTEST_SKIP() << "the corpus of published figures is not here";
  const auto table = nlohmann::json::parse(std::ifstream(path));
  std::vector<double> errors;
  for (const auto& [ranks, rows] : table.at("groups").items())
    for (const auto& row : rows) {
      const MeshLink link = link_of(std::stoi(ranks), 2e-6, 300e9);
      const double bytes = row.at(0), measured = row.at(1).get<double>() * 1e-6;
      const double predicted = exchange_seconds(Kind::all_reduce, link, bytes).seconds();
      errors.push_back(std::abs(predicted - measured) / measured);
    }
  RecordProperty("median", std::to_string(median(errors)));
  RecordProperty("worst", std::to_string(*std::ranges::max_element(errors)));
  EXPECT_GE(errors.size(), 300u);
  EXPECT_LT(median(errors), 0.08) << "worst " << *std::ranges::max_element(errors);
  EXPECT_LT(*std::ranges::max_element(errors), 0.35) << "median " << median(errors);
}

// -- units
// -----------------------------------------------------------------------------------------------------

TEST(UnitSecondsTest, LargeProductsReachThePeakAndSmallOnesDoNot) {
  const cluster::Device device = a100();
  EXPECT_NEAR(product_efficiency(device, 8192, 8192, 8192, 1), 0.84, 0.03);
  EXPECT_LT(product_efficiency(device, 128, 128, 128, 1), 0.05);
  EXPECT_LT(product_efficiency(device, 8192, 8192, 64, 1), 0.4);
  // One more tile than fit the SMs at once costs another wave.
  EXPECT_LT(product_efficiency(device, 128 * 109, 128, 4096, 1),
            0.6 * product_efficiency(device, 128 * 108, 128, 4096, 1));
  for (double side = 1; side < 20000; side *= 1.7) {
    const double reached = product_efficiency(device, side, side, side, 1);
    EXPECT_GT(reached, 0);
    EXPECT_LE(reached, 0.85);
  }
}

constexpr std::string_view kLayers = R"(plan p
%0 = input {name=x, type=f32[b=64,d=32]}
%1 = parameter {name=w, type=f32[d=32,f=32]}
%2 = parameter {name=u, type=f32[f=32,g=32]}
%3 = contract %0, %1 {to=[b,f]}
%4 = contract %3, %2 {to=[b,g]}
%5 = softmax %4 {over=[g]}
return y=%5
)";

TEST(UnitSecondsTest, TasksShareOneLaunchOfTheirUnit) {
  const program::Program program = compiled(R"(plan p
%0 = input {name=x, type=f32[b=4096,d=1024]}
%1 = exp %0
return y=%1
)");
  const StepCosts costs = step_costs(nodes_of_a100(1), mesh_of("gpu=8")).value();
  double sum = 0;
  for (const program::Task& task : program.tasks) sum += costs.compute(program, task).seconds;
  ASSERT_GT(program.tasks.size(), 1u);
  EXPECT_NEAR(sum, unit_seconds(program, program.units[0], a100()), 1e-12);
  EXPECT_GE(sum, 2 * 4096 * 1024 * 4 / 2.039e12);
}

// -- measurements
// -------------------------------------------------------------------------------------------------

TEST(UnitKeyTest, EqualWorkHasEqualKeys) {
  const program::Program program = compiled(kLayers);
  ASSERT_GE(program.units.size(), 3u);
  const std::string first = unit_key(program, program.units[0]);
  EXPECT_EQ(first, "product f32 64x32x32 nn");
  EXPECT_EQ(first, unit_key(program, program.units[1]));
  EXPECT_NE(first, unit_key(program, program.units[2]));
  EXPECT_EQ(unit_key(program, program.units[0], {.ranks = 4, .workers = 2}), first + " ranks=4 workers=2");
}

class MeasuredTest : public testing::Test {
 protected:
  void SetUp() override {
    auto opened = Statistics::open(file_, Access::write, "m");
    if (!opened.ok() && opened.error().message.find("without SQLite") != std::string::npos)
      GTEST_SKIP() << opened.error().message;
  }

  // One second for the first unit, two for the next, ..
  static program::Timeline timeline_of(const program::Program& program) {
    program::Timeline timeline;
    double now = 0;
    for (const program::Task& task : program.tasks) {
      timeline.tasks.push_back({now, now + 1 + task.unit, 0});
      now += 1 + task.unit;
    }
    timeline.seconds = now;
    return timeline;
  }

  TemporaryFolder folder_;
  std::string file_ = folder_ / "statistics.sqlite";
};

TEST_F(MeasuredTest, MeasurementsAreUsedNextTime) {
  const program::Program program = compiled(kLayers);
  const std::vector<program::Timeline> timelines = {timeline_of(program), timeline_of(program)};
  {
    auto statistics = Statistics::open(file_, Access::write, "m");
    ASSERT_TRUE(learn(*statistics, program, timelines, {.ranks = 2}).ok());
  }
  const auto statistics = Statistics::open(file_, Access::read, "m");
  const auto price = [&](int ranks, std::size_t task) {
    return step_costs(local(ranks), mesh_of(fmt::format("rank={}", ranks)),
                      {.statistics = &*statistics, .processors = 2})
        .value()
        .compute(program, program.tasks[task]);
  };
  EXPECT_EQ(price(2, 0).source, Source::measured);
  // Both products have one key: the mean of 1 and 2 seconds.
  EXPECT_DOUBLE_EQ(price(2, 0).seconds, 1.5);
  EXPECT_DOUBLE_EQ(price(2, 1).seconds, 1.5);
  // Another concurrency has no measurements.
  EXPECT_EQ(price(4, 0).source, Source::datasheet);
}

TEST_F(MeasuredTest, ScalesMeasurementsIfRanksOutnumberCores) {
  const program::Program program = compiled(kLayers);
  {
    auto statistics = Statistics::open(file_, Access::write, "m");
    ASSERT_TRUE(learn(*statistics, program, std::vector{timeline_of(program)}).ok());
  }
  const auto statistics = Statistics::open(file_, Access::read, "m");
  const auto costs = step_costs(local(8), mesh_of("rank=8"), {.statistics = &*statistics, .processors = 2});
  EXPECT_DOUBLE_EQ(costs->compute(program, program.tasks[0]).seconds, 1.5 * 8 / 2);
}

TEST_F(MeasuredTest, UsesCollectivesAndRatesOfThisMachine) {
  {
    auto statistics = Statistics::open(file_, Access::write, "m");
    std::vector<CollectiveTime> times;
    for (const std::int64_t bytes : {1024, 1 << 20})
      for (const double slower : {1.0, 3.0})
        times.push_back({.kind = collective::Kind::all_reduce,
                         .ranks = 4,
                         .transport = "shm",
                         .algorithm = slower > 1 ? "slow" : "fast",
                         .bytes = bytes,
                         .seconds = slower * 1e-5 * std::sqrt(static_cast<double>(bytes) / 1024)});
    ASSERT_TRUE(statistics->add(times).ok());
    ASSERT_TRUE(statistics->add(std::vector{Rate{"multiply f32", 1, 1 << 20, 40e9, 0}}).ok());
  }
  const auto statistics = Statistics::open(file_, Access::read, "m");
  const StepCosts costs =
      step_costs(local(4), mesh_of("rank=4"), {.statistics = &*statistics, .processors = 4}).value();
  program::Exchange exchange;
  const ExchangeCost price = costs.exchange(exchange, 0, 32 * 1024);  // halfway, logarithmically
  EXPECT_EQ(price.source, Source::measured);
  EXPECT_NEAR(price.seconds(), 1e-5 * std::sqrt(32), 1e-9);
  EXPECT_NEAR(costs.exchange(exchange, 0, 1 << 21).seconds(), 2 * 1e-5 * 32, 1e-9);
  exchange.kind = Kind::all_gather;
  EXPECT_EQ(costs.exchange(exchange, 0, 1024).source, Source::datasheet);
  const program::Program program = compiled(kLayers);
  EXPECT_EQ(costs.compute(program, program.tasks[0]).source, Source::calibrated);
}

TEST_F(MeasuredTest, ReadsAndUpgradesAFileOfTheFirstSchema) {
  const std::string old = folder_ / "old.sqlite";
  {
    auto made = Statistics::open(old, Access::write, "m");
    ASSERT_TRUE(made->add(std::vector{Rate{"copy", 1, 1 << 20, 4e10, 6}}).ok());
  }
  {
    auto database = Database::open(old, Access::write);
    ASSERT_TRUE(database->execute("DROP TABLE operator_time").ok());
    ASSERT_TRUE(database->execute("PRAGMA user_version = 1").ok());
  }
  auto read = Statistics::open(old, Access::read, "m");
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(read->rates()->size(), 1u);
  EXPECT_TRUE(read->operator_times()->empty());
  auto written = Statistics::open(old, Access::write, "m");
  ASSERT_TRUE(written.ok()) << written.error().message;
  ASSERT_TRUE(written->add(std::vector{OperatorTime{"copy f32[8]", 1e-6, 5}}).ok());
  EXPECT_EQ(*Statistics::open(old, Access::read, "m")->operator_times(),
            (std::vector{OperatorTime{"copy f32[8]", 1e-6, 5}}));
  EXPECT_EQ(written->rates()->size(), 1u);
}

TEST(StepCostsTest, MoreRanksThanProcessorsShareThem) {
  const program::Program program = compiled(kLayers);
  const auto seconds = [&](int ranks) {
    return step_costs(local(ranks), mesh_of(fmt::format("rank={}", ranks)), {.processors = 2})
        .value()
        .compute(program, program.tasks[0])
        .seconds;
  };
  EXPECT_DOUBLE_EQ(seconds(2), seconds(1));
  EXPECT_DOUBLE_EQ(seconds(8), 4 * seconds(1));
}

// -- whole steps
// -----------------------------------------------------------------------------------------------

struct PublishedStep {
  std::string_view name;
  double measured;  // seconds
  std::int64_t nodes;
  double network;  // bytes per second
  std::string_view distribution;
  std::int64_t batch, hidden, heads, layers;
};

// Seconds of a step of GPT blocks with this many layers. The measured systems recompute the forward
// pass, which this plan does not, so its time counts twice.
double step_of(const PublishedStep& at, std::int64_t layers) {
  language::Catalog catalog;
  language::load_shipped(catalog);
  language::syntax::Name name;
  name.text = "gpt2";
  language::BindOptions options;
  options.mode = language::Mode::train;
  options.precision = plan::DType::bf16;
  for (const auto& [index, size] :
       std::initializer_list<std::pair<const char*, std::int64_t>>{{"b", at.batch},
                                                                   {"s", 2048},
                                                                   {"d", at.hidden},
                                                                   {"h", at.heads},
                                                                   {"layers", layers},
                                                                   {"v", 51200},
                                                                   {"p", 2048}})
    options.sizes.push_back({index, size, {}});
  auto bound = language::bind(catalog, name, options).value();
  auto training = train::make_training_plan(std::move(bound.graph), {}).value();
  const auto distribution = distribute::read_distribution(at.distribution).value();
  const cluster::Cluster cluster = nodes_of_a100(at.nodes, 8, at.network);
  distribute::DistributeOptions how;
  const std::vector<MeshLink> links = mesh_links(cluster, distribution.mesh).value();
  for (const MeshLink& link : links) how.prices.push_back({link.latency_seconds, link.bytes_per_second});
  const auto plan = distribute::distribute(training.graph, distribution, how).value();
  // Neither of the measured systems overlaps communication with computation.
  const auto prediction = sim::predict(plan.graph, plan.mesh, plan.layouts,
                                       step_costs(cluster, plan.mesh).value(), {.overlap = false})
                              .value();
  const sim::RankClass& rank = prediction.classes[0];
  const plan::Graph& graph = *rank.program->graph;
  const plan::NodeId loss = graph.value(graph.outputs()[0].value).producer;
  std::size_t last = 0;
  for (std::size_t u = 0; u < rank.program->units.size(); ++u)
    if (std::ranges::find(rank.program->units[u].nodes, loss) != rank.program->units[u].nodes.end()) last = u;
  double forward = 0;
  for (std::size_t t = 0; t < rank.program->tasks.size(); ++t)
    if (rank.program->tasks[t].unit <= last)
      forward += rank.timeline.tasks[t].end - rank.timeline.tasks[t].begin;
  return prediction.seconds + forward;
}

// 3.6 billion parameters on 64 A100s: vTrain (MICRO 2024), ground_truth_multi.csv; 22 billion on
// eight: Korthikanti et al. 2022, table 5. Layers are identical, so two small models determine the
// time of the large one.
TEST(StepCostsTest, WholeStepsAreNearPublishedOnes) {
  constexpr std::array<PublishedStep, 3> kSteps = {{
      {"3.6B, data 64", 3.5665, 8, 12.5e9, "node=8: slice b; gpu=8: slice b", 512, 3072, 32, 30},
      {"3.6B, tensor 4, data 16", 4.5482, 8, 12.5e9,
       "node=8: slice b; gpu_a=2: slice b; gpu_b=4: slice h, f, v", 512, 3072, 32, 30},
      {"22B, tensor 8", 1.42, 1, 25e9, "gpu=8: slice h, f, v", 4, 6144, 64, 48},
  }};
  for (const PublishedStep& step : kSteps) {
    const double one = step_of(step, 1), three = step_of(step, 3);
    const double predicted = one + (three - one) / 2 * static_cast<double>(step.layers - 1);
    const double error = predicted / step.measured - 1;
    RecordProperty(std::string(step.name), fmt::format("{:+.3f}", error));
    EXPECT_LT(std::abs(error), 0.2) << step.name << ": " << predicted << " against " << step.measured;
  }
}

}  // namespace
}  // namespace weft::cost
