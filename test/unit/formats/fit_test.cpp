// Predictions of a fit to measured tables: unseen sizes, and which algorithm overtakes which.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "weft/base/file.h"
#include "weft/base/random.h"
#include "weft/formats/nccl_tests_log.h"
#include "weft/predict/sim/collective/fit.h"

namespace weft::sim {
namespace {

constexpr std::int32_t kRanks = 8;
constexpr std::int64_t kSmallest = 128, kLargest = std::int64_t{32} << 20;

struct Table {
  std::string name;
  AlgorithmShape shape;
  std::vector<Measurement> in_place, out_of_place;
};

std::vector<Table> tables() {
  std::vector<Table> all = {{"nccl_ring", ring_all_reduce(kRanks), {}, {}},
                            {"nccl_tree", tree_all_reduce(kRanks), {}, {}},
                            {"msccl_allpairs", all_pairs_all_reduce(kRanks), {}, {}},
                            // The source of neither program is available; the shape only scales
                            // bandwidth().
                            {"msccl_hierarchical", ring_all_reduce(kRanks), {}, {}},
                            {"msccl_pipeline", ring_all_reduce(kRanks), {}, {}}};
  for (Table& table : all) {
    const std::string path = std::string(WEFT_SOURCE_DIR "/test/data/nccl-tables/") + table.name + ".json";
    const auto text = read_file(path, 1 << 20);
    EXPECT_TRUE(text.ok()) << path;
    if (!text.ok()) continue;
    const auto read = formats::parse_collective_table(*text, path);
    EXPECT_TRUE(read.ok()) << (read.ok() ? "" : read.error().message);
    if (!read.ok()) continue;
    for (const auto& row : read->rows) {
      table.in_place.push_back({row.bytes, row.in_place_us * 1e-6});
      table.out_of_place.push_back({row.bytes, row.out_of_place_us * 1e-6});
    }
  }
  return all;
}

std::vector<Measurement> every_other(const std::vector<Measurement>& points, std::size_t first) {
  std::vector<Measurement> chosen;
  for (std::size_t i = first; i < points.size(); i += 2) chosen.push_back(points[i]);
  return chosen;
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return (values[values.size() / 2] + values[(values.size() - 1) / 2]) / 2;
}

struct Errors {
  double median = 0, max = 0;
};

// Fits to every other size from index `parity` on and predicts the rest.
Errors held_out_errors(const Table& table, const std::vector<Measurement>& points, std::size_t parity) {
  const auto fitted = fit(every_other(points, parity), table.shape);
  EXPECT_TRUE(fitted.ok());
  std::vector<double> errors;
  for (const Measurement& point : every_other(points, 1 - parity))
    errors.push_back(std::fabs(fitted->seconds(point.bytes) / point.seconds - 1));
  return {median(errors), *std::ranges::max_element(errors)};
}

TEST(Fit, InterpolatesMeasuredTables) {
  for (const Table& table : tables()) {
    for (const std::size_t parity : {0, 1}) {
      const Errors in_place = held_out_errors(table, table.in_place, parity);
      const Errors out_of_place = held_out_errors(table, table.out_of_place, parity);
      std::printf(
          "  %-19s half %zu  in place: median %4.1f %%, worst %4.1f %%  out of place: median %4.1f %%, worst "
          "%4.1f %%\n",
          table.name.c_str(), parity, 100 * in_place.median, 100 * in_place.max, 100 * out_of_place.median,
          100 * out_of_place.max);
      // The model was chosen with the in-place times in view, so it must do well on them. The other
      // times are the fairer test, and the requirement holds for them too.
      EXPECT_LT(in_place.median, 0.06) << table.name;
      EXPECT_LT(out_of_place.median, 0.10) << table.name;
    }
  }
}

std::string print(const std::vector<Crossover>& crossovers) {
  std::string text;
  for (const Crossover& each : crossovers)
    text += fmt::format("{}{:.0f} KiB", text.empty() ? "" : ", ", each.bytes / 1024);
  return text.empty() ? "none" : text;
}

// Whether every measured crossover is predicted within a factor of two, and no others.
bool agree(const std::vector<Crossover>& measured, const std::vector<Crossover>& predicted) {
  return std::ranges::equal(measured, predicted, [](const Crossover& a, const Crossover& b) {
    return a.first_is_faster_after == b.first_is_faster_after && std::fabs(std::log2(a.bytes / b.bytes)) <= 1;
  });
}

// How many of the ten pairs agree if each curve is fitted by `to_fit` from its measured points.
template <class ToFit>
int agreeing_pairs(const char* title, ToFit to_fit) {
  const std::vector<Table> all = tables();
  std::vector<Fit> fits;
  for (const Table& table : all) fits.push_back(to_fit(table));
  int agreeing = 0;
  for (std::size_t a = 0; a < all.size(); ++a) {
    for (std::size_t b = a + 1; b < all.size(); ++b) {
      const auto measured_curve = [&](std::size_t i) {
        return [&points = all[i].in_place](std::int64_t bytes) {
          return interpolate(points, static_cast<double>(bytes));
        };
      };
      const auto fitted_curve = [&](std::size_t i) {
        return [&each = fits[i]](std::int64_t bytes) { return each.seconds(bytes); };
      };
      // From the second size on: the first is a cold start.
      const auto measured = crossovers(measured_curve(a), measured_curve(b), 2 * kSmallest, kLargest);
      const auto predicted = crossovers(fitted_curve(a), fitted_curve(b), 2 * kSmallest, kLargest);
      const bool same = agree(measured, predicted);
      agreeing += same;
      std::printf("  %s  %-19s %-19s measured %-18s predicted %s%s\n", title, all[a].name.c_str(),
                  all[b].name.c_str(), print(measured).c_str(), print(predicted).c_str(),
                  same ? "" : "   MISSED");
    }
  }
  return agreeing;
}

TEST(Fit, FindsTheCrossoversOfEveryPairWithinOneSize) {
  EXPECT_EQ(agreeing_pairs("all sizes", [](const Table& table) { return *fit(table.in_place, table.shape); }),
            10);
}

// The half without the first size misses one: NCCL's ring and MSCCL's pipeline are within a tenth
// of each other over sixteen sizes, and the lead changes between two sizes that are not in the
// half.
TEST(Fit, FindsTheCrossoversFromHalfOfTheSizes) {
  const auto agreeing = [](std::size_t parity) {
    return agreeing_pairs(parity == 0 ? "half 0" : "half 1", [&](const Table& table) {
      return *fit(every_other(table.in_place, parity), table.shape);
    });
  };
  EXPECT_EQ(agreeing(0), 10);
  EXPECT_GE(agreeing(1), 9);
}

TEST(Fit, RecoversTheParametersOfATable) {
  // 5 us and 2 GB/s up to 64 KiB, then 20 us and 100 GB/s.
  std::vector<Measurement> points;
  for (std::int64_t bytes = 1024; bytes <= 1 << 26; bytes *= 2) {
    const auto size = static_cast<double>(bytes);
    points.push_back({bytes, bytes <= 65536 ? 5e-6 + 1.75 * size / 2e9 : 70e-6 + 1.75 * size / 100e9});
  }
  const auto fitted = fit(points, ring_all_reduce(8));
  ASSERT_TRUE(fitted.ok());
  ASSERT_EQ(fitted->regimes.size(), 2u);
  EXPECT_EQ(fitted->regimes[0].last_bytes, 65536);
  EXPECT_EQ(fitted->regimes[1].first_bytes, 131072);
  EXPECT_EQ(fitted->regimes[0].growth, Growth::streaming);
  EXPECT_NEAR(fitted->latency(), 5e-6, 1e-9);
  EXPECT_NEAR(fitted->bandwidth(), 100e9, 1e6);
  EXPECT_LT(fitted->max_relative_error, 1e-6);
  EXPECT_NEAR(fitted->seconds(3 << 20), 70e-6 + 1.75 * (3 << 20) / 100e9, 1e-9);
}

TEST(Fit, DistinguishesFillingFromStreaming) {
  std::vector<Measurement> points;
  for (std::int64_t bytes = 256; bytes <= 1 << 16; bytes *= 2)
    points.push_back({bytes, 10e-6 + 5e-8 * std::sqrt(static_cast<double>(bytes))});
  const auto fitted = fit(points, ring_all_reduce(8));
  ASSERT_TRUE(fitted.ok());
  ASSERT_EQ(fitted->regimes.size(), 1u);
  EXPECT_EQ(fitted->regimes[0].growth, Growth::filling);
  EXPECT_EQ(fitted->bandwidth(), 0);
}

TEST(Fit, IgnoresAColdStart) {
  std::vector<Measurement> points;
  for (std::int64_t bytes = 128; bytes <= 1 << 20; bytes *= 2)
    points.push_back({bytes, 10e-6 + 1e-11 * static_cast<double>(bytes)});
  points[0].seconds = 30e-6;
  const auto fitted = fit(points, ring_all_reduce(8));
  ASSERT_TRUE(fitted.ok());
  EXPECT_NEAR(fitted->seconds(128), 10e-6, 1e-8);
  EXPECT_NEAR(fitted->max_relative_error, 2.0 / 3, 1e-3);  // the error of that point is still reported
}

TEST(Fit, NoiseDoesNotAddRegimes) {
  for (std::uint64_t round = 0; round < 20; ++round) {
    std::vector<Measurement> points;
    for (std::int64_t bytes = 128; bytes <= 1 << 25; bytes *= 2)
      points.push_back({bytes, (10e-6 + 1.75 * static_cast<double>(bytes) / 100e9) *
                                   (1 + 0.005 * normal_at(7, round, static_cast<std::uint64_t>(bytes)))});
    const auto fitted = fit(points, ring_all_reduce(8));
    ASSERT_TRUE(fitted.ok());
    EXPECT_LE(fitted->regimes.size(), 2u);
    EXPECT_NEAR(fitted->bandwidth() / 100e9, 1, 0.02);
    for (const Regime& regime : fitted->regimes) {
      EXPECT_GE(regime.intercept, 0);
      EXPECT_GE(regime.slope, 0);
    }
  }
}

TEST(Fit, RejectsInvalidTables) {
  const auto message = [](std::vector<Measurement> points) {
    const auto fitted = fit(points, ring_all_reduce(8));
    return fitted.ok() ? "no error" : fitted.error().message;
  };
  EXPECT_EQ(message({{1, 1}, {2, 1}}), "expected 3 to 512 measured sizes, found 2");
  EXPECT_EQ(message(std::vector<Measurement>(513, {1, 1})), "expected 3 to 512 measured sizes, found 513");
  EXPECT_EQ(message({{1, 1}, {2, 1}, {2, 1}}),
            "expected ascending sizes of at least one byte, found 2 after 2");
  EXPECT_EQ(message({{0, 1}, {2, 1}, {3, 1}}),
            "expected ascending sizes of at least one byte, found 0 after 0");
  EXPECT_EQ(message({{1, 1}, {2, 0}, {3, 1}}), "expected a time above zero for 2 bytes, found 0 s");
  EXPECT_EQ(message({{1, 1}, {2, NAN}, {3, 1}}), "expected a time above zero for 2 bytes, found nan s");
}

TEST(Fit, SurvivesTheEndsOfItsRange) {
  for (const double seconds : {1e-15, 1e15}) {
    const std::vector<Measurement> points = {
        {1, 1e-15}, {2, seconds}, {3, 1e15}, {1LL << 62, 1e15}, {(1LL << 62) + 1, 1e15}};
    const auto fitted = fit(points, ring_all_reduce(8));
    ASSERT_TRUE(fitted.ok());
    for (const std::int64_t bytes : {std::int64_t{0}, std::int64_t{1}, std::int64_t{1} << 61, INT64_MAX})
      EXPECT_TRUE(std::isfinite(fitted->seconds(bytes)));
  }
}

TEST(Fit, SeparatesStepLatencyFromCallLatency) {
  const auto of = [](double steps, double latency) {
    return Fit{.shape = {.steps = steps, .wire = 1}, .regimes = {{.intercept = latency}}};
  };
  const std::vector<Fit> fits = {of(2, 6e-6), of(14, 12e-6), of(6, 8e-6)};
  const Latency latency = separate_latency(fits);
  EXPECT_NEAR(latency.base, 5e-6, 1e-12);
  EXPECT_NEAR(latency.step, 0.5e-6, 1e-12);
  const std::vector<Fit> backwards = {of(2, 12e-6), of(14, 6e-6)};
  EXPECT_EQ(separate_latency(backwards).step, 0);  // never negative
  EXPECT_EQ(separate_latency({}).base, 0);
}

TEST(Fit, KnowsTheShapesOfClassicAlgorithms) {
  EXPECT_EQ(ring_all_reduce(8).steps, 14);
  EXPECT_EQ(ring_all_reduce(8).wire, 1.75);
  EXPECT_EQ(tree_all_reduce(8).steps, 6);
  EXPECT_EQ(tree_all_reduce(9).steps, 8);
  EXPECT_EQ(tree_all_reduce(1).steps, 0);
  EXPECT_EQ(all_pairs_all_reduce(8).steps, 2);
}

TEST(Crossovers, IgnoreSmallLeads) {
  const Curve flat = [](std::int64_t) { return 1e-5; };
  const Curve rising = [](std::int64_t bytes) { return 5e-6 + 5e-6 * static_cast<double>(bytes) / 65536; };
  const auto found = crossovers(flat, rising, 1024, 1 << 24);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_NEAR(std::log2(found[0].bytes / 65536), 0, 0.1);
  EXPECT_TRUE(found[0].first_is_faster_after);
  const Curve wavering = [](std::int64_t bytes) { return 1e-5 * (bytes > 65536 ? 1.03 : 0.97); };
  EXPECT_TRUE(crossovers(flat, wavering, 1024, 1 << 24).empty());
  EXPECT_EQ(crossovers(flat, wavering, 1024, 1 << 24, 0.01).size(), 1u);
  EXPECT_TRUE(crossovers(flat, rising, 1024, 1024).empty());
}

TEST(Interpolate, IsLinearInLogarithms) {
  const std::vector<Measurement> points = {{1024, 1e-6}, {4096, 4e-6}, {16384, 4e-6}};
  EXPECT_NEAR(interpolate(points, 2048), 2e-6, 1e-15);
  EXPECT_NEAR(interpolate(points, 8192), 4e-6, 1e-15);
  EXPECT_NEAR(interpolate(points, 512), 0.5e-6, 1e-15);
  EXPECT_NEAR(interpolate(std::span(points).first(2), 16384), 16e-6, 1e-15);
  EXPECT_EQ(interpolate(std::span(points).first(1), 7), 1e-6);
}

}  // namespace
}  // namespace weft::sim
