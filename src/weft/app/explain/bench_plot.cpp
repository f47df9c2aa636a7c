#include "weft/app/explain/bench_plot.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include <fmt/format.h>

#include "weft/app/explain/plot.h"

namespace weft::explain {
namespace {

// Gloo's setting is the fastest algorithm, which varies with the size; all of them share one curve.
std::string line_of(const measure::BenchRow& row) { return row.peer == "gloo" ? row.peer : row.side(); }

PlotCurve& curve_named(std::vector<PlotCurve>& curves, const std::string& name) {
  auto found = std::ranges::find(curves, name, &PlotCurve::name);
  if (found != curves.end()) return *found;
  curves.push_back({name, {}, false, curves.size()});
  return curves.back();
}

std::int64_t between(std::int64_t one, std::int64_t other) {
  return static_cast<std::int64_t>(std::sqrt(static_cast<double>(one) * static_cast<double>(other)));
}

}  // namespace

Result<std::string> bench_plot(std::span<const measure::BenchRow> rows) {
  std::vector<PlotCurve> curves;
  PlotCurve limit{"machine limit", {}, false, 0};
  std::vector<PlotRange> winners;
  for (std::size_t begin = 0; begin < rows.size();) {
    std::size_t end = begin;
    const measure::BenchRow* best = nullptr;
    for (; end < rows.size() && rows[end].bytes == rows[begin].bytes; ++end) {
      const measure::BenchRow& row = rows[end];
      if (!row.measured()) continue;
      curve_named(curves, line_of(row)).points.push_back({row.bytes, row.seconds});
      if (best == nullptr || row.seconds < best->seconds) best = &row;
    }
    const measure::BenchRow& any = rows[begin];
    if (any.limit > 0) limit.points.push_back({any.bytes, any.limit});
    if (best != nullptr) {
      // A winner's range ends halfway to the neighbouring sizes.
      const std::int64_t from = begin > 0 ? between(rows[begin - 1].bytes, any.bytes) : any.bytes;
      const std::int64_t to = end < rows.size() ? between(any.bytes, rows[end].bytes) : any.bytes;
      const PlotCurve& winner = curve_named(curves, line_of(*best));
      if (!winners.empty() && winners.back().name == winner.name)
        winners.back().max_bytes = to;
      else
        winners.push_back({from, to, winner.name, winner.color});
    }
    begin = end;
  }
  limit.color = curves.size();
  if (!limit.points.empty()) curves.push_back(std::move(limit));
  PlotOptions options;
  if (!rows.empty()) {
    options.title = fmt::format("{}, {} ranks, {} (measured)", collective::name(rows.front().kind),
                                rows.front().ranks, rows.front().transport);
    options.kind = rows.front().kind;
    options.ranks = rows.front().ranks;
  }
  return plot(curves, winners, options);
}

}  // namespace weft::explain
