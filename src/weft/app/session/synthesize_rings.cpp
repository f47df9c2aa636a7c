// weft collective synthesize -o FILE.graph.xml: rings for stock NCCL, which cannot load other trees.
#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "weft/app/session/synthesized.h"
#include "weft/base/file.h"
#include "weft/collectives/synthesis/pack_rings.h"
#include "weft/formats/nccl_graph_xml.h"

namespace weft::session {
namespace {

constexpr std::size_t kMostRings = 32;  // NCCL has 64 channels and uses two per ring

// Each ring as one chain per root: away from the root to broadcast, towards it to reduce.
std::vector<synthesis::Tree> chains_of(const synthesis::Rings& rings, bool up) {
  std::vector<synthesis::Tree> chains;
  const std::size_t devices = rings.rings.front().size();
  for (std::size_t root = 0; root < devices; ++root)
    for (const std::vector<std::int32_t>& ring : rings.rings) {
      synthesis::Tree chain;
      chain.root = static_cast<std::int32_t>(root);
      const auto start = static_cast<std::size_t>(std::ranges::find(ring, chain.root) - ring.begin());
      for (std::size_t hop = 0; hop + 1 < devices; ++hop) {
        const std::size_t from = up ? start + devices - hop : start + hop;
        const std::size_t to = up ? from + devices - 1 : from + 1;
        chain.edges.push_back({ring[from % devices], ring[to % devices], -1});
      }
      chains.push_back(std::move(chain));
    }
  return chains;
}

}  // namespace

Result<SynthesizedRings> synthesize_rings(const cluster::Topology& topology, collective::Kind kind,
                                          const synthesis::Deadline& deadline) {
  using enum collective::Kind;
  if (kind != all_gather && kind != reduce_scatter && kind != all_reduce)
    return user_error(fmt::format("NCCL rings cannot run {}", collective::name(kind)),
                      "use all_gather, reduce_scatter or all_reduce");
  WEFT_TRY(rings, synthesis::pack_rings(topology, kMostRings, deadline));
  SynthesizedRings made;
  synthesis::Forest& forest = made.forest;
  forest.kind = kind;
  forest.ranks = topology.devices;
  if (kind != reduce_scatter) forest.down = chains_of(rings, false);
  if (kind != all_gather) forest.up = chains_of(rings, true);
  forest.trees = static_cast<Amount>(rings.rings.size());
  forest.planned = forest.optimum = forest.without_switches =
      kind == all_reduce ? rings.rate / 2 : rings.rate;
  for (std::vector<synthesis::Tree>* chains : {&forest.down, &forest.up})
    for (synthesis::Tree& chain : *chains) chain.share = 1 / static_cast<double>(forest.trees);
  WEFT_TRY(program, synthesize_program(topology, forest, deadline));
  made.made = std::move(program);
  formats::NcclGraph graph;
  graph.speed_inside = graph.speed_between = rings.ring_rate / 1e9;
  for (std::vector<std::int32_t>& ring : rings.rings) graph.channels.push_back({std::move(ring), -1, -1});
  made.graph = std::move(graph);
  return made;
}

Status write_rings(const std::string& path, const SynthesizedRings& rings) {
  WEFT_TRY(text, formats::write_nccl_graphs({rings.graph}));
  WEFT_TRY(back, formats::read_nccl_graphs(text));
  if (back != std::vector{rings.graph})
    return environment_error("not written: it reads back as different rings");
  return write_file_atomically(path, text);
}

}  // namespace weft::session
