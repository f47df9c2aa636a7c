#include "weft/collectives/synthesis/pack_rings.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "weft/collectives/synthesis/coarser_rate.h"
#include "weft/collectives/synthesis/logical_links.h"

namespace weft::synthesis {
namespace {

constexpr Amount kMostUnits = 64;                // per root: more would hardly make rings faster
constexpr std::int64_t kMostRingTries = 20'000;  // extensions tried per ring

// Finds a ring through all devices within the remaining capacity, by backtracking.
class RingFinder {
 public:
  // `turn`: selects the order of candidates, and breaks ties.
  RingFinder(std::int32_t devices, std::int32_t turn, std::vector<Amount>& room, const Deadline& deadline)
      : devices_(devices), turn_(turn), room_(room), deadline_(deadline), used_(index_of(devices), 0) {}

  // Returns a ring and takes one unit of capacity along it.
  std::vector<std::int32_t> find() {
    ring_ = {0};
    std::ranges::fill(used_, 0);
    used_[0] = 1;
    tries_ = 0;
    if (!extend()) return {};
    for (std::size_t i = 0; i < ring_.size(); ++i) --room(ring_[i], ring_[(i + 1) % ring_.size()]);
    return ring_;
  }

 private:
  static std::size_t index_of(std::int32_t device) { return static_cast<std::size_t>(device); }
  Amount& room(std::int32_t from, std::int32_t to) {
    return room_[index_of(from) * index_of(devices_) + index_of(to)];
  }

  // Continuations from an unvisited device: devices with few must be visited early.
  std::int32_t ways_on(std::int32_t device) {
    std::int32_t count = 0;
    for (std::int32_t to = 0; to < devices_; ++to)
      count += static_cast<std::int32_t>(to != device && room(device, to) > 0 && !used_[index_of(to)]);
    return count;
  }

  bool extend() {
    const std::int32_t last = ring_.back();
    if (ring_.size() == used_.size()) return room(last, 0) > 0;
    struct Next {
      Amount room;
      std::int32_t ways, device;
    };
    std::vector<Next> nexts;
    for (std::int32_t to = 0; to < devices_; ++to)
      if (!used_[index_of(to)] && room(last, to) > 0) nexts.push_back({room(last, to), ways_on(to), to});
    // Fewest continuations first, or most capacity first: each finds rings on topologies where the
    // other fails.
    const auto key = [&](const Next& next) {
      const Amount first = turn_ % 2 == 0 ? next.ways : -next.room,
                   second = turn_ % 2 == 0 ? -next.room : next.ways;
      return std::tuple(first, second, (next.device + turn_ / 2 * next.device) % devices_, next.device);
    };
    std::ranges::sort(nexts, {}, key);
    for (const Next& next : nexts) {
      if (++tries_ > kMostRingTries || deadline_.over()) return false;
      used_[index_of(next.device)] = 1;
      ring_.push_back(next.device);
      if (extend()) return true;
      ring_.pop_back();
      used_[index_of(next.device)] = 0;
    }
    return false;
  }

  const std::int32_t devices_, turn_;
  std::vector<Amount>& room_;
  const Deadline& deadline_;
  std::vector<char> used_;
  std::vector<std::int32_t> ring_;
  std::int64_t tries_ = 0;
};

// Candidate ring widths: the link capacities and their greatest common divisor.
std::set<Amount> widths_of(const std::vector<Amount>& room) {
  constexpr std::size_t kMostWidths = 16;
  std::set<Amount> widths;
  Amount common = 0;
  for (const Amount each : room) common = std::gcd(common, each);
  for (const Amount each : room)
    if (each > 0 && widths.size() < kMostWidths) widths.insert(each);
  widths.insert(std::max<Amount>(common, 1));
  return widths;
}

}  // namespace

Result<Rings> pack_rings(const cluster::Topology& topology, std::size_t most, const Deadline& deadline) {
  WEFT_TRY(wires, wires_of(topology));
  std::vector<std::int32_t> roots(static_cast<std::size_t>(wires.gpus));
  std::iota(roots.begin(), roots.end(), 0);
  const Optimum optimum = find_optimum(wires, roots, deadline);
  const CoarserRate coarse = coarser_rate(wires, roots, optimum.rate, kMostUnits, deadline);
  const LogicalLinks links = remove_switches(coarse.wires, roots, coarse.rate, deadline);
  const auto devices = static_cast<std::size_t>(wires.gpus);
  std::vector<Amount> room(devices * devices, 0);
  for (const LogicalLink& link : links.links)
    room[static_cast<std::size_t>(link.from) * devices + static_cast<std::size_t>(link.to)] += link.capacity;

  // A unit is the capacity of one tree of a root; rings may be wider. Keep the width with the
  // highest total rate.
  const double unit = coarse.wires.unit / static_cast<double>(links.scale);
  Rings best;
  constexpr std::int32_t kTurns = 24;
  std::vector<std::pair<Amount, std::int32_t>> ways;
  for (const Amount width : widths_of(room))
    for (std::int32_t turn = 0; turn < kTurns; ++turn) ways.emplace_back(width, turn);
  for (const auto& [width, turn] : ways) {
    if (deadline.over() && !best.rings.empty()) break;
    std::vector<Amount> left(room.size());
    for (std::size_t i = 0; i < room.size(); ++i) left[i] = room[i] / width;
    RingFinder finder(wires.gpus, turn, left, deadline);
    Rings found;
    found.ring_rate = unit * static_cast<double>(width);
    while (found.rings.size() < most && !deadline.over()) {
      std::vector<std::int32_t> ring = finder.find();
      if (ring.empty()) break;
      found.rings.push_back(std::move(ring));
    }
    found.rate = found.ring_rate * static_cast<double>(found.rings.size()) * static_cast<double>(devices) /
                 static_cast<double>(devices - 1);
    if (found.rate > best.rate) best = std::move(found);
  }
  if (best.rings.empty())
    return user_error(deadline.over() ? "time ran out before a ring was found"
                                      : "no ring was found that visits every device once",
                      "NCCL's graphs are rings; .xml, .json and .program hold trees");
  return best;
}

}  // namespace weft::synthesis
