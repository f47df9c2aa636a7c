#include "weft/formats/nvidia_smi_topology.h"

#include <algorithm>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "weft/formats/smi_topology.h"

namespace weft::formats {
namespace {

using cluster::NodeKind;
using cluster::Topology;

class Wires {
 public:
  Wires(const SmiTopology& table, const NvidiaSmiOptions& options) : table_(table), options_(options) {}

  Topology made() {
    topology_.name = "nvidia-smi";
    for (std::size_t g = 0; g < count(); ++g) topology_.add_node(NodeKind::device, fmt::format("gpu {}", g));
    topology_.devices = table_.gpus();
    if (!add_nvswitch()) add_nvlinks();
    add_pcie();
    return std::move(topology_);
  }

 private:
  std::size_t count() const { return table_.nvlinks.size(); }

  // If all pairs have more links than a device could have to each of several peers, all links lead
  // to a switch.
  bool add_nvswitch() {
    if (count() < 3) return false;
    const std::int32_t links = table_.nvlinks[0][1];
    if (links < 4) return false;
    for (std::size_t a = 0; a < count(); ++a)
      for (std::size_t b = 0; b < count(); ++b)
        if (a != b && table_.nvlinks[a][b] != links) return false;
    const std::int32_t hub = topology_.add_node(NodeKind::switch_, "nvswitch");
    for (std::size_t g = 0; g < count(); ++g)
      topology_.add_cable(static_cast<std::int32_t>(g), hub, links * options_.nvlink_bytes_per_second,
                          options_.nvlink_latency_seconds / 2);
    return true;
  }

  void add_nvlinks() {
    for (std::size_t a = 0; a < count(); ++a)
      for (std::size_t b = a + 1; b < count(); ++b)
        if (table_.nvlinks[a][b] > 0)
          topology_.add_cable(static_cast<std::int32_t>(a), static_cast<std::int32_t>(b),
                              table_.nvlinks[a][b] * options_.nvlink_bytes_per_second,
                              options_.nvlink_latency_seconds);
  }

  // Assigns one number to devices at most this far apart.
  std::vector<std::size_t> groups(std::int32_t farthest) const {
    std::vector<std::size_t> group(count());
    for (std::size_t a = 0; a < count(); ++a) {
      group[a] = a;
      for (std::size_t b = 0; b < a; ++b)
        if (table_.distance[a][b] > 0 && table_.distance[a][b] <= farthest) {
          group[a] = group[b];
          break;
        }
    }
    return group;
  }

  // Needed only if some devices are not connected by NVLink, directly or through others.
  void add_pcie() {
    std::vector<std::size_t> joined(count());
    for (std::size_t g = 0; g < joined.size(); ++g) joined[g] = g;
    for (const cluster::DirectedLink& link : topology_.links) {
      const auto name_of = [&](std::int32_t node) {
        return node < topology_.devices ? joined[static_cast<std::size_t>(node)] : joined[0];
      };
      const std::size_t from = name_of(link.from), to = name_of(link.to);
      std::ranges::replace(joined, std::max(from, to), std::min(from, to));
    }
    if (std::ranges::all_of(joined, [&](std::size_t group) { return group == joined[0]; })) return;
    const std::vector<std::size_t> near = groups(1), same_host = groups(2);
    const double rate = options_.pcie_bytes_per_second, latency = options_.pcie_latency_seconds;
    std::vector<std::int32_t> bridge(count(), -1), host(count(), -1);
    std::int32_t first_host = -1;
    for (std::size_t g = 0; g < count(); ++g) {
      std::int32_t& own_host = host[same_host[g]];
      if (own_host < 0) {
        own_host = topology_.add_node(NodeKind::host, fmt::format("host {}", same_host[g]));
        if (first_host >= 0)
          topology_.add_cable(first_host, own_host, options_.host_bytes_per_second, latency / 2);
        else
          first_host = own_host;
      }
      std::int32_t& own_bridge = bridge[near[g]];
      if (own_bridge < 0) {
        own_bridge = topology_.add_node(NodeKind::switch_, fmt::format("pci {}", near[g]));
        topology_.add_cable(own_bridge, own_host, rate, latency / 4);
      }
      topology_.add_cable(static_cast<std::int32_t>(g), own_bridge, rate, latency / 4);
    }
  }

  const SmiTopology& table_;
  const NvidiaSmiOptions& options_;
  Topology topology_;
};

}  // namespace

Result<Topology> read_nvidia_smi_topology(std::string_view text, std::string_view path,
                                          const NvidiaSmiOptions& options) {
  auto table = read_smi_topology(text);
  if (!table.ok()) {
    Error error = std::move(table).error();
    error.message = fmt::format("{}: {}", path, error.message);
    return error;
  }
  return Wires(*table, options).made();
}

}  // namespace weft::formats
