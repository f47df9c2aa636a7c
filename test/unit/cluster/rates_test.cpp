// The text of a device's rates: what it estimates, that printing and reading agree, and that no text crashes.
#include "weft/plan/cluster/rates.h"

#include <cmath>
#include <string>

#include <vector>

#include <gtest/gtest.h>

#include "weft/base/hash.h"

namespace weft::cluster {
namespace {

const std::string kRates =
    "# Made up.\n"
    "rates card\n"
    "attention_gradient 0.8\n"
    "table product bf16\n"
    "  rows 40 error 0.030 p90 0.100\n"
    "  base 2e-06 1e+14 1e+12\n"
    "  processors 100\n"
    "  grid m 0 10 n 5 10\n"
    "100 200 300 400\n"
    "  factor partial grid m 5 13\n"
    "0 0\n"
    "table collective all_reduce\n"
    "  rows 0 error 0.000 p90 0.000\n"
    "  base 5e-06 0 1e+11\n"
    "  grid gpus 1 3 bytes 9 29\n"
    "0 0 0 0\n";

TEST(RatesTest, EstimatesABaseTimesTheInterpolatedGrids) {
  const auto rates = read_rates(kRates, "card.rates");
  ASSERT_TRUE(rates.ok()) << rates.error().message;
  const double m = 32, n = 1024, k = 2048;  // log2(m) is half way, n is at the last knot
  const double base = 2e-6 + 2 * m * n * k / 1e14 + (2 * (m * k + n * k) + 2 * m * n) / 1e12;
  EXPECT_NEAR(*rates->product_seconds("bf16", m, n, k), base * std::exp(0.3), 1e-12);
  EXPECT_NEAR(*rates->product_seconds("bf16", 1024, 1 << 20, k),
              (2e-6 + 2. * 1024 * (1 << 20) * k / 1e14 +
               (2. * (1024 + (1 << 20)) * k + 2. * 1024 * (1 << 20)) / 1e12) *
                  std::exp(0.4),
              1e-9)
      << "beyond its knots a grid is constant";
  EXPECT_NEAR(*rates->collective_seconds("all_reduce", 4, 1e9), 5e-6 + 1.5e9 / 1e11, 1e-9);
  EXPECT_FALSE(rates->product_seconds("fp8", m, n, k));
  EXPECT_FALSE(rates->attention_seconds(1, 8, 8, 128, 1024, 1));
  EXPECT_EQ(rates->attention_gradient_share, 0.8);
}

TEST(RatesTest, ReadsWhatItPrints) { EXPECT_EQ(print(read_rates(kRates, "card.rates").value()), kRates); }

TEST(RatesTest, ErrorsNameTheLine) {
  const auto message = [](std::string_view text) {
    const auto rates = read_rates(text, "a");
    return rates.ok() ? std::string() : rates.error().message;
  };
  EXPECT_EQ(message(""), "a:1: expected `rates NAME`, found nothing");
  EXPECT_EQ(message("table product bf16\n"), "a:1: expected `rates NAME`, found \"table\"");
  EXPECT_EQ(message("rates x\ntable prodct bf16\n"), "a:2: unknown kind of table: prodct");
  EXPECT_EQ(message("rates x\ntable product bf16\nbase 0 0 0\n"), "a:3: a base of zeros estimates no time");
  EXPECT_EQ(message("rates x\ntable product bf16\ngrid q 1\n"),
            "a:3: a table of kind product has no feature q");
  EXPECT_EQ(message("rates x\ntable product bf16\ngrid m 2 1\n"), "a:3: knots must ascend");
  EXPECT_EQ(message("rates x\ntable product bf16\nbase 1e-6 0 0\ngrid m 1 2\n5\n"),
            "a:6: the grid before has 2 nodes, found 1 values");
  EXPECT_EQ(message("rates x\ntable product bf16\ngrid m 1\n5 6\n"),
            "a:4: the grid has 1 nodes, found more values");
  EXPECT_EQ(message("rates x\ntable product bf16\n"), "a:3: the table product bf16 has no base");
  EXPECT_EQ(message("rates x\ntable product bf16\ngrid m 1\nnan\n"), "a:4: unknown word: nan");
}

// Any text is rates or an error; rates estimate finite times.
TEST(RatesTest, TruncatedAndGarbledTextsAreRatesOrErrors) {
  const auto promise = [](const std::string& text) {
    const auto rates = read_rates(text, "a");
    if (!rates.ok()) {
      EXPECT_TRUE(rates.error().message.starts_with("a:"));
      return;
    }
    for (const RateTable& table : rates->tables) {
      std::vector<double> sizes(rate_sizes(table.kind).size(), 2.0);
      EXPECT_TRUE(std::isfinite(table.seconds(sizes)));
      EXPECT_GT(table.seconds(sizes), 0);
    }
    EXPECT_TRUE(read_rates(print(*rates), "b").ok());
  };
  for (std::size_t length = 0; length <= kRates.size(); ++length) promise(kRates.substr(0, length));
  std::uint64_t state = 7;
  const auto next = [&](std::uint64_t below) { return (state = mix(state + 1)) % below; };
  for (int round = 0; round < 20'000; ++round) {
    std::string text = kRates;
    for (std::uint64_t changes = 1 + next(4); changes > 0; --changes) {
      const std::size_t at = next(text.size());
      switch (next(4)) {
        case 0: text[at] = static_cast<char>(next(256)); break;
        case 1: text.erase(at, 1 + next(20)); break;
        case 2: text.insert(at, kRates.substr(next(kRates.size()), next(30))); break;
        default: text[at] = "0123456789-.e \n"[next(15)]; break;
      }
      if (text.empty()) text = "x";
    }
    promise(text);
  }
}

}  // namespace
}  // namespace weft::cluster
