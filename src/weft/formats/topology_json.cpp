#include "weft/formats/topology_json.h"

#include <algorithm>
#include <array>
#include <string>

#include <fmt/format.h>

#include "weft/formats/json_node.h"
#include "weft/formats/value.h"

namespace weft::formats {
namespace {

using cluster::NodeKind;
using cluster::Topology;

constexpr std::int32_t kMostDevices = 4096;  // a matrix of them has 16 million entries
constexpr double kMicro = 1e-6;

class TopologyReader {
 public:
  TopologyReader(std::string_view path, const TopologyOptions& options) : path_(path), options_(options) {}

  Result<Topology> read(std::string_view text) {
    auto parsed = parse_json(text);
    if (!parsed.ok()) return wrong(parsed.error().message);
    const Json& json = *parsed;
    if (!json.is_object()) return wrong("expected an object");
    if (const auto name = json.find("name"); name != json.end() && name->is_string())
      topology_.name = shown(name->get_ref<const std::string&>());
    WEFT_TRY_STATUS(json.contains("gpus_per_node") ? read_profile(json) : read_links(json));
    if (const Status fine = cluster::check(topology_); !fine.ok()) return wrong(fine.error().message);
    return std::move(topology_);
  }

 private:
  Error wrong(std::string_view text) const { return user_error(fmt::format("{}: {}", path_, text)); }

  Result<std::int32_t> count(const Json& json, const char* key, std::int32_t least) const {
    const auto found = json.find(key);
    const bool fits = found != json.end() && found->is_number_integer() && found->get<double>() >= least &&
                      found->get<double>() <= kMostDevices;
    if (!fits) return wrong(fmt::format("expected {} from {} to {}", key, least, kMostDevices));
    return found->get<std::int32_t>();
  }

  Result<double> number(const Json& json, const char* key) const {
    const auto found = json.find(key);
    if (found == json.end() || !found->is_number() || !(found->get<double>() >= 0))
      return wrong(fmt::format("expected {}, a number that is not negative", key));
    return found->get<double>();
  }

  void add_devices(std::int32_t devices) {
    for (std::int32_t d = 0; d < devices; ++d) topology_.add_node(NodeKind::device, fmt::format("gpu {}", d));
  }

  Status read_links(const Json& json) {
    if (options_.nodes != 1)
      return wrong(fmt::format("the file states its number of nodes, requested {}", options_.nodes));
    WEFT_TRY(devices, count(json, "gpus", 1));
    add_devices(devices);
    if (const auto switches = json.find("switches"); switches != json.end()) {
      if (!switches->is_array() || switches->size() > kMostDevices)
        return wrong("expected switches, a list of names");
      for (const Json& name : *switches) {
        if (!name.is_string()) return wrong("expected switches, a list of names");
        topology_.add_node(NodeKind::switch_, shown(name.get_ref<const std::string&>()));
      }
    }
    WEFT_TRY_STATUS(mark_switches(json, "copies", &cluster::Node::copies));
    WEFT_TRY_STATUS(mark_switches(json, "reduces", &cluster::Node::reduces));
    const auto unit = json.find("bandwidth_unit");
    double scale = 1e9;
    if (unit != json.end() && *unit == "chunks per round")
      scale = options_.unit_bytes_per_second;
    else if (unit != json.end() && *unit != "GB/s")
      return wrong("expected bandwidth_unit GB/s or chunks per round");
    const auto links = json.find("links");
    if (links == json.end() || !links->is_array() ||
        links->size() > static_cast<std::size_t>(cluster::kMaxLinks))
      return wrong(fmt::format("expected links, a list of at most {}", cluster::kMaxLinks));
    for (const Json& link : *links) WEFT_TRY_STATUS(read_link(link, scale));
    return {};
  }

  // Marks switches, by name, that can copy or reduce data.
  Status mark_switches(const Json& json, const char* key, bool cluster::Node::*flag) {
    const auto names = json.find(key);
    if (names == json.end()) return {};
    if (!names->is_array()) return wrong(fmt::format("expected {}, a list of names of switches", key));
    for (const Json& name : *names) {
      bool found = false;
      for (cluster::Node& node : topology_.nodes) {
        if (node.kind != NodeKind::switch_ || !name.is_string() ||
            node.name != name.get_ref<const std::string&>())
          continue;
        node.*flag = found = true;
      }
      if (!found) return wrong(fmt::format("{}: no switch has this name: {}", key, shown(name.dump())));
    }
    return {};
  }

  Status read_link(const Json& link, double scale) {
    const auto nodes = static_cast<double>(topology_.nodes.size());
    const auto is_node = [&](const Json& end) {
      return end.is_number_integer() && end.get<double>() >= 0 && end.get<double>() < nodes;
    };
    const bool fits = link.is_array() && (link.size() == 3 || link.size() == 4) && is_node(link[0]) &&
                      is_node(link[1]) && link[2].is_number() && (link.size() == 3 || link[3].is_number());
    if (!fits)
      return wrong(fmt::format("link {}: expected two nodes below {}, a bandwidth and perhaps a latency",
                               topology_.links.size(), nodes));
    const auto from = link[0].get<std::int32_t>(), to = link[1].get<std::int32_t>();
    // A path through a switch has two links.
    const bool half = from >= topology_.devices || to >= topology_.devices;
    const double latency =
        link.size() == 4 ? link[3].get<double>() * kMicro : options_.latency_seconds * (half ? 0.5 : 1);
    topology_.add_link(from, to, link[2].get<double>() * scale, latency);
    return {};
  }

  // Units of a profile's numbers: bytes per chunk, and seconds.
  struct Unit {
    double bytes = 1 << 20, seconds = kMicro;
  };
  Unit unit_of_name() const {
    struct Known {
      std::string_view suffix;
      Unit unit;
    };
    static constexpr auto kKnown = std::to_array<Known>(
        {{"_1KB", {1 << 10, kMicro / 100}}, {"_32KB", {32 << 10, kMicro / 10}}, {"_1MB", {1 << 20, kMicro}}});
    for (const Known& known : kKnown)
      if (topology_.name.ends_with(known.suffix)) return known.unit;
    return {};
  }

  double rate(double beta) const { return unit_.bytes / (beta * unit_.seconds); }

  Status read_profile(const Json& json) {
    WEFT_TRY(inside, count(json, "gpus_per_node", 1));
    if (options_.nodes < 1 || std::int64_t{options_.nodes} * inside > kMostDevices)
      return wrong(fmt::format("expected 1 to {} devices in all, found {} nodes of {}", kMostDevices,
                               options_.nodes, inside));
    unit_ = unit_of_name();
    WEFT_TRY(alpha, number(json, "alpha"));
    add_devices(options_.nodes * inside);
    for (std::int32_t node = 0; node < options_.nodes; ++node)
      WEFT_TRY_STATUS(read_node(json, node, inside, alpha * unit_.seconds));
    if (options_.nodes == 1) return {};

    WEFT_TRY(cards, count(json, "nics_per_node", 1));
    WEFT_TRY(remote_alpha, number(json, "remote_alpha"));
    WEFT_TRY(remote_beta, number(json, "remote_beta"));
    const std::int32_t network = topology_.add_node(NodeKind::switch_, "network");
    for (std::int32_t node = 0; node < options_.nodes; ++node)
      for (std::int32_t c = 0; c < std::min(cards, inside); ++c) {
        const std::int32_t card = topology_.add_node(NodeKind::nic, fmt::format("nic {}.{}", node, c));
        topology_.add_cable(card, network, rate(remote_beta), remote_alpha * unit_.seconds / 2);
        for (std::int32_t d = 0; d < inside; ++d)
          if (std::int64_t{d} * std::min(cards, inside) / inside == c)
            topology_.add_cable(node * inside + d, card, rate(remote_beta), 0);
      }
    return {};
  }

  Status read_node(const Json& json, std::int32_t node, std::int32_t inside, double latency) {
    const std::int32_t first = node * inside;
    if (json.contains("links")) return read_matrices(json, first, inside, latency);
    const auto betas = json.find("node_betas_list");
    const bool listed = betas != json.end() && betas->is_array() &&
                        (betas->size() == 1 || betas->size() == 2) && (*betas)[0].is_number() &&
                        betas->back().is_number();
    if (!listed) return wrong("expected node_betas_list, one number or two, or links and betas");
    const double near = rate((*betas)[0].get<double>());
    cluster::Link link{"nvlink", near, latency, cluster::Shape::switched, {}, 1};
    if (betas->size() == 2) {
      if (inside != 8)
        return wrong(fmt::format("two betas describe a DGX-1 of 8 devices, found {} devices", inside));
      link.shape = cluster::Shape::hybrid_cube_mesh;
    }
    const std::size_t before = topology_.links.size();
    cluster::wire_node(topology_, link, first, inside);
    if (betas->size() == 1) return {};
    // A device has six ports, two or one per neighbour; the profile has measured both cases.
    const double twice = near / 3, far = rate((*betas)[1].get<double>());
    for (std::size_t l = before; l < topology_.links.size(); ++l) {
      double& speed = topology_.links[l].bytes_per_second;
      speed = speed > 0.75 * twice ? near : far;
    }
    return {};
  }

  Status read_matrices(const Json& json, std::int32_t first, std::int32_t inside, double latency) {
    const Json& links = json["links"];
    const auto betas = json.find("betas");
    const auto square = [&](const Json& matrix) {
      if (!matrix.is_array() || matrix.size() != static_cast<std::size_t>(inside)) return false;
      for (const Json& row : matrix) {
        if (!row.is_array() || row.size() != matrix.size()) return false;
        for (const Json& entry : row)
          if (!entry.is_number()) return false;
      }
      return true;
    };
    if (!square(links) || betas == json.end() || !square(*betas))
      return wrong(
          fmt::format("expected links and betas, matrices of {} rows and columns of numbers", inside));
    for (std::int32_t to = 0; to < inside; ++to)
      for (std::int32_t from = 0; from < inside; ++from)
        if (links[to][from].get<double>() > 0)
          topology_.add_link(first + from, first + to, rate((*betas)[to][from].get<double>()), latency);
    return {};
  }

  std::string_view path_;
  const TopologyOptions& options_;
  Topology topology_;
  Unit unit_;
};

}  // namespace

Result<Topology> read_topology_json(std::string_view text, std::string_view path,
                                    const TopologyOptions& options) {
  return TopologyReader(path, options).read(text);
}

}  // namespace weft::formats
