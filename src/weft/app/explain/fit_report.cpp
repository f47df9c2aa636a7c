#include "weft/app/explain/fit_report.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "weft/base/units.h"

namespace weft::explain {
namespace {

struct Meeting {
  std::string first, second;
  double predicted = 0;
  double measured = 0;  // the closest crossover; 0: none
};

// The sizes at which fitted curves cross, each with the closest measured crossover.
std::vector<Meeting> meetings(std::span<const FittedTable> all) {
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

std::string tenths_of_percent(double share) { return fmt::format("{:.1f} %", share * 100); }

std::string describe_regime(const sim::Regime& regime) {
  const std::string range = fmt::format("{} to {}", print_bytes(static_cast<double>(regime.first_bytes)),
                                        print_bytes(static_cast<double>(regime.last_bytes)));
  if (regime.growth == sim::Growth::streaming)
    return fmt::format("  {}: {} + bytes / {}\n", range, print_seconds(regime.intercept),
                       regime.slope > 0 ? print_rate(1 / regime.slope) : "any rate");
  return fmt::format("  {}: {} + {} per square root of a byte\n", range, print_seconds(regime.intercept),
                     print_seconds(regime.slope));
}

}  // namespace

std::string print_text(std::span<const FittedTable> all) {
  std::string text;
  std::vector<sim::Fit> fits;
  for (const FittedTable& fitted : all) {
    fits.push_back(fitted.fit);
    text += fmt::format("{}: latency {}, bandwidth {}, {:.0f} steps, error {} (worst {})\n", fitted.name,
                        print_seconds(fitted.fit.latency()),
                        fitted.fit.bandwidth() > 0 ? print_rate(fitted.fit.bandwidth()) : "not reached",
                        fitted.fit.shape.steps, tenths_of_percent(fitted.fit.median_relative_error),
                        tenths_of_percent(fitted.fit.max_relative_error));
    for (const sim::Regime& regime : fitted.fit.regimes) text += describe_regime(regime);
    if (fitted.median_between)
      text +=
          fmt::format("  sizes between: median error {}, worst {}\n",
                      tenths_of_percent(*fitted.median_between), tenths_of_percent(*fitted.worst_between));
  }
  if (fits.size() > 1) {
    const sim::Latency latency = sim::separate_latency(fits);
    text +=
        fmt::format("{} per call, {} per step\n", print_seconds(latency.base), print_seconds(latency.step));
  }
  for (const Meeting& meeting : meetings(all))
    text += fmt::format("{} and {} cross at {}{}\n", meeting.first, meeting.second,
                        print_bytes(meeting.predicted),
                        meeting.measured > 0 ? ", measured " + print_bytes(meeting.measured) : "");
  return text;
}

std::string print_json(std::span<const FittedTable> all) {
  nlohmann::ordered_json json;
  json["fits"] = nlohmann::ordered_json::array();
  for (const FittedTable& fitted : all) {
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

}  // namespace weft::explain
