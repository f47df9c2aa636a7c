#include "weft/app/session/cluster_files.h"

#include <algorithm>

#include <fmt/format.h>

#include "weft/base/file.h"
#include "weft/base/units.h"
#include "weft/formats/host_list.h"
#include "weft/formats/nccl_topology_xml.h"

namespace weft::session {
namespace {

using language::syntax::Text;

constexpr std::int64_t kMostClusterFileBytes = std::int64_t{64} << 20;

// NVLinks per device, from data sheets.
struct LinkedDevice {
  std::string_view name;
  std::int32_t compute, nvlinks;
};
constexpr LinkedDevice kLinkedDevices[] = {{"v100", 70, 6},  {"a100", 80, 12},  {"h100", 90, 18},
                                           {"h200", 90, 18}, {"b200", 100, 18}, {"gb200", 100, 18}};

std::string links_text(std::int32_t count, double gigabytes) {
  return fmt::format("{} NVLink{} of {}, as NCCL counts them", count, count == 1 ? "" : "s",
                     print_rate(gigabytes * 1e9));
}

// sm 90 is both H100 and H200; they differ in memory, which the file does not state.
void name_device(const formats::NcclGpu& gpu, DescribedNode& node) {
  if (gpu.architecture.starts_with("gfx94")) node.device = "mi300x";
  if (gpu.architecture.starts_with("gfx90a")) node.device = "mi250x";
  node.device_why = gpu.architecture.empty() ? fmt::format("sm {}", gpu.compute) : gpu.architecture;
  if (!gpu.architecture.empty()) return;
  for (const LinkedDevice& one : kLinkedDevices)
    if (one.compute == gpu.compute && node.device.empty()) node.device = one.name;
}

// The fabric bandwidth of the slowest GPU, or if there is none, its bus bandwidth.
void find_inside(const formats::NcclSystem& system, DescribedNode& node) {
  std::vector<double> direct(system.gpus.size()), bus(system.gpus.size());
  for (const formats::NcclLink& link : formats::links(system)) {
    if (link.from.kind != formats::NcclVertex::Kind::gpu) continue;
    const auto gpu = static_cast<std::size_t>(link.from.index);
    using enum formats::NcclLink::Kind;
    const bool to_peers =
        link.to.kind == formats::NcclVertex::Kind::gpu || link.to.kind == formats::NcclVertex::Kind::nvswitch;
    if (to_peers && (link.kind == nvlink || link.kind == xgmi)) direct[gpu] += link.bandwidth;
    if (link.kind == pci) bus[gpu] = std::max(bus[gpu], link.bandwidth);
  }
  const double slowest = *std::ranges::min_element(direct), of_bus = *std::ranges::min_element(bus);
  if (slowest > 0) {
    node.inside = slowest * 1e9;
    const bool amd = !system.gpus.front().architecture.empty();
    const double each = amd ? formats::xgmi_bandwidth(system.gpus.front().architecture)
                            : formats::nvlink_bandwidth(system.gpus.front().compute);
    const auto count = static_cast<std::int32_t>(slowest / each + 0.5);
    node.inside_why =
        amd ? fmt::format("{} XGMI links of {}", count, print_rate(each * 1e9)) : links_text(count, each);
  } else if (of_bus > 0) {
    node.inside = of_bus * 1e9;
    node.inside_why = fmt::format("PCIe of {}, as NCCL counts it", print_rate(node.inside));
  }
}

// Counts the network cards that carry data; a host's Ethernet port is slower and is skipped.
void find_cards(const formats::NcclSystem& system, DescribedNode& node) {
  double fastest = 0;
  for (const formats::NcclNet& net : system.nets) fastest = std::max(fastest, net.speed);
  std::int64_t count = 0;
  for (const formats::NcclNet& net : system.nets) {
    if (net.speed <= 0 || net.speed < fastest / 2) continue;
    ++count;
    node.cards += net.speed * 1e6 / 8;
    node.card_latency_seconds = std::max(node.card_latency_seconds, net.latency * 1e-6);
  }
  if (count > 0)
    node.cards_why =
        fmt::format("{} network card{} of {}", count, count == 1 ? "" : "s", print_rate(fastest * 1e6 / 8));
}

Result<DescribedNode> describe_system(const std::string& path, std::string_view text) {
  WEFT_TRY(system, formats::read_nccl_topology(text));
  if (system.gpus.empty())
    return user_error("it lists no GPUs", "NCCL writes them when a communicator is created");
  DescribedNode node;
  node.path = path;
  node.devices = static_cast<std::int64_t>(system.gpus.size());
  name_device(system.gpus.front(), node);
  find_inside(system, node);
  find_cards(system, node);
  return node;
}

Result<DescribedNode> describe_links(const std::string& path, std::string_view text) {
  WEFT_TRY(links, formats::read_smi_topology(text));
  DescribedNode node;
  node.path = path;
  node.devices = links.gpus();
  node.links = std::move(links);
  return node;
}

}  // namespace

void DescribedNode::settle(std::string_view name_of_device) {
  if (!links || inside > 0) return;
  for (const LinkedDevice& one : kLinkedDevices) {
    if (one.name != name_of_device) continue;
    const std::int32_t count = links->nvlinks_per_gpu(one.nvlinks);
    if (count == 0) return;
    inside = count * formats::nvlink_bandwidth(one.compute) * 1e9;
    inside_why = links_text(count, formats::nvlink_bandwidth(one.compute));
  }
}

Result<ClusterFiles> read_cluster_files(std::span<const Text> files) {
  ClusterFiles found;
  for (const Text& file : files) {
    const std::string path(file.text);
    const auto placed = [&](Error error, bool named) {
      if (named) error.message = fmt::format("{}: {}", path, error.message);
      error.span = file.span;
      return error;
    };
    auto text = read_file(path, kMostClusterFileBytes);
    if (!text.ok()) return placed(std::move(text).error(), false);
    const std::size_t first = std::min(text->find_first_not_of(" \t\r\n"), text->size());
    const char begins = first < text->size() ? (*text)[first] : '\0';
    const bool links = begins != '{' && begins != '<' && formats::looks_like_smi_topology(*text);
    if (begins == '<' || links) {
      auto node = links ? describe_links(path, *text) : describe_system(path, *text);
      if (!node.ok()) return placed(std::move(node).error(), true);
      if (found.node)
        return user_error(
            fmt::format("{} and {} both describe the links within a node", found.node->path, path),
            "give one of them", file.span);
      found.node = std::move(*node);
    } else if (begins != '{' && formats::looks_like_host_list(*text)) {
      auto hosts = formats::read_host_list(*text);
      if (!hosts.ok()) return placed(std::move(hosts).error(), true);
      if (found.hosts)
        return user_error(fmt::format("{} and {} both list nodes", found.hosts->path, path),
                          "give one of them", file.span);
      found.hosts = DescribedHosts{path, static_cast<std::int64_t>(hosts->hosts.size()), hosts->slots};
    } else {
      found.logs.push_back(file);
    }
  }
  return found;
}

}  // namespace weft::session
