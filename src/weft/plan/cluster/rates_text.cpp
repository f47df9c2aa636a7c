#include <cmath>

#include <fmt/format.h>

#include "weft/base/number.h"
#include "weft/plan/cluster/rates.h"

namespace weft::cluster {
namespace {

constexpr std::size_t kMostRateTables = 64, kMostRateGrids = 16, kMostRateKnots = 64, kMostRateNodes = 20'000;
constexpr double kLogUnit = 1e-3;

class RatesReader {
 public:
  explicit RatesReader(std::string_view path) : path_(path) {}

  Result<Rates> read(std::string_view text) {
    while (!text.empty()) {
      ++line_;
      const std::size_t end = std::min(text.find('\n'), text.size());
      std::string_view line = text.substr(0, end);
      text.remove_prefix(std::min(end + 1, text.size()));
      if (line.ends_with('\r')) line.remove_suffix(1);
      WEFT_TRY_STATUS(read_line(line));
    }
    ++line_;
    WEFT_TRY_STATUS(end_table());
    if (rates_.device.empty()) return error("expected `rates NAME`, found nothing");
    return std::move(rates_);
  }

 private:
  Error error(std::string message, std::string hint = {}) const {
    return user_error(fmt::format("{}:{}: {}", path_, line_, message), std::move(hint));
  }

  Status read_line(std::string_view line) {
    words_.clear();
    for (std::size_t at = 0; at < line.size();) {
      const std::size_t from = line.find_first_not_of(" \t", at);
      if (from == std::string_view::npos) break;
      at = std::min(line.find_first_of(" \t", from), line.size());
      words_.push_back(line.substr(from, at - from));
    }
    if (words_.empty()) return {};
    const std::string_view first = words_.front();
    if (first.starts_with('#')) {
      line.remove_prefix(line.find('#') + 1);
      if (line.starts_with(' ')) line.remove_prefix(1);
      rates_.comment += fmt::format("{}\n", line);
      return {};
    }
    if (first == "rates") return read_device();
    if (rates_.device.empty()) return error(fmt::format("expected `rates NAME`, found {:?}", first));
    if (first == "attention_gradient") return read_share();
    if (first == "table") return begin_table();
    if (rates_.tables.empty()) return error(fmt::format("expected `table KIND VARIANT`, found {:?}", first));
    if (first == "rows") return read_rows();
    if (first == "base") return read_base();
    if (first == "processors") return read_processors();
    if (first == "grid" || first == "factor") return begin_grid();
    return read_values();
  }

  Status read_device() {
    if (!rates_.device.empty()) return error("rates are given twice", "write one file per device");
    if (words_.size() != 2) return error("expected `rates NAME`");
    rates_.device = words_[1];
    return {};
  }

  Result<double> number(std::size_t word, double low, double high) const {
    const auto value = word < words_.size() ? read_number<double>(words_[word], low, high) : std::nullopt;
    if (value) return *value;
    return error(
        fmt::format("expected a number from {} to {}, found {}", low, high,
                    word < words_.size() ? fmt::format("{:?}", words_[word]) : "the end of the line"));
  }

  Status read_share() {
    WEFT_TRY(share, number(1, 0.01, 10));
    if (words_.size() != 2) return error("expected `attention_gradient SHARE`");
    rates_.attention_gradient_share = share;
    return {};
  }

  Status begin_table() {
    WEFT_TRY_STATUS(end_table());
    if (words_.size() != 3) return error("expected `table KIND VARIANT`, such as `table product bf16`");
    const auto kind = find_rate_kind(words_[1]);
    if (!kind)
      return error(fmt::format("unknown kind of table: {}", words_[1]),
                   "known are product, prefill, decode, experts, mamba2 and collective");
    if (rates_.find(*kind, words_[2]) != nullptr)
      return error(fmt::format("the table {} {} is given twice", words_[1], words_[2]), "remove one of them");
    if (rates_.tables.size() == kMostRateTables)
      return error(fmt::format("more than {} tables", kMostRateTables));
    rates_.tables.emplace_back();
    rates_.tables.back().kind = *kind;
    rates_.tables.back().variant = words_[2];
    return {};
  }

  Status read_rows() {
    if (words_.size() != 6 || words_[2] != "error" || words_[4] != "p90")
      return error("expected `rows COUNT error FRACTION p90 FRACTION`");
    WEFT_TRY(rows, number(1, 0, 1e12));
    WEFT_TRY(median, number(3, 0, 1e6));
    WEFT_TRY(most, number(5, 0, 1e6));
    RateTable& table = rates_.tables.back();
    table.rows = static_cast<std::int64_t>(rows);
    table.error = median;
    table.error_p90 = most;
    return {};
  }

  Status read_base() {
    if (words_.size() != 4) return error("expected `base SECONDS FLOPS_PER_SECOND BYTES_PER_SECOND`");
    WEFT_TRY(fixed, number(1, 0, 1));
    WEFT_TRY(flops, number(2, 0, 1e21));
    WEFT_TRY(bytes, number(3, 0, 1e18));
    if (!(fixed > 0) && !(flops > 0) && !(bytes > 0)) return error("a base of zeros estimates no time");
    RateTable& table = rates_.tables.back();
    table.fixed_seconds = fixed;
    table.flops_per_second = flops;
    table.bytes_per_second = bytes;
    return {};
  }

  Status read_processors() {
    WEFT_TRY(processors, number(1, 1, 1e6));
    if (words_.size() != 2) return error("expected `processors COUNT`");
    rates_.tables.back().processors = processors;
    return {};
  }

  Result<std::size_t> feature(std::size_t word) const {
    const RateKind kind = rates_.tables.back().kind;
    if (const auto found = find_rate_feature(kind, words_[word])) return *found;
    return error(fmt::format("a table of kind {} has no feature {}", name(kind), words_[word]),
                 fmt::format("it has {}", fmt::join(rate_features(kind), ", ")));
  }

  Status begin_grid() {
    WEFT_TRY_STATUS(end_grid());
    RateTable& table = rates_.tables.back();
    if (table.grids.size() == kMostRateGrids) return error(fmt::format("more than {} grids", kMostRateGrids));
    RateGrid grid;
    std::size_t word = 0;
    if (words_[0] == "factor") {
      if (words_.size() < 3 || words_[2] != "grid") return error("expected `factor FEATURE grid AXIS KNOTS`");
      WEFT_TRY(factor, feature(1));
      grid.factor = factor;
      word = 2;
    }
    for (++word; word < words_.size();) {
      if (grid.axes.size() == kMostRateAxes)
        return error(fmt::format("a grid has at most {} axes", kMostRateAxes));
      WEFT_TRY(along, feature(word));
      RateAxis axis{along, {}};
      for (++word; word < words_.size() && !find_rate_feature(table.kind, words_[word]); ++word) {
        WEFT_TRY(knot, number(word, -100, 100));
        if (!axis.knots.empty() && !(knot > axis.knots.back() + 1e-6)) return error("knots must ascend");
        if (axis.knots.size() == kMostRateKnots)
          return error(fmt::format("more than {} knots", kMostRateKnots));
        axis.knots.push_back(knot);
      }
      if (axis.knots.empty()) return error("expected the knots of an axis");
      grid.axes.push_back(std::move(axis));
    }
    if (grid.axes.empty()) return error("expected `grid AXIS KNOTS`");
    if (node_count(grid) > kMostRateNodes) return error(fmt::format("more than {} nodes", kMostRateNodes));
    table.grids.push_back(std::move(grid));
    return {};
  }

  Status read_values() {
    RateTable& table = rates_.tables.back();
    if (table.grids.empty() || !read_number<double>(words_[0]))
      return error(fmt::format("unknown word: {}", words_[0]),
                   "a table has rows, base, processors, grid, factor and the values of its grids");
    RateGrid& grid = table.grids.back();
    for (std::size_t word = 0; word < words_.size(); ++word) {
      WEFT_TRY(value, number(word, -20'000, 20'000));
      if (grid.values.size() == node_count(grid))
        return error(fmt::format("the grid has {} nodes, found more values", node_count(grid)));
      grid.values.push_back(value * kLogUnit);
    }
    return {};
  }

  Status end_grid() const {
    if (rates_.tables.empty() || rates_.tables.back().grids.empty()) return {};
    const RateGrid& grid = rates_.tables.back().grids.back();
    if (grid.values.size() == node_count(grid)) return {};
    return error(
        fmt::format("the grid before has {} nodes, found {} values", node_count(grid), grid.values.size()));
  }

  Status end_table() const {
    if (rates_.tables.empty()) return {};
    WEFT_TRY_STATUS(end_grid());
    const RateTable& table = rates_.tables.back();
    if (!(table.fixed_seconds > 0) && !(table.flops_per_second > 0) && !(table.bytes_per_second > 0))
      return error(fmt::format("the table {} {} has no base", name(table.kind), table.variant),
                   "add `base SECONDS FLOPS_PER_SECOND BYTES_PER_SECOND`");
    return {};
  }

  const std::string_view path_;
  int line_ = 0;
  std::vector<std::string_view> words_;
  Rates rates_;
};

}  // namespace

Result<Rates> read_rates(std::string_view text, std::string_view path) {
  return RatesReader(path).read(text);
}

std::string print(const Rates& rates) {
  std::string text;
  for (std::string_view rest = rates.comment; !rest.empty();) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    text += fmt::format("#{}{}\n", end > 0 ? " " : "", rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  text += fmt::format("rates {}\n", rates.device);
  if (rates.attention_gradient_share > 0)
    text += fmt::format("attention_gradient {:.3g}\n", rates.attention_gradient_share);
  for (const RateTable& table : rates.tables) {
    text += fmt::format("table {} {}\n  rows {} error {:.3f} p90 {:.3f}\n  base {:.4g} {:.4g} {:.4g}\n",
                        name(table.kind), table.variant, table.rows, table.error, table.error_p90,
                        table.fixed_seconds, table.flops_per_second, table.bytes_per_second);
    if (table.processors > 0) text += fmt::format("  processors {:.0f}\n", table.processors);
    for (const RateGrid& grid : table.grids) {
      text += "  ";
      if (grid.factor) text += fmt::format("factor {} ", rate_features(table.kind)[*grid.factor]);
      text += "grid";
      for (const RateAxis& axis : grid.axes) {
        text += fmt::format(" {}", rate_features(table.kind)[axis.feature]);
        for (const double knot : axis.knots) text += fmt::format(" {:.4g}", knot);
      }
      constexpr std::size_t kWidth = 110;
      std::string line;
      for (const double value : grid.values) {
        const std::string word = fmt::format("{}", std::lround(value / kLogUnit));
        if (line.empty() || line.size() + 1 + word.size() > kWidth) {
          text += line + "\n";
          line = word;
        } else {
          line += " " + word;
        }
      }
      text += line + "\n";
    }
  }
  return text;
}

}  // namespace weft::cluster
