#include "weft/formats/nccl_graph_xml.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

#include <fmt/format.h>

#include "weft/base/nearest.h"
#include "weft/base/number.h"
#include "weft/formats/xml_document.h"

namespace weft::formats {
namespace {

constexpr std::size_t kMaxChannels = 64;  // NCCL's MAXCHANNELS
constexpr std::array<std::string_view, 11> kTypes = {"LOC", "NVL", "NVB", "C2C", "PIX", "PXB",
                                                     "P2C", "PXN", "PHB", "SYS", "NET"};

// NCCL's numbers of the graph and of its pattern.
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
    return user_error("the speed of a graph must be finite and not negative");
  std::vector<std::int32_t> devices = graph.channels.front().devices;
  std::ranges::sort(devices);
  for (std::size_t i = 0; i < graph.channels.size(); ++i)
    WEFT_TRY_STATUS(check_channel(graph.channels[i], devices, i));
  return {};
}

// NCCL parses device numbers as hexadecimal.
std::string device(std::string_view tag, std::int32_t number) {
  return fmt::format("      <{} dev=\"{:#x}\"/>\n", tag, number);
}

Result<double> read_speed(const XmlElement& element, std::string_view attribute) {
  WEFT_TRY(text, element.text(attribute));
  if (const auto value = read_number<double>(text)) return *value;
  return element.unexpected(attribute, "a number of GB/s");
}

Result<std::int32_t> read_device(const XmlElement& element) {
  WEFT_TRY(text, element.text("dev"));
  std::string_view digits = text;
  const bool hexadecimal = digits.starts_with("0x");
  if (hexadecimal) digits.remove_prefix(2);
  const auto value =
      read_number<std::int32_t>(digits, 0, std::numeric_limits<std::int32_t>::max(), hexadecimal ? 16 : 10);
  if (!value) return element.unexpected("dev", "the number of a device");
  return *value;
}

Result<NcclChannel> read_channel(const XmlElement& element) {
  NcclChannel channel;
  for (XmlElement each = element.first_child(); each; each = each.next_sibling()) {
    WEFT_TRY(number, read_device(each));
    if (each.tag() == "gpu")
      channel.devices.push_back(number);
    else if (each.tag() == "net")
      (channel.devices.empty() ? channel.net_in : channel.net_out) = number;
    else
      return each.error(fmt::format("expected <gpu> or <net> in a channel, found <{}>", each.tag()));
  }
  return channel;
}

Result<NcclGraph> read_graph(const XmlElement& element) {
  NcclGraph graph;
  WEFT_TRY(pattern, element.integer("pattern", 0, 8));
  const auto known = std::ranges::find(kPatternNumbers, pattern, &PatternNumbers::pattern);
  if (known == kPatternNumbers.end()) return element.unexpected("pattern", "3 (a tree) or 4 (a ring)");
  graph.pattern = static_cast<NcclGraph::Pattern>(known - kPatternNumbers.begin());
  WEFT_TRY(inside, read_speed(element, "speedintra"));
  WEFT_TRY(between, read_speed(element, "speedinter"));
  graph.speed_inside = inside;
  graph.speed_between = between;
  WEFT_TRY(type_inside, element.text("typeintra"));
  WEFT_TRY(type_between, element.text("typeinter"));
  graph.type_inside = type_inside;
  graph.type_between = type_between;
  WEFT_TRY(channels, element.integer("nchannels", 1, kMaxChannels));
  for (XmlElement each = element.first_child("channel"); each; each = each.next_sibling("channel")) {
    WEFT_TRY(channel, read_channel(each));
    graph.channels.push_back(std::move(channel));
  }
  if (static_cast<std::int64_t>(graph.channels.size()) != channels)
    return element.error(
        fmt::format("a graph states {} channels but has {}", channels, graph.channels.size()));
  WEFT_TRY_STATUS(check_graph(graph));
  return graph;
}

}  // namespace

Result<std::vector<NcclGraph>> read_nccl_graphs(std::string_view text) {
  WEFT_TRY(document, XmlDocument::parse(text, Quotes::double_only));
  const XmlElement top = document.root();
  if (top.tag() != "graphs") return top.error(fmt::format("expected <graphs>, found <{}>", top.tag()));
  std::vector<NcclGraph> graphs;
  for (XmlElement each = top.first_child("graph"); each; each = each.next_sibling("graph")) {
    WEFT_TRY(graph, read_graph(each));
    graphs.push_back(std::move(graph));
  }
  return graphs;
}

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
