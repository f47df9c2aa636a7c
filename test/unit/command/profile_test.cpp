// weft profile: measurements are plausible, and the printed script is accepted by Weft.
#include "weft/app/command/profile.h"
#include "weft/app/explain/profile_cluster.h"
#include "weft/app/explain/profile_device.h"
#include "weft/runtime/measure/machine_profile.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <optional>
#include <thread>

#include <gtest/gtest.h>

#include "temporary_folder.h"
#include "weft/app/session/find_cluster.h"
#include "weft/communication/transport/inproc/endpoint.h"
#include "weft/predict/sim/collective/collective_cluster.h"

namespace weft::command {

using namespace session;
namespace {

measure::MachineProfile given_profile() {
  measure::MachineProfile profile;
  profile.machine = "aarch64, a processor, 2 processors, 24 GiB";
  profile.ranks = 2;
  profile.hosts = 1;
  profile.cores = 2;
  profile.memory_bytes = 24.0 * (1 << 30);
  profile.rates = {{"copy", 1, 256 << 10, 40e9, 0},
                   {"copy", 1, 64 << 20, 25.5e9, 0},
                   {"copy", 2, 64 << 20, 46e9, 0},
                   {"reduce f32", 1, 64 << 20, 17.3e9, 0},
                   {"multiply f32", 1, 1 << 20, 60e9, 0},
                   {"multiply f64", 1, 1 << 21, 30e9, 0},
                   {"call", 1, 4, 50e6, 0}};
  profile.links = {{"tcp", 2, 0, 1, false, 6.4e-6, 7.4e9, 0}, {"tcp", 2, 1, 0, false, 6.4e-6, 7.2e9, 0},
                   {"shm", 2, 0, 1, false, 1.3e-7, 12e9, 0},  {"shm", 2, 1, 0, false, 1.3e-7, 11e9, 0},
                   {"shm", 2, 0, 1, true, 1.3e-7, 10e9, 0},   {"shm", 2, 1, 0, true, 1.3e-7, 9e9, 0}};
  return profile;
}

TEST(PrintCluster, PrintsAScriptThatCreatesTheMeasuredCluster) {
  const auto text = explain::print_cluster(given_profile(), "here");
  ASSERT_TRUE(text.ok()) << text.error().message;
  Session session;
  const Reply reply = session.execute(*text + "SHOW CLUSTERS;");
  EXPECT_EQ(reply.exit_code, ExitCode::ok) << reply.complaint;
  EXPECT_NE(reply.output.find("here_tcp"), std::string::npos);

  const TemporaryFolder folder;
  std::ofstream(folder / "here.weft") << *text;
  const auto cluster = find_collective_cluster(folder / "here.weft");
  ASSERT_TRUE(cluster.ok()) << cluster.error().message;
  EXPECT_EQ(cluster->topology.devices, 2);
  // The last cluster is used: shared memory, at the bandwidth of a rank while the other sends too.
  for (const auto& link : cluster->topology.links) EXPECT_NEAR(link.bytes_per_second, 9.5e9, 1);
}

TEST(PrintCluster, ShowsTheMeasurements) {
  const std::string text = *explain::print_cluster(given_profile(), "here");
  for (const std::string_view each :
       {"-- copy", "25.5 GB/s", "6.4 us", "CREATE DEVICE here_core (f64 = 30 GFLOP/s, f32 = 60 GFLOP/s",
        "memory = 12 GiB", "bandwidth = 46 GB/s", "launch = 20 ns",
        "CREATE CLUSTER here AS 1 NODES OF 2 DEVICES here_core\n  LINK shm WITHIN node (9.5 GB/s, 130 ns);"})
    EXPECT_NE(text.find(each), std::string::npos) << each << "\nin\n" << text;
}

TEST(PrintCluster, DividesAHostAmongMoreRanksThanCores) {
  measure::MachineProfile profile = given_profile();
  profile.ranks = 8;
  EXPECT_NE(explain::print_cluster(profile, "here")
                ->find("f32 = 15 GFLOP/s, memory = 3 GiB, bandwidth = 11.5 GB/s"),
            std::string::npos)
      << *explain::print_cluster(profile, "here");
}

TEST(PrintCluster, LinksSeveralHosts) {
  measure::MachineProfile profile = given_profile();
  profile.ranks = 4;
  profile.hosts = 2;
  profile.host_of = {0, 0, 1, 1};
  profile.links.push_back({"tcp", 4, 1, 2, false, 1e-3, 1.1e8, 0});
  const std::string text = *explain::print_cluster(profile, "far");
  EXPECT_NE(text.find("LINK tcp ACROSS node (110 MB/s, 1 ms)"), std::string::npos) << text;
  Session session;
  const Reply reply = session.execute(text);
  EXPECT_EQ(reply.exit_code, ExitCode::ok) << reply.complaint;
}

TEST(PrintCluster, RejectsInvalidClustersAndNames) {
  for (const std::string_view name : {"", "a b", "1a", "x;", "CREATE"}) {
    const auto text = explain::print_cluster(given_profile(), name);
    Session session;
    EXPECT_TRUE(!text.ok() || session.execute(*text).exit_code == ExitCode::ok) << name;
  }
  measure::MachineProfile uneven = given_profile();
  uneven.ranks = 3;
  uneven.hosts = 2;
  EXPECT_FALSE(explain::print_cluster(uneven, "here").ok());
  measure::MachineProfile empty;
  EXPECT_FALSE(explain::print_cluster(empty, "here").ok());
}

TEST(Pairs, CoverAllPairsOfFewRanksAndSomeOfMany) {
  EXPECT_EQ(measure::pairs_of(1).size(), 0u);
  EXPECT_EQ(measure::pairs_of(2).size(), 1u);
  EXPECT_EQ(measure::pairs_of(8).size(), 28u);
  EXPECT_EQ(measure::pairs_of(64).size(), 64u + 32u);
  for (const std::int32_t ranks : {2, 3, 8, 64, 65})  // the round over all ranks needs its links
    for (std::int32_t rank = 0; rank < ranks; ++rank) {
      const std::int32_t next = (rank + 1) % ranks;
      const std::pair pair(std::min(rank, next), std::max(rank, next));
      EXPECT_EQ(std::ranges::count(measure::pairs_of(ranks), pair), 1);
    }
}

TEST(Rates, ArePositiveForEveryKind) {
  const auto rates = measure::measure_rates({.cached_bytes = 4096,
                                             .large_bytes = 65536,
                                             .matrix_side = 16,
                                             .most_threads = 2,
                                             .each = std::chrono::milliseconds(1)});
  EXPECT_EQ(rates.size(), 2u * 2 * 2 + 3);
  for (const cost::Rate& rate : rates) EXPECT_GT(rate.per_second, 0) << rate.what;
}

TEST(Links, OfThreeThreadsAreMeasuredInBothDirectionsAndTogether) {
  constexpr std::int32_t kRanks = 3;
  auto jobs = transport::make_thread_jobs(kRanks, std::chrono::seconds(10));
  std::vector<std::vector<cost::LinkTime>> links(kRanks);
  std::vector<std::string> troubles(kRanks);
  {
    std::vector<std::jthread> ranks;
    for (std::int32_t rank = 0; rank < kRanks; ++rank)
      ranks.emplace_back([&, rank] {
        const std::shared_ptr<transport::Job> job = std::move(jobs[rank]);
        const std::vector<std::int32_t> everyone = {0, 1, 2};
        const auto measure = [&]() -> Status {
          WEFT_TRY(endpoint, transport::inproc::make_endpoint(job, everyone, 7));
          WEFT_TRY(found,
                   measure::measure_links(*job, everyone, *endpoint,
                                          {std::chrono::milliseconds(1), std::chrono::milliseconds(2)}));
          links[rank] = std::move(found);
          return {};
        };
        if (const Status done = measure(); !done.ok()) troubles[rank] = done.error().message;
      });
  }
  for (const std::string& trouble : troubles) EXPECT_EQ(trouble, "");
  ASSERT_EQ(links[0].size(), 6u + 3u);  // three pairs in both directions, and the round
  EXPECT_EQ(links[0].size(), links[2].size());
  for (const cost::LinkTime& link : links[0]) {
    EXPECT_NE(link.from, link.to);
    EXPECT_GT(link.latency_seconds, 0);
    EXPECT_GT(link.bytes_per_second, 0);
  }
}

// The statistics of the user who runs the tests stay unchanged.
class OwnStatistics {
 public:
  OwnStatistics() {
    if (const char* was = std::getenv("XDG_DATA_HOME")) was_ = was;
    setenv("XDG_DATA_HOME", folder_.path().c_str(), 1);
  }
  ~OwnStatistics() {
    if (was_)
      setenv("XDG_DATA_HOME", was_->c_str(), 1);
    else
      unsetenv("XDG_DATA_HOME");
  }

 private:
  TemporaryFolder folder_;
  std::optional<std::string> was_;
};

TEST(ProfileModel, RejectsUnknownModelsAndConflictingOptions) {
  const auto complaint = [](Profile request) {
    const Reply reply = run(request);
    EXPECT_EQ(reply.exit_code, ExitCode::user_error);
    return reply.complaint;
  };
  EXPECT_NE(complaint({.model = "char_gpt; DROP MODEL gpt2"}).find("expected the name of a model"),
            std::string::npos);
  EXPECT_NE(complaint({.model = "nosuch"}).find("error: unknown model: nosuch"), std::string::npos);
  EXPECT_NE(complaint({.model = "digits_mlp", .with = "zz = 3"}).find("no size of digits_mlp"),
            std::string::npos);
  EXPECT_NE(complaint({.ranks = 300, .model = "digits_mlp"}).find("1 to 256 ranks"), std::string::npos);
  EXPECT_NE(complaint({.to = "here.weft", .model = "digits_mlp"}).find("--model can be combined only with"),
            std::string::npos);
}

// The next EXPLAIN uses the measured times.
TEST(ProfileModel, KeepsTheTimesOfUnits) {
  const OwnStatistics own;
  if (const auto opened = cost::Statistics::open({}, cost::Access::write); !opened.ok())
    GTEST_SKIP() << opened.error().message;
  const Reply reply = run({.ranks = 1, .quick = true, .model = "digits_mlp", .with = "b = 8"});
  ASSERT_EQ(reply.exit_code, ExitCode::ok) << reply.complaint;
  EXPECT_NE(reply.output.find("step time"), std::string::npos);
  const auto statistics = cost::Statistics::open({}, cost::Access::read);
  ASSERT_TRUE(statistics.ok());
  EXPECT_GT(statistics->operator_times()->size(), 3u);
}

// Disturbed measurements are not kept for later plans unless requested, and statistics can be
// cleared.
TEST(Statistics, AreKeptShownAndCleared) {
  const OwnStatistics own;
  if (const auto opened = cost::Statistics::open({}, cost::Access::write); !opened.ok())
    GTEST_SKIP() << opened.error().message;
  Session session;
  const auto say = [&](std::string_view text) {
    const Reply reply = session.execute(text);
    EXPECT_EQ(reply.exit_code, ExitCode::ok) << reply.complaint;
    return reply.output;
  };
  EXPECT_EQ(say("SHOW STATISTICS"), "no statistics\n");
  EXPECT_EQ(say("CLEAR STATISTICS"), "cleared statistics: 0 rows of this machine\n");
  say("SET keep_measurements = false; EXPLAIN ANALYZE TRAIN digits_mlp STEPS 1 WITH (b = 8)");
  EXPECT_EQ(say("SHOW STATISTICS"), "no statistics\n");
  say("SET keep_measurements = true; EXPLAIN ANALYZE TRAIN digits_mlp STEPS 1 WITH (b = 8)");
  EXPECT_NE(say("SHOW STATISTICS").find("times of operators"), std::string::npos);
  const std::string cleared = say("CLEAR STATISTICS");
  EXPECT_NE(cleared, "cleared statistics: 0 rows of this machine\n");
  EXPECT_EQ(say("SHOW STATISTICS"), "no statistics\n");
  // CLEAR is an ordinary name elsewhere.
  say("CREATE MODEL clear (b = 2) INPUT clear[b] AS SELECT sum(clear) AS y FROM clear");
  EXPECT_NE(session.execute("CLEAR MODELS").complaint.find("cannot clear 'MODELS'"), std::string::npos);
}

// Measured figures of a GPU replace those of its data sheet; unmeasured ones are omitted.
TEST(Profile, OfADevicePrintsAScript) {
  measure::DeviceRates rates;
  rates.products = {{cluster::Precision::tf32, 1024, 166e12},
                    {cluster::Precision::tf32, 8192, 356e12},
                    {cluster::Precision::bf16, 1024, 397e12},
                    {cluster::Precision::bf16, 8192, 766e12}};
  rates.bytes_per_second = 3.95e12;
  rates.launch_seconds = 4e-6;
  rates.in_bytes_per_second = rates.out_bytes_per_second = 55.5e9;
  rates.memory_bytes = std::int64_t{139} << 30;
  // Twice the time at half the rate: together two thirds of the higher rate.
  rates.kernels = {{cluster::KernelKind::attention, "s 1024", 200e12},
                   {cluster::KernelKind::attention, "s 4096", 400e12},
                   {cluster::KernelKind::convolution, "side 56", 300e12}};
  EXPECT_NEAR(rates.typical(cluster::KernelKind::attention), 400e12 * 2 / 3, 1e6);
  EXPECT_EQ(rates.typical(cluster::KernelKind::attention_gradient), 0);
  // A shape that reaches half of the device's rate is scaled up accordingly.
  rates.kernels.push_back({cluster::KernelKind::attention_gradient, "s 1024", 100e12, 0.5});
  EXPECT_NEAR(rates.typical(cluster::KernelKind::attention_gradient), 200e12, 1e6);
  rates.kernels.pop_back();
  rates.beside = {{"products", "copies", 0.984, 1}};
  const auto text = explain::print_device(rates, "NVIDIA H200", "h200");
  ASSERT_TRUE(text.ok()) << text.error().message;
  Session session;
  const Reply reply =
      session.execute(*text + "EXPLAIN (SUMMARY) TRAIN digits_mlp ON h200 WITH (precision = bf16);");
  EXPECT_EQ(reply.exit_code, ExitCode::ok) << reply.output << reply.complaint;
  EXPECT_NE(text->find("bf16 = 766 TFLOP/s"), std::string::npos) << *text;
  EXPECT_EQ(text->find("f64"), std::string::npos) << *text;
  EXPECT_NE(text->find("-- products concurrent with copies: 98 and 100 % of the rate alone\n"),
            std::string::npos)
      << *text;
  EXPECT_NE(text->find("reach = 1, attention = 266.7 TFLOP/s, convolution = 300 TFLOP/s"), std::string::npos)
      << *text;
  EXPECT_NE(session.execute("DESCRIBE h200").output.find("attention 267 TFLOP/s"), std::string::npos);
  EXPECT_NE(
      session.execute("CREATE DEVICE fast (f32 = 1 TFLOP/s, memory = 1 GiB, bandwidth = 1 TB/s, reach = 1.5)")
          .complaint.find("at most 1, found 1.5"),
      std::string::npos);
  EXPECT_FALSE(explain::print_device(rates, "NVIDIA H200", "two words").ok());
}

TEST(Profile, RejectsAnUnknownDevice) {
  Profile request;
  request.device = "tpu";
  EXPECT_NE(run(request).complaint.find("unknown device: tpu"), std::string::npos);
  request.device = "gpu";
  request.ranks = 2;
  EXPECT_NE(run(request).complaint.find("cannot be combined with --ranks"), std::string::npos);
}

}  // namespace
}  // namespace weft::command
