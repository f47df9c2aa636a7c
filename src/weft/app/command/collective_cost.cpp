// weft collective cost: a table in the format of nccl-tests, from a simulation.
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "weft/app/command/collective.h"
#include "weft/app/explain/table.h"
#include "weft/app/session/find_cluster.h"
#include "weft/app/session/reply.h"
#include "weft/base/units.h"
#include "weft/formats/collective_source.h"
#include "weft/formats/nccl_tests_log.h"
#include "weft/planner/exchange/collective_estimate.h"

namespace weft::command {
namespace {

std::string to_json(const exchange::EstimatedProgram& program, const std::vector<sim::CostRow>& rows) {
  nlohmann::ordered_json json;
  json["algorithm"] = program.name;
  json["collective"] = name(program.collective.kind);
  json["ranks"] = program.collective.ranks;
  json["source"] = "simulated";
  json["rows"] = nlohmann::ordered_json::array();
  for (const sim::CostRow& row : rows)
    json["rows"].push_back({{"bytes", row.bytes},
                            {"seconds", row.seconds},
                            {"algorithm_bandwidth", row.algorithm_bandwidth},
                            {"bus_bandwidth", row.bus_bandwidth}});
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

// What matters of nccl-tests' table, for a screen that is narrower than it.
std::string to_text(const exchange::EstimatedProgram& program, const std::vector<sim::CostRow>& rows,
                    std::size_t width) {
  explain::Table table({{"size", explain::Align::right},
                        {"time", explain::Align::right},
                        {"algbw", explain::Align::right},
                        {"busbw", explain::Align::right}});
  for (const sim::CostRow& row : rows)
    table.add({print_bytes(static_cast<double>(row.bytes)), print_seconds(row.seconds),
               print_rate(row.algorithm_bandwidth), print_rate(row.bus_bandwidth)});
  return explain::wrap(fmt::format("{}: {}, {} ranks; times are simulated", program.name,
                                   name(program.collective.kind), program.collective.ranks),
                       width) +
         table.print(width);
}

Result<std::string> answer(const CollectiveCost& request) {
  WEFT_TRY(sizes, sim::parse_sizes(request.sizes));
  WEFT_TRY(protocol, formats::find_protocol(request.protocol));
  WEFT_TRY(cluster, session::find_collective_cluster(request.cluster));
  WEFT_TRY(program, exchange::prepare(request.algorithm, cluster, protocol, request.instances));
  if (!request.fit.empty()) WEFT_TRY_STATUS(exchange::calibrate(request.fit, program, cluster));
  WEFT_TRY(rows, exchange::price_at(program, cluster, sizes));
  if (request.format == session::Format::json) return to_json(program, rows);
  constexpr std::size_t kLogWidth = 116;  // of nccl-tests' table
  if (request.width < kLogWidth) return to_text(program, rows, request.width);
  formats::CollectiveTable table;
  table.algorithm = program.name;
  table.kind = program.collective.kind;
  table.ranks = program.collective.ranks;
  const bool in_place = program.actions.placement == collective::Placement::in_place;
  for (const sim::CostRow& row : rows) {
    const double microseconds = row.seconds * 1e6;
    table.rows.push_back({row.bytes, in_place ? 0 : microseconds, in_place ? microseconds : 0});
  }
  return formats::print_nccl_tests_log(table);
}

}  // namespace

session::Reply run(const CollectiveCost& request) { return session::to_reply(answer(request)); }

}  // namespace weft::command
