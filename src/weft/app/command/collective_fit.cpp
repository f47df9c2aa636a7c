// weft collective fit: latency and bandwidth fitted to measured tables.
#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "weft/app/command/collective.h"
#include "weft/app/explain/fit_report.h"
#include "weft/app/session/reply.h"
#include "weft/base/median.h"
#include "weft/formats/collective_source.h"
#include "weft/planner/exchange/collective_measured.h"
#include "weft/predict/sim/collective/fit.h"

namespace weft::command {
namespace {

// Derives the shape from the table's algorithm name; defaults to a ring.
sim::AlgorithmShape shape_of_table(const formats::CollectiveTable& table) {
  const std::int32_t ranks = std::max(table.ranks, 2);
  const auto says = [&](std::string_view word) { return table.algorithm.find(word) != std::string::npos; };
  if (says("tree")) return sim::tree_all_reduce(ranks);
  if (says("allpairs") || says("all_pairs")) return sim::all_pairs_all_reduce(ranks);
  return sim::ring_all_reduce(ranks);
}

Result<explain::FittedTable> fit_table(const std::string& path, bool every_other) {
  WEFT_TRY(table, exchange::read_collective_table(path));
  WEFT_TRY(points, exchange::measurements(table, path));
  explain::FittedTable fitted;
  fitted.name = table.algorithm.empty() ? path : table.algorithm;
  fitted.all = std::move(points);
  std::vector<sim::Measurement> kept, out;
  for (std::size_t i = 0; i < fitted.all.size(); ++i)
    (every_other && i % 2 != 0 ? out : kept).push_back(fitted.all[i]);
  WEFT_TRY(fit, sim::fit(kept, shape_of_table(table)));
  fitted.fit = std::move(fit);
  std::vector<double> errors;
  for (const sim::Measurement& point : out)
    errors.push_back(std::abs(fitted.fit.seconds(point.bytes) / point.seconds - 1));
  if (!errors.empty()) {
    fitted.worst_between = std::ranges::max(errors);
    fitted.median_between = median(std::move(errors));
  }
  return fitted;
}

Result<std::string> answer(const CollectiveFit& request) {
  std::vector<explain::FittedTable> all;
  for (const std::string& path : request.tables) {
    auto fitted = fit_table(path, request.every_other);
    if (!fitted.ok()) {
      Error error = fitted.error();
      if (error.message.find(path) == std::string::npos) error.message = path + ": " + error.message;
      return error;
    }
    all.push_back(std::move(*fitted));
  }
  return request.format == session::Format::json ? explain::print_json(all) : explain::print_text(all);
}

}  // namespace

session::Reply run(const CollectiveFit& request) { return session::to_reply(answer(request)); }

}  // namespace weft::command
