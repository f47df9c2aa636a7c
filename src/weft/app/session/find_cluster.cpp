#include "weft/app/session/find_cluster.h"

#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "weft/app/session/command_catalog.h"
#include "weft/app/session/reply.h"
#include "weft/app/session/state.h"
#include "weft/base/file.h"
#include "weft/base/letters.h"
#include "weft/base/nearest.h"
#include "weft/formats/nccl_topology_xml.h"
#include "weft/formats/nvidia_smi_topology.h"
#include "weft/formats/system_topology.h"
#include "weft/formats/topology_json.h"
#include "weft/language/bind.h"

namespace weft::session {
namespace {

constexpr std::int64_t kMostScriptBytes = std::int64_t{64} << 20;  // largest script or topology file

Result<cluster::Cluster> from_script(const std::string& text) {
  language::Catalog catalog;
  load_known(catalog);
  catalog.clusters.clear();  // so that a copy of a shipped script can reuse its cluster names
  WEFT_TRY(created, create_all(catalog, text));
  const auto found = catalog.clusters.find(created.cluster);
  if (found == catalog.clusters.end())
    return user_error("the script does not create a cluster", "usage: CREATE CLUSTER name AS ...");
  return found->second;
}

Result<cluster::Cluster> from_name(const std::string& name) {
  language::Catalog catalog;
  load_known(catalog);
  if (const auto found = catalog.clusters.find(name); found != catalog.clusters.end()) return found->second;
  const auto names = language::names_of(catalog.clusters);
  const std::string hint = did_you_mean(name, names);
  return user_error(fmt::format("unknown cluster: {}", name),
                    hint.empty() ? fmt::format("clusters are {}", fmt::join(names, ", ")) : hint);
}

}  // namespace

Result<cluster::Cluster> find_described_cluster(const std::string& reference) {
  if (!reference.ends_with(".weft")) return from_name(reference);
  WEFT_TRY(text, read_file(reference, kMostScriptBytes));
  return from_script(text);
}

Result<cluster::Cluster> find_cluster(const std::string& reference) {
  if (!same_word(std::string_view(reference).substr(0, reference.find(' ')), "LOCAL"))
    return find_described_cluster(reference);
  // Parses it as the target of a statement.
  const auto parsed = language::parse_and_keep("INFER m ON " + reference);
  if (!parsed.ok() || (*parsed)->script.statements.size() != 1)
    return user_error(fmt::format("expected LOCAL and a number of ranks, found {}", reference),
                      "for example: 'LOCAL 4'");
  const auto& run = (*parsed)->script.statements.front()->as<language::syntax::Run>();
  return local_cluster(run.target->ranks ? run.target->ranks->whole : 1);
}

Result<cluster::Cluster> local_cluster(std::int64_t ranks) {
  language::Catalog catalog;
  load_known(catalog);
  language::syntax::Target local{
      .local = true, .ranks = language::syntax::Number{}, .cluster = {}, .span = {}};
  local.ranks->whole = ranks;
  return target_of(catalog, local);
}

Result<sim::CollectiveCluster> find_collective_cluster(const std::string& reference) {
  const auto ends = [&](std::string_view ending) { return reference.ends_with(ending); };
  if (!ends(".json") && !ends(".xml") && !ends(".txt")) {
    WEFT_TRY(described, find_described_cluster(reference));
    return sim::wires_of(described);
  }
  WEFT_TRY(text, read_file(reference, kMostScriptBytes));
  sim::CollectiveCluster made;
  if (ends(".json")) {
    WEFT_TRY(topology, formats::read_topology_json(text, reference));
    made.topology = std::move(topology);
  } else if (ends(".txt")) {
    WEFT_TRY(topology, formats::read_nvidia_smi_topology(text, reference));
    made.topology = std::move(topology);
  } else {
    WEFT_TRY(system, formats::read_nccl_topology(text));
    WEFT_TRY(topology, formats::topology_of(system));
    made.topology = std::move(topology);
  }
  made.local = made.topology.devices;
  return made;
}

}  // namespace weft::session
