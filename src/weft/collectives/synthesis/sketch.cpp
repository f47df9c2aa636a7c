#include "weft/collectives/synthesis/sketch.h"

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "weft/collectives/synthesis/index.h"

namespace weft::synthesis {
namespace {

using cluster::DirectedLink;
using cluster::Topology;
using Line = SketchLine;

// Lines that contradict each other, and why.
struct Conflict {
  std::vector<std::size_t> lines;
  std::string why;
};

class Sketcher {
 public:
  Sketcher(const Sketch& sketch, const Topology& topology)
      : sketch_(sketch), topology_(topology), inside_(topology.devices / std::max(1, sketch.nodes)) {}

  Result<Topology> run() {
    if (sketch_.nodes < 1 || topology_.devices % sketch_.nodes != 0)
      return user_error(
          fmt::format("a sketch of {} nodes does not fit {} devices", sketch_.nodes, topology_.devices),
          "nnodes must divide the devices");
    for (std::size_t i = 0; i < sketch_.lines.size(); ++i) judge(i);
    if (conflicts_.empty()) {
      const Topology made = restricted(nullptr);
      const auto lost = unreached(made);
      if (!lost) return made;
      conflicts_.push_back({smallest_cause(), fmt::format("there is no path from {} to {}",
                                                          name_of(lost->first), name_of(lost->second))});
    }
    const auto smallest = std::ranges::min_element(
        conflicts_, {}, [](const Conflict& it) { return std::pair(it.lines.size(), it.lines); });
    std::string text = fmt::format("the sketch cannot be satisfied: {}", smallest->why);
    std::string hint = smallest->lines.size() == 1 ? "change this line" : "change one of these lines";
    for (const std::size_t line : smallest->lines)
      text += fmt::format("\n  line {}: {}", sketch_.lines[line].line, sketch_.lines[line].text);
    return user_error(std::move(text), std::move(hint));
  }

 private:
  const std::string& name_of(std::int32_t node) const { return topology_.nodes[at(node)].name; }

  bool is_inside(std::int32_t device) const { return device >= 0 && device < inside_; }

  void complain(std::vector<std::size_t> lines, std::string why) {
    std::ranges::sort(lines);
    conflicts_.push_back({std::move(lines), std::move(why)});
  }

  void judge(std::size_t index) {
    const Line& line = sketch_.lines[index];
    const bool names_devices = line.kind == Line::Kind::connection || line.kind == Line::Kind::relay;
    if (names_devices && !is_inside(line.device))
      return complain({index}, fmt::format("a node has devices 0 to {}, found {}", inside_ - 1, line.device));
    if (names_devices || line.kind == Line::Kind::switch_)
      for (const std::int32_t device : line.devices)
        if (!is_inside(device))
          return complain({index}, fmt::format("a node has devices 0 to {}, found {}", inside_ - 1, device));
    if (line.kind == Line::Kind::connection && line.devices.empty() && sketch_.nodes > 1)
      complain({index}, fmt::format("device {} has no receiver", line.device));
    if (line.kind == Line::Kind::chunks && (line.device < 1 || line.device > 64))
      complain({index}, fmt::format("a block has 1 to 64 chunks, found {}", line.device));
    if (line.kind == Line::Kind::relay) judge_relay(index);
    if (line.kind == Line::Kind::symmetry) judge_symmetry(index);
  }

  // A relay must be a sender.
  void judge_relay(std::size_t index) {
    const Line& line = sketch_.lines[index];
    std::optional<std::size_t> other;
    for (std::size_t i = 0; i < sketch_.lines.size(); ++i) {
      if (sketch_.lines[i].kind != Line::Kind::connection) continue;
      if (sketch_.lines[i].device == line.device) return;
      if (!other) other = i;
    }
    if (other)
      complain({index, *other},
               fmt::format("device {} relays, but does not send to other nodes", line.device));
  }

  // The shift must map every line to another line, and every link to an equal link.
  void judge_symmetry(std::size_t index) {
    const Line& line = sketch_.lines[index];
    const std::int32_t size = line.devices.empty() ? 0 : line.devices.front(), offset = line.device;
    if (size < 1 || offset < 1 || offset >= size || size % offset != 0 || topology_.devices % size != 0)
      return complain({index},
                      fmt::format("expected an offset that divides a size that divides {}, found {} and {}",
                                  topology_.devices, offset, size));
    const auto moved = [&](std::int32_t device) {
      return device / size * size + (device % size + offset) % size;
    };
    std::map<std::tuple<std::int32_t, std::int32_t>, double> rates;
    for (const DirectedLink& link : topology_.links)
      if (link.from < topology_.devices && link.to < topology_.devices)
        rates[{link.from, link.to}] += link.bytes_per_second;
    for (const auto& [ends, rate] : rates) {
      const auto image = rates.find({moved(std::get<0>(ends)), moved(std::get<1>(ends))});
      if (image != rates.end() && image->second == rate) continue;
      return complain({index}, fmt::format("the link from {} to {} has no counterpart",
                                           name_of(std::get<0>(ends)), name_of(std::get<1>(ends))));
    }
    if (size > inside_) return;  // shifts whole nodes, which are all connected alike
    for (std::size_t i = 0; i < sketch_.lines.size(); ++i) {
      const Line& one = sketch_.lines[i];
      if (one.kind != Line::Kind::connection || !is_inside(one.device)) continue;
      std::vector<std::int32_t> devices;
      for (const std::int32_t device : one.devices) devices.push_back(moved(device));
      std::ranges::sort(devices);
      const bool found = std::ranges::any_of(sketch_.lines, [&](const Line& other) {
        std::vector<std::int32_t> sorted = other.devices;
        std::ranges::sort(sorted);
        return other.kind == Line::Kind::connection && other.device == moved(one.device) && sorted == devices;
      });
      if (!found)
        complain({index, i}, fmt::format("shifted by {}, device {} would have to send as {} does", offset,
                                         moved(one.device), one.device));
    }
  }

  // The topology without the inter-node links that no line allows. Lines marked in `without` are
  // ignored.
  Topology restricted(const std::vector<char>* without) const {
    std::vector<const Line*> connections;
    for (std::size_t i = 0; i < sketch_.lines.size(); ++i)
      if (sketch_.lines[i].kind == Line::Kind::connection && (!without || (*without)[i] == 0))
        connections.push_back(&sketch_.lines[i]);
    Topology made = topology_;
    if (connections.empty() || sketch_.nodes < 2) return made;
    // Restricts links between a device and a network card, and between devices of two nodes.
    const auto sends = [&](std::int32_t device) {
      return std::ranges::any_of(connections, [&](const Line* it) { return it->device == device % inside_; });
    };
    const auto receives = [&](std::int32_t device) {
      return std::ranges::any_of(connections, [&](const Line* it) {
        return std::ranges::find(it->devices, device % inside_) != it->devices.end();
      });
    };
    const auto is_device = [&](std::int32_t node) { return node < topology_.devices; };
    const std::vector<char> outward = leads_outside();
    std::vector<DirectedLink> kept;
    std::vector<std::int32_t> place(made.links.size(), -1);
    for (std::size_t l = 0; l < made.links.size(); ++l) {
      const DirectedLink& link = made.links[l];
      bool allowed = true;
      if (is_device(link.from) && is_device(link.to) && link.from / inside_ != link.to / inside_)
        allowed = std::ranges::any_of(connections, [&](const Line* it) {
          return it->device == link.from % inside_ &&
                 std::ranges::find(it->devices, link.to % inside_) != it->devices.end();
        });
      else if (is_device(link.from) && !is_device(link.to) && outward[at(link.to)] != 0)
        allowed = sends(link.from);
      else if (!is_device(link.from) && is_device(link.to) && outward[at(link.from)] != 0)
        allowed = receives(link.to);
      if (!allowed) continue;
      place[l] = static_cast<std::int32_t>(kept.size());
      kept.push_back(link);
    }
    for (DirectedLink& link : kept)
      if (link.shares_with >= 0) link.shares_with = place[at(link.shares_with)];
    made.links = std::move(kept);
    return made;
  }

  // Marks switches and network cards that reach other nodes without passing a device.
  std::vector<char> leads_outside() const {
    std::vector<std::int32_t> group(topology_.nodes.size());
    for (std::size_t n = 0; n < group.size(); ++n) group[n] = static_cast<std::int32_t>(n);
    const auto find = [&](std::int32_t node) {
      while (group[at(node)] != node) node = group[at(node)];
      return node;
    };
    for (const DirectedLink& link : topology_.links)
      if (link.from >= topology_.devices && link.to >= topology_.devices)
        group[at(find(link.from))] = find(link.to);
    std::map<std::int32_t, std::pair<std::int32_t, bool>>
        nodes;  // per group: a node, and whether there is another
    for (const DirectedLink& link : topology_.links) {
      const bool down = link.from >= topology_.devices && link.to < topology_.devices;
      const bool up = link.from < topology_.devices && link.to >= topology_.devices;
      if (!down && !up) continue;
      const std::int32_t node = (down ? link.to : link.from) / inside_;
      auto& seen = nodes.try_emplace(find(down ? link.from : link.to), node, false).first->second;
      if (seen.first != node) seen.second = true;
    }
    std::vector<char> outside(topology_.nodes.size(), 0);
    for (std::size_t n = at(topology_.devices); n < outside.size(); ++n)
      if (const auto it = nodes.find(find(static_cast<std::int32_t>(n))); it != nodes.end())
        outside[n] = it->second.second;
    return outside;
  }

  // A pair of devices without a path between them.
  std::optional<std::pair<std::int32_t, std::int32_t>> unreached(const Topology& topology) const {
    for (const bool against : {false, true}) {
      std::vector<std::vector<std::int32_t>> next(topology.nodes.size());
      for (const DirectedLink& link : topology.links)
        next[at(against ? link.to : link.from)].push_back(against ? link.from : link.to);
      std::vector<char> seen(topology.nodes.size(), 0);
      std::vector<std::int32_t> list{0};
      seen[0] = 1;
      for (std::size_t i = 0; i < list.size(); ++i)
        for (const std::int32_t node : next[at(list[i])])
          if (std::exchange(seen[at(node)], 1) == 0) list.push_back(node);
      for (std::int32_t device = 0; device < topology.devices; ++device)
        if (seen[at(device)] == 0) return against ? std::pair(device, 0) : std::pair(0, device);
    }
    return std::nullopt;
  }

  // Removes lines as long as the remaining ones still disconnect devices.
  std::vector<std::size_t> smallest_cause() const {
    std::vector<char> without(sketch_.lines.size(), 0);
    std::vector<std::size_t> left;
    for (std::size_t i = 0; i < sketch_.lines.size(); ++i) {
      if (sketch_.lines[i].kind != Line::Kind::connection) continue;
      without[i] = 1;
      const bool others = std::ranges::any_of(sketch_.lines, [&](const Line& line) {
        const auto other = static_cast<std::size_t>(&line - sketch_.lines.data());
        return line.kind == Line::Kind::connection && without[other] == 0;
      });
      if (others && unreached(restricted(&without))) continue;
      without[i] = 0;
      left.push_back(i);
    }
    return left;
  }

  const Sketch& sketch_;
  const Topology& topology_;
  std::int32_t inside_;
  std::vector<Conflict> conflicts_;
};

}  // namespace

Result<Topology> apply(const Sketch& sketch, const Topology& topology) {
  return Sketcher(sketch, topology).run();
}

}  // namespace weft::synthesis
