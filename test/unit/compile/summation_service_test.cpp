#include "weft/collectives/algorithm/summation_service.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "weft/collectives/algorithm/library.h"
#include "weft/collectives/check/check.h"
#include "weft/collectives/compile/compile.h"

namespace weft::collective {
namespace {

// From Jiang et al., for n GPU machines and k <= n CPU machines with equal network cards: their
// shares of the data.
double share_of_worker(int n, int k) { return static_cast<double>(n - k) / (n * n + k * n - 2 * k); }
double share_of_server(int n, int k) { return 2.0 * (n - 1) / (n * n + k * n - 2 * k); }

// As finely divided as necessary.
constexpr int kFine = 64;

TEST(SummationService, MatchesBytePs) {
  for (int n = 3; n <= 16; ++n)
    for (int k = 1; k <= n; ++k) {
      SCOPED_TRACE(testing::Message() << n << " workers, " << k << " servers");
      const SummationService found = best_split(n, k, 1, kFine);
      const auto all = static_cast<double>(found.chunks(n));
      const double optimum = n * share_of_server(n, k);
      EXPECT_NEAR(found.own / all, share_of_worker(n, k), 1e-12);
      EXPECT_NEAR(found.served / all, share_of_server(n, k), 1e-12);
      EXPECT_NEAR(busiest_card(found, n, 1), optimum, 1e-12);
      EXPECT_LT(optimum, 2.0 * (n - 1) / n);
      // As many chunks as there are channels come close.
      EXPECT_LE(busiest_card(best_split(n, k, 1), n, 1), 1.03 * optimum);
    }
  // Two ranks send each other as much as they would send a server.
  EXPECT_DOUBLE_EQ(busiest_card(best_split(2, 1, 1), 2, 1), 1);
}

TEST(SummationService, WithEnoughServersWorkersSumNothing) {
  EXPECT_EQ(best_split(3, 3, 1), (SummationService{3, 0, 1}));
  EXPECT_EQ(best_split(3, 7, 1), (SummationService{7, 0, 1}));
  EXPECT_DOUBLE_EQ(busiest_card(best_split(3, 7, 1), 3, 1), 1);
}

// Per card: a worker sends what others sum and, to each other worker, what it summed itself.
double busiest_by_counting(int n, int k, double own, double server_rate) {
  const double served = (1 - n * own) / k;
  return std::max((1 - own) + (n - 1) * own, n * served / server_rate);
}

TEST(SummationService, IsOptimalForCardsOfAnyRate) {
  for (const double rate : {1.0, 0.5, 1.0 / 3, 1.0 / 8, 4.0})
    for (int n = 2; n <= 9; ++n)
      for (int k = 1; k <= 5; ++k) {
        const double found = busiest_card(best_split(n, k, rate, kFine), n, rate);
        double least = 1e9;
        constexpr int kSteps = 20000;
        for (int i = 0; i <= kSteps; ++i)
          least = std::min(least, busiest_by_counting(n, k, i / (static_cast<double>(kSteps) * n), rate));
        EXPECT_LE(found, least * 1.01) << n << ' ' << k << ' ' << rate;
        EXPECT_GE(found, least * 0.999) << n << ' ' << k << ' ' << rate;
      }
}

TEST(SummationService, ProgramsAreProvenCorrect) {
  const AlgorithmLibrary& library = shipped_algorithms();
  const auto algorithm = find_algorithm(library, kSummationService);
  ASSERT_TRUE(algorithm.ok());
  for (const auto& [workers, servers] : {std::pair{1, 1}, {2, 1}, {3, 2}, {4, 2}, {2, 3}, {5, 1}})
    for (const int most : {1, 3, kMostSplitChunks}) {
      const SummationService service = best_split(workers, servers, 1, most);
      auto reference = parse_reference(print(service));
      ASSERT_TRUE(reference.ok());
      reference->arguments["ranks"] = std::int64_t{workers + servers};
      const auto moves = trace(*algorithm, reference->arguments, library);
      ASSERT_TRUE(moves.ok()) << moves.error().message;
      const auto program = compile(*moves);
      ASSERT_TRUE(program.ok()) << workers << ' ' << servers << ": " << program.error().message;
      EXPECT_FALSE(check(*program).finding.has_value());
      EXPECT_EQ(loop_chunks(program->collective), service.chunks(workers));
      // Servers contribute nothing and need no result.
      for (const CustomWant& want : program->collective.wants) {
        EXPECT_LT(want.rank, workers);
        EXPECT_EQ(want.contributions.size(), static_cast<std::size_t>(workers));
        EXPECT_LT(want.contributions.back().rank, workers);
      }
    }
}

TEST(SummationService, NameDescribesTheSplit) {
  const SummationService service{2, 1, 3};
  EXPECT_EQ(print(service), "custom_summation_service(own=1, served=3, servers=2)");
  EXPECT_EQ(find_summation_service(print(service)), service);
  EXPECT_EQ(find_summation_service("custom_summation_service"), (SummationService{1, 0, 1}));
  EXPECT_EQ(find_summation_service("all_reduce_ring(channels=2)"), std::nullopt);
  EXPECT_EQ(find_summation_service("custom_summation_services"), std::nullopt);
  EXPECT_EQ(find_summation_service("direct two-shot"), std::nullopt);
}

}  // namespace
}  // namespace weft::collective
