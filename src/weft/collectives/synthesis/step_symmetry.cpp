#include "weft/collectives/synthesis/step_symmetry.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "weft/collectives/synthesis/automorphism.h"

namespace weft::synthesis {
namespace {

using Image = std::vector<std::int32_t>;

constexpr std::size_t kMostFound = 48;        // symmetries per image of device 0
constexpr std::int64_t kMostTries = 200'000;  // device placements, in total
constexpr std::size_t kMostGenerators = 48;
constexpr std::size_t kMostSymmetryWork = 30'000'000;  // images of devices and edges, when generating groups
constexpr std::size_t kMostGroupsOfASize = 4;

// Nodes: devices, then edges, then limits. Arcs to limits are marked by the kind of limit.
ArcGraph graph_of(const StepNetwork& network) {
  const auto edges = static_cast<std::int32_t>(network.edges.size());
  const auto limits = static_cast<std::int32_t>(network.limits.size());
  ArcGraph graph(network.devices, network.devices + edges + limits);
  for (std::int32_t e = 0; e < edges; ++e) {
    const StepEdge& edge = network.edges[static_cast<std::size_t>(e)];
    graph.add(edge.from, network.devices + e, 1);
    graph.add(network.devices + e, edge.to, 1);
  }
  std::map<std::tuple<double, bool, bool>, std::int64_t> marks;
  for (std::int32_t l = 0; l < limits; ++l) {
    const StepLimit& limit = network.limits[static_cast<std::size_t>(l)];
    const auto fresh = static_cast<std::int64_t>(marks.size()) + 1;
    const std::int64_t mark =
        marks.try_emplace({limit.capacity, limit.copied, limit.added}, fresh).first->second;
    for (const std::int32_t edge : limit.edges)
      graph.add(network.devices + edge, network.devices + edges + l, mark);
  }
  graph.close();
  return graph;
}

class SymmetryFinder {
 public:
  SymmetryFinder(const StepNetwork& network, std::int32_t fixed)
      : network_(network),
        fixed_(fixed),
        size_(static_cast<std::size_t>(network.devices)),
        graph_(graph_of(network)) {
    capacity_.assign(size_ * size_, 0);
    std::vector<double> least(network.edges.size(), 0);
    for (const StepLimit& limit : network.limits) {
      const double share = limit.capacity / static_cast<double>(limit.edges.size());
      for (const std::int32_t edge : limit.edges) least[static_cast<std::size_t>(edge)] += share;
    }
    for (std::size_t i = 0; i < least.size(); ++i) {
      const StepEdge& edge = network.edges[i];
      capacity_[static_cast<std::size_t>(edge.from) * size_ + static_cast<std::size_t>(edge.to)] += least[i];
    }
  }

  // Finds symmetries whose powers, except the identity, move every device. Only these can generate
  // the required groups.
  std::vector<StepSymmetry> find() {
    for (std::size_t shift = 1; shift < size_; ++shift) {
      Image turn(size_), exchange(size_);
      for (std::size_t i = 0; i < size_; ++i) {
        turn[i] = static_cast<std::int32_t>((i + shift) % size_);
        exchange[i] = static_cast<std::int32_t>(i ^ shift);
      }
      consider(turn);
      if ((size_ & (size_ - 1)) == 0) consider(exchange);
    }
    const std::size_t first = fixed_ == 0 ? 1 : 0;
    for (std::size_t to = 0; to < size_ && first < size_; ++to) {
      tries_left_ = kMostTries / network_.devices;
      found_here_ = 0;
      Image image(size_, -1);
      std::vector<char> used(size_, 0);
      if (fixed_ >= 0) {
        image[static_cast<std::size_t>(fixed_)] = fixed_;
        used[static_cast<std::size_t>(fixed_)] = 1;
      }
      if (used[to] || to == first) continue;
      image[first] = static_cast<std::int32_t>(to);
      used[to] = 1;
      extend(image, used, 0);
    }
    return {found_.begin(), found_.end()};
  }

 private:
  bool alike(std::size_t a, std::size_t b, const Image& image) const {
    const auto at = [&](std::size_t i) { return static_cast<std::size_t>(image[i]); };
    return capacity_[a * size_ + b] == capacity_[at(a) * size_ + at(b)] &&
           capacity_[b * size_ + a] == capacity_[at(b) * size_ + at(a)];
  }

  void extend(Image& image, std::vector<char>& used, std::size_t next) {
    while (next < size_ && image[next] >= 0) ++next;
    if (next == size_) {
      if (consider(image)) ++found_here_;
      return;
    }
    for (std::size_t to = 0; to < size_ && found_here_ < kMostFound && --tries_left_ > 0; ++to) {
      if (used[to] || to == next) continue;
      image[next] = static_cast<std::int32_t>(to);
      bool fits = true;
      for (std::size_t other = 0; other < size_ && fits; ++other)
        fits = image[other] < 0 || other == next || alike(next, other, image);
      if (fits) {
        used[to] = 1;
        extend(image, used, next + 1);
        used[to] = 0;
      }
      image[next] = -1;
    }
  }

  bool moves_all_alike(const Image& image) const {
    std::size_t length = 0;
    std::vector<char> seen(size_, 0);
    for (std::size_t start = 0; start < size_; ++start) {
      if (seen[start] || static_cast<std::int32_t>(start) == fixed_) continue;
      std::size_t here = 0;
      for (std::size_t at = start; !seen[at]; at = static_cast<std::size_t>(image[at]), ++here) seen[at] = 1;
      if (here == 1 || (length != 0 && here != length)) return false;
      length = here;
    }
    return length != 0 && (fixed_ < 0 || image[static_cast<std::size_t>(fixed_)] == fixed_);
  }

  bool consider(const Image& image) {
    if (!moves_all_alike(image)) return false;
    const Image whole = graph_.extend(image);
    if (whole.empty()) return false;
    StepSymmetry symmetry{image, Image(network_.edges.size())};
    for (std::size_t i = 0; i < network_.edges.size(); ++i)
      symmetry.edge[i] = whole[size_ + i] - network_.devices;
    return found_.insert(std::move(symmetry)).second;
  }

  const StepNetwork& network_;
  std::int32_t fixed_;
  std::size_t size_;
  ArcGraph graph_;  // of devices, edges and limits
  std::vector<double> capacity_;
  std::set<StepSymmetry> found_;
  std::int64_t tries_left_ = 0;
  std::size_t found_here_ = 0;
};

StepSymmetry after(const StepSymmetry& first, const StepSymmetry& second) {
  StepSymmetry both = first;
  for (std::int32_t& device : both.device) device = second.device[static_cast<std::size_t>(device)];
  for (std::int32_t& edge : both.edge) edge = second.edge[static_cast<std::size_t>(edge)];
  return both;
}

// The group that the symmetries generate, sorted. Empty if an element fixes a device that it must
// not.
std::optional<StepGroup> generate(const std::vector<const StepSymmetry*>& generators,
                                  const StepSymmetry& same, std::int32_t fixed) {
  std::set<StepSymmetry> group{same};
  std::vector<StepSymmetry> open{same};
  while (!open.empty()) {
    const StepSymmetry each = std::move(open.back());
    open.pop_back();
    for (const StepSymmetry* generator : generators) {
      StepSymmetry next = after(each, *generator);
      if (group.contains(next)) continue;
      for (std::size_t i = 0; i < next.device.size(); ++i)
        if (next.device[i] == static_cast<std::int32_t>(i) && next.device[i] != fixed) return std::nullopt;
      if (group.size() == next.device.size()) return std::nullopt;  // a larger group cannot act freely
      group.insert(next);
      open.push_back(std::move(next));
    }
  }
  return StepGroup(group.begin(), group.end());
}

}  // namespace

StepSymmetry identity(const StepNetwork& network) {
  StepSymmetry same{Image(static_cast<std::size_t>(network.devices)), Image(network.edges.size())};
  std::iota(same.device.begin(), same.device.end(), 0);
  std::iota(same.edge.begin(), same.edge.end(), 0);
  return same;
}

std::vector<StepGroup> step_groups(const StepNetwork& network, std::int32_t fixed) {
  const StepSymmetry same = identity(network);
  std::vector<StepSymmetry> found = SymmetryFinder(network, fixed).find();
  if (found.size() > kMostGenerators) found.resize(kMostGenerators);
  std::map<std::size_t, std::set<StepGroup>, std::greater<>> groups;
  groups[1].insert({same});
  std::size_t work = 0;
  const auto keep = [&](std::optional<StepGroup> group) {
    work += (group ? group->size() : same.device.size()) * (same.device.size() + same.edge.size());
    if (!group) return;
    auto& of_size = groups[group->size()];
    if (of_size.size() < 4 * kMostGroupsOfASize) of_size.insert(std::move(*group));
  };
  for (std::size_t a = 0; a < found.size(); ++a) {
    keep(generate({&found[a]}, same, fixed));
    for (std::size_t b = 0; b < a && work < kMostSymmetryWork; ++b)
      keep(generate({&found[a], &found[b]}, same, fixed));
  }
  // Two generators may not be enough: (Z2)^3 needs three.
  for (const StepGroup& group : std::set<StepGroup>(groups.begin()->second))
    for (const StepSymmetry& another : found) {
      if (work >= kMostSymmetryWork) break;
      std::vector<const StepSymmetry*> generators{&another};
      for (const StepSymmetry& each : group) generators.push_back(&each);
      keep(generate(generators, same, fixed));
    }
  std::vector<StepGroup> result;
  for (const auto& [size, of_size] : groups) {
    std::size_t taken = 0;
    for (const StepGroup& group : of_size)
      if (++taken <= kMostGroupsOfASize) result.push_back(group);
  }
  return result;
}

}  // namespace weft::synthesis
