// weft collective fit: what measured tables say about latency and bandwidth.
#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "weft/base/median.h"
#include "weft/base/units.h"
#include "weft/formats/collective_source.h"
#include "weft/price/collective_measured.h"
#include "weft/session/collective.h"
#include "weft/session/reply.h"
#include "weft/sim/collective/fit.h"

namespace weft::session {
namespace {

struct Fitted {
  std::string name;
  std::vector<sim::Measurement> all;
  sim::Fit fit;
  std::optional<double> median_between, worst_between;  // of the sizes that were kept out
};

// The shape by the words in a table's name; a ring where it says nothing.
sim::AlgorithmShape shape_of_table(const formats::CollectiveTable& table) {
  const std::int32_t ranks = std::max(table.ranks, 2);
  const auto says = [&](std::string_view word) { return table.algorithm.find(word) != std::string::npos; };
  if (says("tree")) return sim::tree_all_reduce(ranks);
  if (says("allpairs") || says("all_pairs")) return sim::all_pairs_all_reduce(ranks);
  return sim::ring_all_reduce(ranks);
}

Result<Fitted> fit_table(const std::string& path, bool every_other) {
  WEFT_TRY(table, price::read_collective_table(path));
  WEFT_TRY(points, price::measurements(table, path));
  Fitted fitted;
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

struct Meeting {
  std::string first, second;
  double predicted = 0;
  double measured = 0;  // the nearest one; 0: none
};

// Where the fitted curves cross, beside where the measured ones do.
std::vector<Meeting> meetings(const std::vector<Fitted>& all) {
  std::vector<Meeting> found;
  for (std::size_t i = 0; i < all.size(); ++i)
    for (std::size_t j = i + 1; j < all.size(); ++j) {
      const std::int64_t least = std::max(all[i].all.front().bytes, all[j].all.front().bytes);
      const std::int64_t most = std::min(all[i].all.back().bytes, all[j].all.back().bytes);
      if (least >= most) continue;
      const auto curve = [&](std::size_t k) {
        return [&, k](std::int64_t bytes) { return all[k].fit.seconds(bytes); };
      };
      const auto measured = [&](std::size_t k) {
        return
            [&, k](std::int64_t bytes) { return sim::interpolate(all[k].all, static_cast<double>(bytes)); };
      };
      const auto seen = sim::crossovers(measured(i), measured(j), least, most);
      for (const sim::Crossover& crossing : sim::crossovers(curve(i), curve(j), least, most)) {
        Meeting meeting{all[i].name, all[j].name, crossing.bytes, 0};
        for (const sim::Crossover& other : seen)
          if (meeting.measured == 0 || std::abs(std::log(other.bytes / crossing.bytes)) <
                                           std::abs(std::log(meeting.measured / crossing.bytes)))
            meeting.measured = other.bytes;
        found.push_back(std::move(meeting));
      }
    }
  return found;
}

std::string percent(double share) { return fmt::format("{:.1f} %", share * 100); }

std::string describe_regime(const sim::Regime& regime) {
  const std::string range = fmt::format("{} to {}", print_bytes(static_cast<double>(regime.first_bytes)),
                                        print_bytes(static_cast<double>(regime.last_bytes)));
  if (regime.growth == sim::Growth::streaming)
    return fmt::format("  {}: {} + bytes / {}\n", range, print_seconds(regime.intercept),
                       regime.slope > 0 ? print_rate(1 / regime.slope) : "any rate");
  return fmt::format("  {}: {} + {} a square root of a byte\n", range, print_seconds(regime.intercept),
                     print_seconds(regime.slope));
}

std::string to_text(const std::vector<Fitted>& all) {
  std::string text;
  std::vector<sim::Fit> fits;
  for (const Fitted& fitted : all) {
    fits.push_back(fitted.fit);
    text += fmt::format("{}: latency {}, bandwidth {}, {:.0f} steps, error {} (worst {})\n", fitted.name,
                        print_seconds(fitted.fit.latency()),
                        fitted.fit.bandwidth() > 0 ? print_rate(fitted.fit.bandwidth()) : "not reached",
                        fitted.fit.shape.steps, percent(fitted.fit.median_relative_error),
                        percent(fitted.fit.max_relative_error));
    for (const sim::Regime& regime : fitted.fit.regimes) text += describe_regime(regime);
    if (fitted.median_between)
      text += fmt::format("  sizes between: median error {}, worst {}\n", percent(*fitted.median_between),
                          percent(*fitted.worst_between));
  }
  if (fits.size() > 1) {
    const sim::Latency latency = sim::separate_latency(fits);
    text +=
        fmt::format("a call costs {}, a step {}\n", print_seconds(latency.base), print_seconds(latency.step));
  }
  for (const Meeting& meeting : meetings(all))
    text += fmt::format("{} and {} cross at {}{}\n", meeting.first, meeting.second,
                        print_bytes(meeting.predicted),
                        meeting.measured > 0 ? ", measured " + print_bytes(meeting.measured) : "");
  return text;
}

std::string to_json(const std::vector<Fitted>& all) {
  nlohmann::ordered_json json;
  json["fits"] = nlohmann::ordered_json::array();
  for (const Fitted& fitted : all) {
    nlohmann::ordered_json one;
    one["algorithm"] = fitted.name;
    one["latency_seconds"] = fitted.fit.latency();
    one["bandwidth_bytes_per_second"] = fitted.fit.bandwidth();
    one["steps"] = fitted.fit.shape.steps;
    one["median_error"] = fitted.fit.median_relative_error;
    one["regimes"] = nlohmann::ordered_json::array();
    for (const sim::Regime& regime : fitted.fit.regimes)
      one["regimes"].push_back({{"first_bytes", regime.first_bytes},
                                {"last_bytes", regime.last_bytes},
                                {"growth", regime.growth == sim::Growth::streaming ? "streaming" : "filling"},
                                {"intercept_seconds", regime.intercept},
                                {"slope", regime.slope}});
    if (fitted.median_between) {
      one["median_error_between"] = *fitted.median_between;
      one["worst_error_between"] = *fitted.worst_between;
    }
    json["fits"].push_back(std::move(one));
  }
  json["crossovers"] = nlohmann::ordered_json::array();
  for (const Meeting& meeting : meetings(all))
    json["crossovers"].push_back({{"first", meeting.first},
                                  {"second", meeting.second},
                                  {"predicted_bytes", meeting.predicted},
                                  {"measured_bytes", meeting.measured}});
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

Result<std::string> answer(const CollectiveFit& request) {
  std::vector<Fitted> all;
  for (const std::string& path : request.tables) {
    auto fitted = fit_table(path, request.every_other);
    if (!fitted.ok()) {
      Error error = fitted.error();
      if (error.message.find(path) == std::string::npos) error.message = path + ": " + error.message;
      return error;
    }
    all.push_back(std::move(*fitted));
  }
  return request.format == Format::json ? to_json(all) : to_text(all);
}

}  // namespace

Reply run(const CollectiveFit& request) { return to_reply(answer(request)); }

}  // namespace weft::session
