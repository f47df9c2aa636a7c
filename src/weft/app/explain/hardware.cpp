#include "weft/app/explain/hardware.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "weft/app/explain/table.h"
#include "weft/base/units.h"

namespace weft::explain {

std::string print_rates(const cluster::Device& device) {
  std::string text;
  for (std::size_t p = 0; p < cluster::kPrecisions; ++p)
    if (device.flops_per_second[p] > 0)
      text +=
          fmt::format("{}{} {}", text.empty() ? "" : ", ", cluster::name(static_cast<cluster::Precision>(p)),
                      print(Quantity{device.flops_per_second[p], Dimension::flops_per_second}));
  for (std::size_t k = 0; k < cluster::kKernelKinds; ++k)
    if (device.kernels[k] > 0)
      text += fmt::format(", {} {}", cluster::name(static_cast<cluster::KernelKind>(k)),
                          print(Quantity{device.kernels[k], Dimension::flops_per_second}));
  return text;
}

std::string print_links(const cluster::Cluster& cluster) {
  std::string text;
  for (const cluster::Axis& axis : cluster.axes)
    if (!axis.link.name.empty())
      text += fmt::format("{}{} {} {}", text.empty() ? "" : ", ", axis.link.name,
                          print_rate(axis.link.bytes_per_second), print_seconds(axis.link.latency_seconds));
  return text;
}

// "80 % among 4 nodes, 50 % among 64 nodes"
static std::string print_scaling(const cluster::Link& link) {
  std::string text;
  for (const cluster::LinkShare& at : link.scaling)
    text += fmt::format("{}{:g} % among {} nodes", text.empty() ? "" : ", ", 100 * at.share, at.nodes);
  return text;
}

std::string print_mesh(const cluster::Cluster& cluster) {
  std::string text;
  for (const cluster::Axis& axis : cluster.axes)
    text += fmt::format("{}{} = {}", text.empty() ? "" : ", ", axis.name, axis.size);
  return text;
}

std::string print_text(const cluster::Cluster& cluster, std::size_t width,
                       std::span<const std::string> origins) {
  std::string out =
      fmt::format("cluster {}: {} devices{} {}\n\n", cluster.name, print_exact(cluster.devices()),
                  cluster.is_mixed() ? "," : "", cluster::print_devices(cluster));
  Table table(
      {{"axis"}, {"size", Align::right}, {"link"}, {"bandwidth", Align::right}, {"latency", Align::right}});
  for (const cluster::Axis& axis : cluster.axes)
    table.add(axis.link.name.empty()
                  ? std::vector<std::string>{axis.name, print_exact(axis.size)}
                  : std::vector<std::string>{axis.name, print_exact(axis.size), axis.link.name,
                                             print_rate(axis.link.bytes_per_second),
                                             print_seconds(axis.link.latency_seconds)});
  out += table.print(width);
  for (const cluster::Axis& axis : cluster.axes)
    if (!axis.link.scaling.empty())
      out += "\n" + wrap(fmt::format("collectives reach a share of {}: {}", axis.link.name,
                                     print_scaling(axis.link)),
                         width, 2);
  for (std::size_t i = 0; i < origins.size(); ++i) out += (i == 0 ? "\n" : "") + wrap(origins[i], width, 2);
  return out;
}

std::string print_json(const cluster::Cluster& cluster, std::span<const std::string> origins) {
  nlohmann::ordered_json axes = nlohmann::ordered_json::array();
  for (const cluster::Axis& axis : cluster.axes) {
    axes.push_back({{"axis", axis.name},
                    {"size", axis.size},
                    {"link", axis.link.name},
                    {"bytes_per_second", axis.link.bytes_per_second},
                    {"latency_seconds", axis.link.latency_seconds}});
    for (const cluster::LinkShare& at : axis.link.scaling)
      axes.back()["scaling"].push_back({{"nodes", at.nodes}, {"share", at.share}});
  }
  nlohmann::ordered_json made = {{"cluster", cluster.name},
                                 {"device", cluster.device.name},
                                 {"devices", cluster.devices()},
                                 {"mesh", axes}};
  for (const cluster::DeviceKind& kind : cluster.kinds)
    made["kinds"].push_back({{"nodes", kind.nodes}, {"device", kind.device.name}});
  if (!origins.empty()) made["origins"] = std::vector<std::string>(origins.begin(), origins.end());
  return made.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

std::string print_text(const cluster::Device& device, std::size_t width) {
  constexpr std::size_t kIndent = 11;  // of the values
  return fmt::format("device {}\nmemory     {}\nbandwidth  {}\nlaunch     {}\n", device.name,
                     print_bytes(device.memory_bytes), print_rate(device.memory_bytes_per_second),
                     print_seconds(device.launch_seconds)) +
         wrap(fmt::format("rates      {}", print_rates(device)), width, kIndent);
}

std::string print_json(const cluster::Device& device) {
  nlohmann::ordered_json made = {{"device", device.name},
                                 {"memory_bytes", device.memory_bytes},
                                 {"memory_bytes_per_second", device.memory_bytes_per_second},
                                 {"launch_seconds", device.launch_seconds}};
  made["flops_per_second"] = nlohmann::ordered_json::object();
  for (std::size_t p = 0; p < cluster::kPrecisions; ++p)
    if (device.flops_per_second[p] > 0)
      made["flops_per_second"][std::string(cluster::name(static_cast<cluster::Precision>(p)))] =
          device.flops_per_second[p];
  made["reach"] = device.reach;
  for (std::size_t k = 0; k < cluster::kKernelKinds; ++k)
    if (device.kernels[k] > 0)
      made["flops_per_second"][std::string(cluster::name(static_cast<cluster::KernelKind>(k)))] =
          device.kernels[k];
  return made.dump() + "\n";
}

}  // namespace weft::explain
