#include "weft/session/collective_cluster.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "weft/base/file.h"
#include "weft/base/nearest.h"
#include "weft/base/units.h"
#include "weft/formats/nccl_topology_xml.h"
#include "weft/formats/system_topology.h"
#include "weft/formats/topology_json.h"
#include "weft/language/bind.h"
#include "weft/session/state.h"
#include "weft/sim/cost_table.h"

namespace weft::session {
namespace {

constexpr std::int64_t kMostBytes = std::int64_t{64} << 20;  // of a file

Result<CollectiveCluster> from_script(const std::string& text) {
  language::Catalog catalog;
  load_shipped(catalog);
  catalog.clusters.clear();  // a changed copy of a shipped script need not rename its clusters
  auto parsed = language::parse_and_keep(text);
  if (!parsed.ok()) {
    Error error = parsed.error();
    if (error.text == nullptr) error.text = std::make_shared<const std::string>(text);
    return error;
  }
  std::string last;
  for (const language::syntax::Statement* statement : (*parsed)->script.statements) {
    if (statement->kind == language::syntax::StatementKind::create_cluster)
      last = statement->as<language::syntax::CreateCluster>().name.text;
    WEFT_TRY_STATUS(language::define(catalog, *parsed, *statement, {}));
  }
  if (last.empty()) return user_error("the script creates no cluster", "write CREATE CLUSTER name AS ...");
  return wires_of(catalog.clusters.at(last));
}

Result<CollectiveCluster> from_name(const std::string& name) {
  language::Catalog catalog;
  load_shipped(catalog);
  if (const auto found = catalog.clusters.find(name); found != catalog.clusters.end())
    return wires_of(found->second);
  std::vector<std::string_view> names;
  for (const auto& [known, unused] : catalog.clusters) names.push_back(known);
  const std::string hint = did_you_mean(name, names);
  return user_error(fmt::format("unknown cluster: {}", name),
                    hint.empty() ? fmt::format("clusters are {}", fmt::join(names, ", ")) : hint);
}

Result<std::int64_t> parse_size(std::string_view text) {
  WEFT_TRY(quantity, parse_quantity(text));
  const bool is_size = quantity.dimension == Dimension::bytes || quantity.dimension == Dimension::count;
  if (!is_size || !(quantity.value >= 1) || quantity.value > 1e13)
    return user_error(fmt::format("expected a size in bytes, found {}", text),
                      "sizes are written 1KiB, 16 MiB, 1000");
  return static_cast<std::int64_t>(std::llround(quantity.value));
}

}  // namespace

Result<CollectiveCluster> wires_of(const cluster::Cluster& found) {
  WEFT_TRY(topology, cluster::topology_of(found));
  CollectiveCluster made;
  made.topology = std::move(topology);
  made.local = static_cast<std::int32_t>(found.axes.back().size);
  made.sides = found.axes.back().link.sides;
  return made;
}

Result<CollectiveCluster> find_collective_cluster(const std::string& reference) {
  const auto ends = [&](std::string_view ending) { return reference.ends_with(ending); };
  if (!ends(".weft") && !ends(".json") && !ends(".xml")) return from_name(reference);
  WEFT_TRY(text, read_file(reference, kMostBytes));
  if (ends(".weft")) return from_script(text);
  CollectiveCluster made;
  if (ends(".json")) {
    WEFT_TRY(topology, formats::read_topology_json(text, reference));
    made.topology = std::move(topology);
  } else {
    WEFT_TRY(system, formats::read_nccl_topology(text));
    WEFT_TRY(topology, formats::topology_of(system));
    made.topology = std::move(topology);
  }
  made.local = made.topology.devices;
  return made;
}

void fill_parameters(const collective::Algorithm& algorithm, const CollectiveCluster& cluster,
                     collective::Arguments& arguments) {
  const auto give = [&](std::string_view name, std::int64_t value) {
    const auto takes = [&](const collective::Algorithm::Parameter& parameter) {
      return parameter.name == name;
    };
    if (std::ranges::any_of(algorithm.parameters(), takes)) arguments.try_emplace(std::string(name), value);
  };
  give("ranks", cluster.topology.devices);
  if (cluster.local > 1 && cluster.local < cluster.topology.devices) give("local", cluster.local);
  if (cluster.sides.size() == 2) {
    give("rows", cluster.sides[0]);
    give("columns", cluster.sides[1]);
  }
}

Result<std::vector<std::int64_t>> parse_sizes(std::string_view text) {
  if (text.empty()) return sim::message_sizes();
  const std::size_t dots = text.find("..");
  WEFT_TRY(least, parse_size(text.substr(0, dots)));
  if (dots == std::string_view::npos) return std::vector{least};
  WEFT_TRY(most, parse_size(text.substr(dots + 2)));
  if (least > most)
    return user_error(fmt::format("sizes must ascend, found {}", text),
                      "write the smaller first: 1KiB..1GiB");
  std::vector<std::int64_t> sizes;
  for (std::int64_t size = least; size <= most; size *= 2) sizes.push_back(size);
  if (sizes.back() != most) sizes.push_back(most);
  return sizes;
}

}  // namespace weft::session
