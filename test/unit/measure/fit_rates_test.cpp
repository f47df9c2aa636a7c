// Rates fitted to tables of kernels: made-up ones are recovered, NVIDIA's are met on shapes never seen, and bad
// tables are refused with the line.
#include "weft/runtime/measure/fit_rates.h"

#include <algorithm>
#include <filesystem>
#include <map>

#include <gtest/gtest.h>

#include "weft/base/file.h"
#include "weft/formats/gzip.h"

namespace weft::measure {
namespace {

using cluster::RateKind;

constexpr std::int64_t kMost = std::int64_t{1} << 28;

std::vector<RateRow> rows_of(const std::filesystem::path& path) {
  std::string text = read_file(path.string(), kMost).value();
  if (path.extension() == ".gz") text = formats::inflate_gzip(text, kMost, path.string()).value();
  return read_rate_rows(text, path.filename().string()).value();
}

std::filesystem::path data(std::string_view name) {
  return std::filesystem::path(WEFT_SOURCE_DIR) / "test/data" / name;
}

TEST(FitRatesTest, RecoversMadeUpProducts) {
  const auto fits = fit_rates(rows_of(data("made_up_products.csv")), {}).value();
  ASSERT_EQ(fits.size(), 1u);
  EXPECT_EQ(fits[0].rates.device, "made_up");
  ASSERT_EQ(fits[0].errors.size(), 2u);
  for (const RateErrors& errors : fits[0].errors) EXPECT_LT(errors.median, 0.1) << errors.part;
}

TEST(FitRatesTest, CollectivesOfOneDeviceAreThoseOfItsTable) {
  const auto rows = rows_of(data("made_up_collectives.csv"));
  const auto fits = fit_rates(rows, {}).value();
  ASSERT_EQ(fits.size(), 1u);
  EXPECT_EQ(fits[0].rates.tables.size(), 2u);
  for (const RateErrors& errors : errors_of(fits[0].rates, rows)) EXPECT_LT(errors.median, 0.03);
}

TEST(FitRatesTest, RefusesBadTables) {
  const auto message = [](std::string_view text) {
    const auto rows = read_rate_rows(text, "a.csv");
    return rows.ok() ? std::string() : rows.error().message;
  };
  EXPECT_EQ(message(""), "a.csv:0: expected a header with the names of columns, found nothing");
  EXPECT_EQ(message("gpu,dtype,m,n,k,us\n"), "a.csv:1: expected rows below the header, found none");
  EXPECT_EQ(message("gpu,dtype,m,n,us\n"),
            "a.csv:1: expected a column k in a table of products, found gpu, dtype, m, n, us");
  EXPECT_EQ(message("gpu,dtype,m,n,k,us\nx,bf16,1,2,3\n"), "a.csv:2: expected 6 values, found 5");
  EXPECT_EQ(message("gpu,dtype,m,n,k,us\nx,bf16,1,2,0,4\n"),
            "a.csv:2: expected k of at least 1, found \"0\"");
  EXPECT_EQ(message("gpu,dtype,m,n,k,us\nx,bf16,1,2,3,nan\n"),
            "a.csv:2: expected us of at least 1e-06, found \"nan\"");
  EXPECT_EQ(message("gpu,gpu,m\n"), "a.csv:1: the column gpu is given twice");
  const auto rows = read_rate_rows("gpu,dtype,m,n,k,us\nx,bf16,1,2,3,4\n", "a.csv").value();
  EXPECT_EQ(fit_rates(rows, {.device = "y"}).error().message, "no rows of the device y");
}

// Median errors on the half of the shapes that was not fitted. A100's attention was measured twice, with times
// that differ by 1.4 at the same shape; a collective is held out with all its sizes.
TEST(FitRatesTest, MeetsNvidiasTablesOnUnseenShapes) {
  const std::filesystem::path folder =
      std::filesystem::path(WEFT_SOURCE_DIR) / "../shared/corpus/device-sweeps";
  if (!std::filesystem::exists(folder)) GTEST_SKIP() << "the corpus of device sweeps is not here";
  const std::map<std::string, double> bounds = {
      {"product", 0.08}, {"prefill", 0.05}, {"decode", 0.07}, {"mamba2", 0.15}};
  for (const std::string file : {"gemm", "attention_prefill", "attention_decode", "mamba2"}) {
    const auto rows = rows_of(folder / (file + ".csv.gz"));
    const auto fits = fit_rates(rows, {.device = "h100"}).value();
    for (const RateErrors& errors : fits[0].errors)
      EXPECT_LT(errors.median, bounds.at(std::string(name(errors.kind))))
          << errors.variant << " " << errors.part;
  }
}

// Every number of GPUs of a collective left out in turn: what the others and sibling devices foretell.
TEST(FitRatesTest, CollectivesFollowTheirSiblings) {
  const std::filesystem::path path =
      std::filesystem::path(WEFT_SOURCE_DIR) / "../shared/corpus/device-sweeps/nccl.csv.gz";
  if (!std::filesystem::exists(path)) GTEST_SKIP() << "the corpus of device sweeps is not here";
  const auto rows = rows_of(path);
  std::vector<double> errors;
  for (const auto& [device, collective, gpus] :
       {std::tuple("h200", "all_gather", 4.0), std::tuple("b200", "reduce_scatter", 8.0),
        std::tuple("a100", "all_reduce", 4.0)}) {
    std::vector<const RateRow*> others;
    std::vector<RateRow> left_out;
    for (const RateRow& row : rows)
      if (row.device == device && row.variant == collective && row.sizes[0] == gpus)
        left_out.push_back(row);
      else
        others.push_back(&row);
    ASSERT_FALSE(left_out.empty());
    for (auto& [fitted, tables] : fit_collectives(others)) {
      if (fitted != device) continue;
      cluster::Rates rates;
      rates.device = fitted;
      rates.tables = std::move(tables);
      for (const RateErrors& of : errors_of(rates, left_out))
        EXPECT_LT(of.median, 0.1) << device << " " << collective;
    }
  }
}

}  // namespace
}  // namespace weft::measure
