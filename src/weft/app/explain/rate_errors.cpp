#include "weft/app/explain/rate_errors.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "weft/app/explain/table.h"

namespace weft::explain {

std::string print_text(const std::vector<measure::RateErrors>& errors, std::size_t width) {
  Table table({{"device"},
               {"table"},
               {"sizes"},
               {"rows", Align::right},
               {"median error", Align::right},
               {"90 % below", Align::right}});
  constexpr double kPercent = 100;
  for (const measure::RateErrors& of : errors)
    table.add({of.device, fmt::format("{} {}", cluster::name(of.kind), of.variant), of.part,
               fmt::format("{}", of.rows), fmt::format("{:.1f} %", kPercent * of.median),
               fmt::format("{:.1f} %", kPercent * of.p90)});
  return table.print(width);
}

std::string print_json(const std::vector<measure::RateErrors>& errors) {
  nlohmann::ordered_json json = nlohmann::ordered_json::array();
  for (const measure::RateErrors& of : errors)
    json.push_back({{"device", of.device},
                    {"table", cluster::name(of.kind)},
                    {"variant", of.variant},
                    {"sizes", of.part},
                    {"rows", of.rows},
                    {"median_error", of.median},
                    {"p90_error", of.p90}});
  return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace weft::explain
