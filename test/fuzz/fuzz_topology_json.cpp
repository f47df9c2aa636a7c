// Any text is a topology or an error of the user that names the file; the devices of a topology come first,
// and every link joins two of its nodes at a rate and a latency that are numbers. A profile is read for two
// nodes as well, which is the same node twice on one network.

#include <cmath>

#include "promise.h"
#include "weft/formats/topology_json.h"

using weft::fuzz::promise;
using namespace weft::cluster;

namespace {

weft::Result<Topology> read(std::string_view text, std::int32_t nodes) {
  weft::formats::TopologyOptions options;
  options.nodes = nodes;
  auto topology = weft::formats::read_topology_json(text, "a.json", options);
  if (topology.ok()) return topology;
  promise(topology.error().fault == weft::Fault::user, "a wrong file is the user's");
  promise(topology.error().message.starts_with("a.json: "), "an error names the file",
          topology.error().message);
  return topology;
}

void expect_wires(const Topology& topology) {
  promise(topology.devices >= 1, "a topology has devices");
  for (std::size_t n = 0; n < topology.nodes.size(); ++n)
    promise((topology.nodes[n].kind == NodeKind::device) == (n < static_cast<std::size_t>(topology.devices)),
            "devices come first");
  const auto is_node = [&](std::int32_t node) {
    return node >= 0 && static_cast<std::size_t>(node) < topology.nodes.size();
  };
  for (const DirectedLink& link : topology.links) {
    promise(is_node(link.from) && is_node(link.to), "a link joins nodes that exist");
    promise(link.from != link.to, "a link has two ends");
    promise(std::isfinite(link.bytes_per_second) && link.bytes_per_second > 0, "a rate is a positive number");
    promise(std::isfinite(link.latency_seconds) && link.latency_seconds >= 0, "a latency is a number from 0");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto one = read(text, 1);
  if (one.ok()) expect_wires(*one);
  const auto two = read(text, 2);
  if (!two.ok()) return 0;
  expect_wires(*two);
  promise(one.ok() && two->devices == 2 * one->devices, "two nodes have twice the devices of one", text);
  promise(two->links.size() > 2 * one->links.size(), "two nodes are joined", text);
  return 0;
}
