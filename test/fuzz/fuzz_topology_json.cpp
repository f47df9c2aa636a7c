// Any text is a topology or a user error that names the file. Devices come first, and every link
// joins two nodes with a finite rate and latency. A profile is also read for two nodes, which are
// copies of one node on one network.

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
  promise(topology.error().fault == weft::Fault::user, "a bad file is a user error");
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
    promise(std::isfinite(link.bytes_per_second) && link.bytes_per_second > 0,
            "a rate is finite and positive");
    promise(std::isfinite(link.latency_seconds) && link.latency_seconds >= 0,
            "a latency is finite and not negative");
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
  promise(two->links.size() > 2 * one->links.size(), "two nodes are connected", text);
  return 0;
}
