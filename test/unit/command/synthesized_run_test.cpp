// Synthesized programs run with the right result, on all published topologies of at most 16
// devices.
#include <unistd.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>

#include "temporary_folder.h"
#include "weft/app/command/collective.h"
#include "weft/app/session/session.h"
#include "weft/base/file.h"
#include "weft/collectives/check/check.h"
#include "weft/collectives/chunks/program_text.h"
#include "weft/collectives/compile/compile.h"
#include "weft/collectives/synthesis/all_to_all.h"
#include "weft/collectives/synthesis/forest.h"
#include "weft/collectives/synthesis/path_program.h"
#include "weft/collectives/synthesis/time_search.h"
#include "weft/collectives/synthesis/tree_program.h"
#include "weft/formats/safetensors.h"
#include "weft/formats/topology_json.h"

namespace weft::command {

using namespace session;
namespace {

using collective::Kind;

const std::filesystem::path kWires = WEFT_SOURCE_DIR "/../shared/corpus/ccl-topologies";
constexpr const char* kSmall[] = {"dgx1_25GBps",        "direct_ring8",        "direct_mesh4x4",
                                  "direct_torus4x4",    "forestcoll_a100x1",   "forestcoll_a100x2",
                                  "forestcoll_mi250x1", "sccl_AMD4",           "sccl_AMD8",
                                  "sccl_DGX1",          "sccl_Ring8_Z52_model"};

cluster::Topology published(const char* name) {
  const std::string path = (kWires / (std::string(name) + ".json")).string();
  const auto text = read_file(path, 1 << 24);
  auto topology = formats::read_topology_json(*text, path);
  EXPECT_TRUE(topology.ok()) << name;
  return std::move(topology).value();
}

// Through the command, on threads of this process.
void expect_to_run(const collective::Program& program, const std::string& what) {
  const std::filesystem::path file = std::filesystem::temp_directory_path() /
                                     ("weft_synthesized_" + std::to_string(::getpid()) + ".program");
  ASSERT_TRUE(write_file_atomically(file.string(), collective::print(program)).ok());
  CollectiveRun request;
  request.program = file.string();
  request.bytes = "64KiB";
  request.verify = true;
  request.repeat = 1;
  request.in_place = program.placement == collective::Placement::in_place;
  const Reply reply = run(request);
  std::filesystem::remove(file);
  EXPECT_EQ(reply.exit_code, ExitCode::ok) << what << ": " << reply.output << reply.complaint;
}

TEST(SynthesizedRun, TreesGatherAndReduce) {
  if (!std::filesystem::exists(kWires)) GTEST_SKIP() << "the corpus is not installed";
  for (const char* name : kSmall)
    for (const Kind kind : {Kind::all_gather, Kind::all_reduce}) {
      const auto forest = synthesis::grow_forest(published(name), kind, 0);
      ASSERT_TRUE(forest.ok()) << name << ": " << forest.error().message;
      synthesis::TreeProgram request;
      request.chunks = forest->trees;
      const auto program = synthesis::tree_program(request, *forest);
      ASSERT_TRUE(program.ok()) << name << ": " << program.error().message;
      expect_to_run(*program, name);
    }
}

TEST(SynthesizedRun, TimeExpandedSchedulesRunEveryCollective) {
  if (!std::filesystem::exists(kWires)) GTEST_SKIP() << "the corpus is not installed";
  for (const char* name : {"dgx1_25GBps", "forestcoll_a100x1", "sccl_AMD4"})
    for (const Kind kind : {Kind::all_gather, Kind::reduce_scatter, Kind::all_reduce, Kind::all_to_all}) {
      const auto network = synthesis::step_network(published(name));
      ASSERT_TRUE(network.ok());
      const auto found = synthesis::search_in_time(*network, {kind, 0, 64e3, 1}, {1, 1}, {});
      ASSERT_TRUE(found.ok()) << found.error().message;
      const auto program = collective::compile(synthesis::time_moves(*network, *found));
      ASSERT_TRUE(program.ok()) << name << ": " << program.error().message;
      expect_to_run(*program, std::string(name) + " " + std::string(collective::name(kind)));
    }
}

TEST(SynthesizedRun, FlowsDeliverEveryBlock) {
  if (!std::filesystem::exists(kWires)) GTEST_SKIP() << "the corpus is not installed";
  for (const char* name : {"dgx1_25GBps", "direct_torus4x4"}) {
    const auto ways = synthesis::route_all_to_all(published(name));
    ASSERT_TRUE(ways.ok()) << ways.error().message;
    synthesis::PathProgram request;
    request.ranks = published(name).devices;
    request.chunks = 4;
    const auto program = synthesis::path_program(request, ways->paths, ways->routes);
    ASSERT_TRUE(program.ok()) << name << ": " << program.error().message;
    expect_to_run(*program, name);
  }
}

// Two ranks sum to the same bits in either order, whatever runs the sum, so equal weights show that
// it ran correctly.
TEST(SynthesizedRun, APlanRunsTheTreesItNames) {
  const TemporaryFolder folder;
  const auto trained = [&](const std::string& file, const std::string& algorithm) {
    Session session;
    const Reply reply = session.execute(
        "SET prove = false; TRAIN digits_mlp ON LOCAL 2 FROM '" WEFT_SOURCE_DIR
        "/examples/digits.csv.gz' STEPS 5 WITH (distribution = 'rank=2: slice b', checkpoint = '" +
        (folder / file) + "', algorithm = '" + algorithm + "')");
    EXPECT_EQ(reply.exit_code, ExitCode::ok) << reply.complaint;
    return formats::load(folder / file);
  };
  const auto by_ring = trained("ring.safetensors", "all_reduce_ring");
  const auto by_trees = trained("trees.safetensors", "all_reduce_trees(shape=ring)");
  ASSERT_TRUE(by_ring.ok() && by_trees.ok());
  ASSERT_EQ(by_ring->tensors.size(), by_trees->tensors.size());
  ASSERT_FALSE(by_ring->tensors.empty());
  for (std::size_t i = 0; i < by_ring->tensors.size(); ++i)
    EXPECT_TRUE(std::ranges::equal(by_ring->tensors[i].data, by_trees->tensors[i].data))
        << by_ring->tensors[i].name;
  Session session;
  EXPECT_EQ(session.execute("SET algorithm = 'all_reduce_trees(pieces=2, shape=full)'").exit_code,
            ExitCode::ok);
  const Reply explained = session.execute(
      "EXPLAIN (COLLECTIVES) TRAIN digits_mlp ON LOCAL 2 WITH (distribution = 'rank=2: slice b')");
  EXPECT_NE(explained.output.find("trees(pieces=2, shape=full)"), std::string::npos)
      << explained.output << explained.complaint;
}

}  // namespace
}  // namespace weft::command
