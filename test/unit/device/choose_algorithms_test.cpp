// The algorithm of each collective in a program: chosen by cost, the same on all ranks.
#include "weft/predict/cost/choose_algorithms.h"

#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "lockstep_ranks.h"

namespace weft::cost {
namespace {

plan::Mesh mesh_of(std::string_view text) { return plan::read_mesh(text).value(); }

// Rows become columns and back. Of 7 rows, the last of 3 ranks has one and the others three.
constexpr std::string_view kTransposed = R"(plan p
%0 = input {name=x, type=f32[b=7,d=6], layout="sliced(b) on gpu"}
%1 = all-to-all %0 {axis=gpu, from=b, to=d}
%2 = relu %1
%3 = all-to-all %2 {axis=gpu, from=d, to=b}
%4 = all-gather %3 {axis=gpu, along=b}
return y=%4
)";

// By size: a rank that moves less than the others would choose differently.
StepCosts by_size(std::int64_t few_bytes) {
  StepCosts costs;
  costs.exchange = [few_bytes](const program::Exchange&, std::size_t, std::int64_t bytes) {
    ExchangeCost price;
    price.algorithm = bytes <= few_bytes ? "few" : "many";
    if (price.algorithm == "many") price.protocol = collective::Protocol::ll128;
    return price;
  };
  return costs;
}

std::vector<std::string> names_of(const program::Program& program) {
  std::vector<std::string> names;
  for (const program::ChosenAlgorithm& one : algorithms_of(program)) names.push_back(print(one));
  return names;
}

TEST(ChooseAlgorithms, TheLargestShardDecidesForAllRanks) {
  const plan::Mesh mesh = mesh_of("gpu=3");
  const plan::Graph graph = ops::read_plan(kTransposed);
  // The first rank sends 3 x 6 elements of 4 bytes and the last 1 x 6; each receives 7 x 2.
  const auto chosen = choose_algorithms(program::programs_of(graph, mesh), mesh, by_size(60));
  ASSERT_TRUE(chosen.ok()) << chosen.error().message;
  for (const program::Program& program : *chosen)
    EXPECT_EQ(names_of(program), (std::vector<std::string>{"many LL128", "many LL128", "many LL128"}));
  const auto larger = choose_algorithms(program::programs_of(graph, mesh), mesh, by_size(80)).value();
  for (const program::Program& program : larger)
    EXPECT_EQ(names_of(program), (std::vector<std::string>{"few", "few", "many LL128"}));
}

TEST(ChooseAlgorithms, KeepsAndPrintsNamedAlgorithms) {
  const plan::Mesh mesh = mesh_of("gpu=2");
  std::vector<program::Program> programs = program::programs_of(ops::read_plan(ops::kTwoSums), mesh);
  EXPECT_NE(print(programs[0]).find("all-reduce sum over gpu [16] using the communicator's choice: "),
            std::string::npos)
      << print(programs[0]);
  for (program::Program& program : programs) {
    std::vector<program::ChosenAlgorithm> algorithms = algorithms_of(program);
    ASSERT_EQ(algorithms.size(), 2u);
    algorithms[0] = {.name = "all_reduce_ring", .priority = collective::Priority::high};
    program = with_algorithms(std::move(program), algorithms).value();
  }
  const auto chosen = choose_algorithms(std::move(programs), mesh, by_size(1 << 20)).value();
  for (const program::Program& program : chosen)
    EXPECT_EQ(names_of(program), (std::vector<std::string>{"all_reduce_ring, high priority", "few"}));
  EXPECT_NE(print(chosen[1]).find("all-reduce sum over gpu [16] using all_reduce_ring, high priority: "),
            std::string::npos)
      << print(chosen[1]);
}

// A group of one rank moves nothing, so nothing is chosen.
TEST(ChooseAlgorithms, ASingleRankNeedsNoAlgorithm) {
  const plan::Mesh mesh = mesh_of("gpu=1");
  const auto chosen =
      choose_algorithms(program::programs_of(ops::read_plan(ops::kTwoSums), mesh), mesh, by_size(0)).value();
  for (const std::string& name : names_of(chosen[0])) EXPECT_EQ(name, "the communicator's choice");
}

TEST(ChooseAlgorithms, RejectsRanksWithDifferentCollectives) {
  const plan::Mesh mesh = mesh_of("gpu=3");
  const std::vector<program::Program> one = program::programs_of(ops::read_plan(kTransposed), mesh),
                                      other = program::programs_of(ops::read_plan(ops::kTwoSums), mesh);
  const auto fewer = choose_algorithms({one[0], other[0]}, mesh, by_size(0));
  ASSERT_FALSE(fewer.ok());
  EXPECT_EQ(fewer.error().message, "the ranks do not run the same collectives: 3 against 2");
  EXPECT_EQ(with_algorithms(one[0], algorithms_of(other[0])).error().message,
            "algorithms are chosen for 2 collectives, the program has 3");
  EXPECT_EQ(choose_algorithms(one, mesh_of("node=3"), by_size(0)).error().message,
            "the programs communicate along axis gpu, which the mesh lacks");
}

// Tables show a short name; the program has the full name.
TEST(ChooseAlgorithms, ShortNamesOmitTheCollective) {
  ExchangeCost price;
  price.algorithm = "all_reduce_ring(channels=3)";
  price.protocol = collective::Protocol::ll128;
  EXPECT_EQ(short_name(plan::ExchangeKind::all_reduce, price), "ring(channels=3) LL128");
  EXPECT_EQ(short_name(plan::ExchangeKind::all_gather, price), "all_reduce_ring(channels=3) LL128");
  EXPECT_EQ(short_name(plan::ExchangeKind::all_reduce, {.algorithm = "direct"}), "direct");
  EXPECT_EQ(short_name(plan::ExchangeKind::all_reduce, {}), "the communicator's choice");
}

}  // namespace
}  // namespace weft::cost
