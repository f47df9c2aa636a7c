#include "weft/formats/nccl_graph_xml.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

#include <fmt/format.h>

#include "weft/base/nearest.h"

namespace weft::formats {
namespace {

constexpr std::size_t kMaxChannels = 64;  // MAXCHANNELS of NCCL
constexpr std::array<std::string_view, 11> kTypes = {"LOC", "NVL", "NVB", "C2C", "PIX", "PXB",
                                                     "P2C", "PXN", "PHB", "SYS", "NET"};

// NCCL's numbers: the graph's place in its list, and its pattern.
struct PatternNumbers {
  int id, pattern;
};
constexpr std::array<PatternNumbers, 2> kPatternNumbers = {{{0, 4}, {1, 3}}};

Status check_channel(const NcclChannel& channel, const std::vector<std::int32_t>& devices,
                     std::size_t number) {
  std::vector<std::int32_t> sorted = channel.devices;
  std::ranges::sort(sorted);
  if (sorted.empty()) return user_error(fmt::format("a channel visits no gpu: channel {}", number));
  if (sorted.front() < 0) return user_error(fmt::format("a gpu has a negative number: {}", sorted.front()));
  if (const auto twice = std::ranges::adjacent_find(sorted); twice != sorted.end())
    return user_error(fmt::format("a channel visits a gpu twice: channel {}, gpu {}", number, *twice));
  if (sorted != devices)
    return user_error(fmt::format("channels visit different gpus: channel 0 and channel {}", number),
                      "every channel of a graph visits all gpus of the host");
  if ((channel.net_in < 0) != (channel.net_out < 0))
    return user_error(
        fmt::format("a channel has one end on the network and one on the host: channel {}", number));
  return {};
}

Status check_graph(const NcclGraph& graph) {
  if (graph.channels.empty()) return user_error("a graph has no channel");
  if (graph.channels.size() > kMaxChannels)
    return user_error(
        fmt::format("a graph has more than {} channels: {}", kMaxChannels, graph.channels.size()));
  for (const std::string& type : {graph.type_inside, graph.type_between})
    if (std::ranges::find(kTypes, type) == kTypes.end())
      return user_error(fmt::format("unknown path type: {}", type), did_you_mean(type, kTypes));
  if (!(std::isfinite(graph.speed_inside) && std::isfinite(graph.speed_between)) || graph.speed_inside < 0 ||
      graph.speed_between < 0)
    return user_error("the speed of a graph is not a number from 0");
  std::vector<std::int32_t> devices = graph.channels.front().devices;
  std::ranges::sort(devices);
  for (std::size_t i = 0; i < graph.channels.size(); ++i)
    WEFT_TRY_STATUS(check_channel(graph.channels[i], devices, i));
  return {};
}

// Device numbers are read as hexadecimal.
std::string device(std::string_view tag, std::int32_t number) {
  return fmt::format("      <{} dev=\"{:#x}\"/>\n", tag, number);
}

}  // namespace

Result<std::string> write_nccl_graphs(const std::vector<NcclGraph>& graphs) {
  std::string out = "<graphs version=\"1\">\n";
  for (const NcclGraph& graph : graphs) {
    WEFT_TRY_STATUS(check_graph(graph));
    const PatternNumbers& numbers = kPatternNumbers[static_cast<std::size_t>(graph.pattern)];
    const bool cross = std::ranges::any_of(
        graph.channels, [](const NcclChannel& channel) { return channel.net_in != channel.net_out; });
    out += fmt::format(
        R"(  <graph id="{}" pattern="{}" crossnic="{}" nchannels="{}" speedintra="{}" speedinter="{}" )"
        R"(latencyinter="0" typeintra="{}" typeinter="{}" samechannels="0">)"
        "\n",
        numbers.id, numbers.pattern, cross ? 1 : 0, graph.channels.size(), graph.speed_inside,
        graph.speed_between, graph.type_inside, graph.type_between);
    for (const NcclChannel& channel : graph.channels) {
      out += "    <channel>\n";
      if (channel.net_in >= 0) out += device("net", channel.net_in);
      for (const std::int32_t gpu : channel.devices) out += device("gpu", gpu);
      if (channel.net_out >= 0) out += device("net", channel.net_out);
      out += "    </channel>\n";
    }
    out += "  </graph>\n";
  }
  return out + "</graphs>\n";
}

}  // namespace weft::formats
