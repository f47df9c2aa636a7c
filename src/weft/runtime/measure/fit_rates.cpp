#include "weft/runtime/measure/fit_rates.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include <fmt/format.h>

namespace weft::measure {
namespace {

using cluster::RateGrid;
using cluster::RateKind;
using cluster::RateNodes;
using cluster::RatePoint;
using cluster::RateTable;

struct GridForm {
  std::string_view factor;
  std::vector<std::pair<std::string_view, std::vector<double>>> axes;
};

// Knots are logarithms of base 2 of sizes. They are dense where kernels change: GPUs switch kernels
// by head dimension and group, and products by rows up to one tile.
std::vector<GridForm> forms_of(RateKind kind) {
  const double kD192 = std::log2(192), k24 = std::log2(24), k48 = std::log2(48), k96 = std::log2(96);
  switch (kind) {
    case RateKind::product:
      return {
          {"",
           {{"m", {0, 4, 6, 7, 8, 9, 10, 11, 12, 13, 15}},
            {"n", {5, 7, 9, 11, 13, 16}},
            {"k", {5, 7, 9, 11, 13, 16}}}},
          {"",
           {{"m", {0, 4, 7, 9, 11, 15}}, {"weights", {14, 16, 18, 20, 21, 22, 23, 24, 25, 26, 27, 28, 30}}}},
          {"wave128x128", {{"m", {5, 7, 9, 10, 11, 13}}}},
          {"wave128x256", {{"m", {5, 7, 9, 10, 11, 13}}}},
          {"wave256x128", {{"m", {7, 9, 10, 11, 13}}}},
          {"partial", {{"m", {4, 5, 7, 8, 9, 10, 11, 13}}}}};
    case RateKind::prefill:
      return {
          {"",
           {{"tokens", {0, 5, 7, 8, 9, 10, 11, 12, 13, 14}},
            {"batch_heads", {0, 2, 4, 5, 6, 8, 10, 13}},
            {"head_dim", {6, 7, kD192, 8, 9}}}},
          {"",
           {{"group", {0, 1, 2, 3, 4, 6.6}}, {"tokens", {0, 6, 8, 10, 12, 14}}, {"head_dim", {6, 7, 8, 9}}}},
          {"", {{"batch", {0, 1, 2, 3, 5, 8}}, {"tokens", {0, 6, 8, 10, 12, 14}}}},
          {"", {{"kv_heads", {0, 1, 2, 3, 4, 5, 6.6}}, {"all_tokens", {0, 8, 10, 12, 14, 18}}}}};
    case RateKind::decode:
      return {{"",
               {{"tokens", {0, 4, 6, 8, 10, 11, 12, 13, 14, 17}},
                {"batch_kv_heads", {0, 2, 4, 6, 8, 10, 13}},
                {"head_dim", {6, 7, kD192, 8, 9}}}},
              {"",
               {{"group", {0, 1, 2, 3, 4, k24, 5, k48, 6, k96, 7}},
                {"tokens", {0, 6, 8, 10, 12, 14, 17}},
                {"batch_kv_heads", {0, 3, 5, 7, 10, 13}}}},
              {"", {{"batch_heads", {0, 2, 4, 6, 8, 10, 13, 16}}, {"tokens", {0, 6, 8, 10, 12, 14}}}},
              {"", {{"kv_heads", {0, 1, 2, 3, 4, 5, 6.6}}, {"batch", {0, 2, 4, 6, 8, 11}}}}};
    case RateKind::experts:
      return {{"",
               {{"rows_per_expert", {-8, -4, -2, 0, 1, 2, 3, 4, 5, 6, 7, 9, 12, 15}},
                {"local_experts", {0, 2, 4, 6, 9}}}},
              {"",
               {{"skew", {0, 1, 1.2}},
                {"rows_per_expert", {-8, -4, -2, 0, 2, 4, 6, 8, 11, 15}},
                {"local_experts", {0, 2, 4, 6, 9}}}},
              {"", {{"intermediate", {5, 8, 11, 14}}, {"rows_per_expert", {-8, -2, 2, 5, 8, 15}}}},
              {"", {{"bytes", {14, 18, 20, 22, 24, 26, 28, 30, 32}}}},
              {"", {{"tokens", {0, 3, 6, 9, 12, 15}}, {"local_experts", {0, 2, 4, 6, 9}}}},
              {"", {{"expert_parallel", {0, 2, 4, 8}}, {"tokens", {0, 6, 12, 15}}}}};
    case RateKind::mamba2:
      return {{"",
               {{"bytes", {12, 14, 16, 18, 20, 22, 24, 26, 28, 30, 32, 34}},
                {"tokens", {0, 2, 4, 6, 8, 10, 12, 15}}}}};
    case RateKind::collective: return {};
  }
  return {};
}

std::vector<RateGrid> empty_grids(RateKind kind) {
  std::vector<RateGrid> grids;
  for (const GridForm& form : forms_of(kind)) {
    RateGrid grid;
    if (!form.factor.empty()) grid.factor = *cluster::find_rate_feature(kind, form.factor);
    for (const auto& [feature, knots] : form.axes)
      grid.axes.push_back({*cluster::find_rate_feature(kind, feature), knots});
    grid.values.assign(node_count(grid), 0.0);
    grids.push_back(std::move(grid));
  }
  return grids;
}

// Symmetric and positive definite; the lower half is stored by rows.
class NormalMatrix {
 public:
  explicit NormalMatrix(std::size_t size) : size_(size), values_(size * size) {}

  double* row(std::size_t at) { return values_.data() + at * size_; }

  // Solves in place by Cholesky's decomposition, which destroys the matrix.
  void solve(std::vector<double>& right) {
    for (std::size_t i = 0; i < size_; ++i) {
      double* const a = row(i);
      for (std::size_t j = 0; j <= i; ++j) {
        const double* const b = row(j);
        double sum = a[j];
        for (std::size_t k = 0; k < j; ++k) sum -= a[k] * b[k];
        a[j] = i == j ? std::sqrt(std::max(sum, 1e-12)) : sum / b[j];
      }
    }
    for (std::size_t i = 0; i < size_; ++i) {
      for (std::size_t k = 0; k < i; ++k) right[i] -= row(i)[k] * right[k];
      right[i] /= row(i)[i];
    }
    for (std::size_t i = size_; i-- > 0;) {
      right[i] /= row(i)[i];
      for (std::size_t k = 0; k < i; ++k) right[k] -= row(i)[k] * right[i];
    }
  }

 private:
  std::size_t size_;
  std::vector<double> values_;
};

// Adds the penalty on second differences along each axis.
void add_smoothness(NormalMatrix& matrix, const RateGrid& grid, std::size_t first) {
  constexpr double kSmooth = 0.3;
  const std::size_t count = node_count(grid);
  std::size_t stride = count;
  for (const cluster::RateAxis& axis : grid.axes) {
    const std::size_t knots = axis.knots.size();
    stride /= knots;
    for (std::size_t node = 0; node < count; ++node) {
      const std::size_t at = node / stride % knots;
      if (at == 0 || at + 1 == knots) continue;
      const double below = axis.knots[at] - axis.knots[at - 1], above = axis.knots[at + 1] - axis.knots[at];
      const std::pair<std::size_t, double> terms[] = {
          {first + node - stride, kSmooth * above / (below + above)},
          {first + node, -kSmooth},
          {first + node + stride, kSmooth * below / (below + above)}};
      for (const auto& [i, u] : terms)
        for (const auto& [j, v] : terms)
          if (j <= i) matrix.row(i)[j] += u * v;
    }
  }
}

double quantile(std::vector<double> values, double part) {
  if (values.empty()) return 0;
  const auto at = values.begin() + static_cast<std::ptrdiff_t>(part * static_cast<double>(values.size() - 1));
  std::ranges::nth_element(values, at);
  return *at;
}

struct KnownGpu {
  std::string_view name;
  double processors;
};
// Multiprocessors, by data sheet.
constexpr KnownGpu kKnownGpus[] = {{"a100", 108},   {"h100", 132},   {"h200", 132},         {"b200", 148},
                                   {"b300", 148},   {"gb200", 148},  {"gb300", 148},        {"l40s", 142},
                                   {"mi300x", 304}, {"mi325x", 304}, {"rtx_pro_6000", 188}, {"v100", 80},
                                   {"mi355x", 256}};

double processors_of(std::string_view device) {
  for (const KnownGpu& known : kKnownGpus)
    if (known.name == device) return known.processors;
  return 132;
}

void set_base(RateTable& table, const std::vector<const RateRow*>& rows) {
  std::vector<double> flops, bytes, seconds;
  for (const RateRow* row : rows) {
    const RatePoint point = rate_point(table.kind, table.variant, row->sizes, table.processors);
    flops.push_back(point.flops / row->seconds);
    bytes.push_back(point.bytes / row->seconds);
    seconds.push_back(row->seconds);
  }
  const bool product = table.kind == RateKind::product;
  table.flops_per_second = quantile(flops, product ? 0.998 : 0.99);
  // Without rows that are bound by memory there is no bandwidth to read off; the roofline of the unit bounds those.
  constexpr double kFewRows = 256;
  const bool bounded = table.kind != RateKind::product && table.kind != RateKind::prefill;
  const std::size_t of_rows = product ? 0 : 1;
  const bool has_small = bounded || std::ranges::any_of(rows, [&](const RateRow* row) {
                           return row->sizes[of_rows] <= kFewRows;
                         });
  table.bytes_per_second = has_small ? quantile(bytes, 0.98) * (bounded ? 1 : 2) : 0;
  constexpr double kMostFixed = 4e-6;
  table.fixed_seconds = std::min(kMostFixed, quantile(seconds, 0.01));
}

RateTable fit_table(RateKind kind, const std::string& variant, double processors,
                    const std::vector<const RateRow*>& rows) {
  RateTable table;
  table.kind = kind;
  table.variant = variant;
  table.processors = kind == RateKind::product ? processors : 0;
  table.rows = static_cast<std::int64_t>(rows.size());
  set_base(table, rows);
  table.grids = empty_grids(kind);

  struct Term {
    std::size_t at;
    double weight;
  };
  std::vector<std::vector<Term>> terms(rows.size());
  std::vector<double> wanted(rows.size()), weights(rows.size(), 1.0);
  std::size_t size = 0;
  for (const RateGrid& grid : table.grids) size += node_count(grid);
  for (std::size_t r = 0; r < rows.size(); ++r) {
    const RatePoint point = rate_point(kind, variant, rows[r]->sizes, table.processors);
    wanted[r] = std::log(rows[r]->seconds / table.base_seconds(point));
    std::size_t first = 0;
    for (const RateGrid& grid : table.grids) {
      const RateNodes around = nodes_around(grid, point);
      for (std::size_t i = 0; i < around.count; ++i)
        if (around.nodes[i].weight != 0)
          terms[r].push_back({first + around.nodes[i].node, around.nodes[i].weight});
      first += node_count(grid);
    }
    std::ranges::sort(terms[r], {}, &Term::at);
  }
  constexpr int kRounds = 7;
  constexpr double kLeastResidual = 0.03;
  // Shapes of experts and Mamba-2 are few, and rows many: other shapes should find smooth grids.
  const double ridge = kind == RateKind::experts ? 1 : 0.05;
  std::vector<double> fitted;
  for (int round = 0; round < kRounds; ++round) {
    NormalMatrix matrix(size);
    std::vector<double> right(size, 0.0);
    std::size_t first = 0;
    for (const RateGrid& grid : table.grids) {
      add_smoothness(matrix, grid, first);
      first += node_count(grid);
    }
    for (std::size_t i = 0; i < size; ++i) matrix.row(i)[i] += ridge;
    for (std::size_t r = 0; r < rows.size(); ++r)
      for (std::size_t i = 0; i < terms[r].size(); ++i) {
        const auto [at, weight] = terms[r][i];
        right[at] += weights[r] * weight * wanted[r];
        double* const line = matrix.row(at);
        for (std::size_t j = 0; j <= i; ++j) line[terms[r][j].at] += weights[r] * weight * terms[r][j].weight;
      }
    matrix.solve(right);
    fitted = std::move(right);
    double total = 0;
    for (std::size_t r = 0; r < rows.size(); ++r) {
      double predicted = 0;
      for (const Term& term : terms[r]) predicted += fitted[term.at] * term.weight;
      weights[r] = 1 / std::max(std::abs(wanted[r] - predicted), kLeastResidual);
      total += weights[r];
    }
    for (double& weight : weights) weight *= static_cast<double>(rows.size()) / total;
  }
  std::size_t first = 0;
  for (RateGrid& grid : table.grids) {
    for (std::size_t i = 0; i < grid.values.size(); ++i) grid.values[i] = fitted[first + i];
    first += grid.values.size();
  }
  return table;
}

struct TableRows {
  std::vector<const RateRow*> all, fitted, held_out;
};

// Products are reported by size: small ones are bound by memory and by their start.
std::string part_of(const RateRow& row) {
  constexpr double kSmall = 512;
  if (row.kind != RateKind::product) return {};
  return row.sizes[0] > kSmall ? "m > 512" : "m <= 512";
}

}  // namespace

std::vector<RateErrors> errors_of(const cluster::Rates& rates, const std::vector<RateRow>& rows) {
  std::map<std::tuple<RateKind, std::string, std::string>, std::vector<double>> errors;
  for (const RateRow& row : rows) {
    if (row.device != rates.device) continue;
    const RateTable* const table = rates.find(row.kind, row.variant);
    if (table == nullptr) continue;
    errors[{row.kind, row.variant, part_of(row)}].push_back(
        std::abs(table->seconds(row.sizes) / row.seconds - 1));
  }
  std::vector<RateErrors> found;
  for (const auto& [key, all] : errors)
    found.push_back({rates.device, std::get<0>(key), std::get<2>(key), std::get<1>(key),
                     static_cast<std::int64_t>(all.size()), quantile(all, 0.5), quantile(all, 0.9)});
  return found;
}

Result<std::vector<FittedRates>> fit_rates(const std::vector<RateRow>& rows, const FitOptions& options) {
  std::map<std::string, std::map<std::pair<RateKind, std::string>, TableRows>> devices;
  std::vector<const RateRow*> collectives, some_collectives;
  for (const RateRow& row : rows) {
    if (row.kind == RateKind::collective) {
      collectives.push_back(&row);
      if (is_fitted(row)) some_collectives.push_back(&row);
    }
    TableRows& of = devices[row.device][{row.kind, row.variant}];
    of.all.push_back(&row);
    (is_fitted(row) ? of.fitted : of.held_out).push_back(&row);
  }
  if (!options.device.empty() && !devices.contains(options.device)) {
    std::vector<std::string_view> names;
    for (const auto& [device, tables] : devices) names.push_back(device);
    return user_error(fmt::format("no rows of the device {}", options.device),
                      fmt::format("the tables have {}", fmt::join(names, ", ")));
  }
  std::map<std::string, std::vector<RateTable>> all_collectives, fitted_collectives;
  for (auto& [device, tables] : fit_collectives(collectives)) all_collectives[device] = std::move(tables);
  for (auto& [device, tables] : fit_collectives(some_collectives))
    fitted_collectives[device] = std::move(tables);
  std::vector<FittedRates> fits;
  for (const auto& [device, tables] : devices) {
    if (!options.device.empty() && device != options.device) continue;
    FittedRates fit;
    fit.rates.device = device;
    cluster::Rates half = fit.rates;
    std::vector<RateRow> held_out;
    for (const auto& [key, of] : tables) {
      const auto& [kind, variant] = key;
      for (const RateRow* row : of.held_out) held_out.push_back(*row);
      if (kind == RateKind::collective) continue;
      if (options.on_note)
        options.on_note(fmt::format("{}: {} {}, {} rows", device, name(kind), variant, of.all.size()));
      if (!of.fitted.empty())
        half.tables.push_back(fit_table(kind, variant, processors_of(device), of.fitted));
      fit.rates.tables.push_back(fit_table(kind, variant, processors_of(device), of.all));
    }
    for (const RateTable& table : fitted_collectives[device]) half.tables.push_back(table);
    for (RateTable& table : all_collectives[device]) fit.rates.tables.push_back(std::move(table));
    fit.errors = errors_of(half, held_out);
    for (RateTable& table : fit.rates.tables)
      for (const RateErrors& errors : fit.errors)
        if (errors.kind == table.kind && errors.variant == table.variant && errors.median >= table.error) {
          table.error = errors.median;
          table.error_p90 = errors.p90;
        }
    fits.push_back(std::move(fit));
  }
  return fits;
}

}  // namespace weft::measure
