#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>

#include <fmt/format.h>

#include "weft/runtime/measure/fit_rates.h"

namespace weft::measure {
namespace {

using cluster::RateKind;

constexpr double kCollectiveFixed = 6e-6;
constexpr double kLeastLog = 9, kMostLog = 30;  // 512 bytes to 1 GiB
// Sizes in tables, denser where NCCL changes protocols.
constexpr double kByteKnots[] = {9, 11, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 29};
constexpr double kGpuCounts[] = {2, 4, 8};

// Devices of one generation share NCCL's tuning, and their links differ little.
std::string generation_of(const std::string& device, bool is_switched) {
  constexpr std::pair<std::string_view, std::string_view> kGenerations[] = {
      {"h100", "hopper"},    {"h200", "hopper"},     {"b200", "blackwell"},
      {"b300", "blackwell"}, {"gb200", "blackwell"}, {"gb300", "blackwell"}};
  if (!is_switched) return "pcie";
  for (const auto& [name, generation] : kGenerations)
    if (device == name) return std::string(generation);
  return device;
}

constexpr std::string_view kOwn = "device cr";  // the effect of one group alone

struct CollectiveGroup {
  std::string device, collective;
  double gpus = 0;

  auto operator<=>(const CollectiveGroup&) const = default;
};

struct CollectiveWire {
  double bytes_per_second = 0;
  std::string kind, generation;
};

struct Effect {
  std::string name;
  double ridge;
};

// What a group has in common with others, from the general to its own. The ridge says how much data
// an effect needs: found by leaving out one group of NVIDIA's tables after the other, which gave a
// median error of 7 %.
std::vector<Effect> effects_of(const CollectiveGroup& group, const CollectiveWire& wire) {
  const std::string& c = group.collective;
  const std::string r = fmt::format("{}", group.gpus);
  const std::string ring = c == "all_gather" || c == "reduce_scatter" ? "ring" : c;
  const auto at = [](auto&&... parts) {
    std::string name;
    ((name += parts, name += ' '), ...);
    return name;
  };
  return {{"all", 0.01},
          {at("c", c), 0.1},
          {at("r", r), 0.1},
          {at("cr", c, r), 0.3},
          {at("ring", ring, r), 0.3},
          {at("wire", wire.kind), 0.1},
          {at("wire c", wire.kind, c), 0.3},
          {at("wire r", wire.kind, r), 0.3},
          {at("wire cr", wire.kind, c, r), 0.3},
          {at("wire ring", wire.kind, ring, r), 0.3},
          {at("generation", wire.generation), 0.3},
          {at("generation c", wire.generation, c), 0.3},
          {at("generation r", wire.generation, r), 0.3},
          {at("generation ring", wire.generation, ring, r), 0.3},
          {at("generation cr", wire.generation, c, r), 0.3},
          {at("device", group.device), 0.3},
          {at("device c", group.device, c), 1},
          {at("device r", group.device, r), 1},
          {at("device ring", group.device, ring, r), 1},
          {at(kOwn, group.device, c, r), 3}};
}

// The corrections of one size: effects by name.
using Effects = std::map<std::string, double, std::less<>>;

double sum_of(const Effects& effects, const std::vector<Effect>& of) {
  double sum = 0;
  for (const Effect& effect : of)
    if (const auto found = effects.find(effect.name); found != effects.end()) sum += found->second;
  return sum;
}

// Ridge regression by coordinate descent.
Effects fit_effects(const std::vector<std::pair<std::vector<Effect>, double>>& wanted) {
  struct Of {
    double ridge, value = 0;
    std::vector<std::size_t> rows;
  };
  std::map<std::string, Of, std::less<>> effects;
  std::vector<double> left;
  for (std::size_t r = 0; r < wanted.size(); ++r) {
    left.push_back(wanted[r].second);
    for (const Effect& effect : wanted[r].first)
      effects.try_emplace(effect.name, Of{effect.ridge, 0, {}}).first->second.rows.push_back(r);
  }
  constexpr int kPasses = 400;
  for (int pass = 0; pass < kPasses; ++pass)
    for (auto& [name, of] : effects) {
      double sum = 0;
      for (const std::size_t r : of.rows) sum += left[r] + of.value;
      const double value = sum / (static_cast<double>(of.rows.size()) + of.ridge);
      for (const std::size_t r : of.rows) left[r] -= value - of.value;
      of.value = value;
    }
  Effects values;
  for (const auto& [name, of] : effects) {
    // A ridge keeps what others share apart from what is a group's own. What was measured is then met.
    double own = 0;
    if (name.starts_with(kOwn)) {
      for (const std::size_t r : of.rows) own += left[r];
      own /= static_cast<double>(of.rows.size());
    }
    values.emplace(name, of.value + own);
  }
  return values;
}

double median_of(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

}  // namespace

std::vector<std::pair<std::string, std::vector<cluster::RateTable>>> fit_collectives(
    const std::vector<const RateRow*>& rows) {
  const auto sent = [](const CollectiveGroup& group, double bytes) {
    return rate_point(RateKind::collective, group.collective, std::array{group.gpus, bytes}, 0).bytes;
  };
  std::map<CollectiveGroup, std::map<int, std::vector<double>>> groups;  // seconds by log2 of the bytes
  std::map<std::string, CollectiveWire> wires;
  std::map<std::string, double> reduced;  // rates of all-reduces, for devices that have no others
  std::map<std::string, std::set<std::string>> collectives;
  std::map<std::pair<std::string, std::string>, std::int64_t> counts;
  for (const RateRow* row : rows) {
    const CollectiveGroup group{row->device, row->variant, row->sizes[0]};
    const double log = std::log2(row->sizes[1]);
    if (group.gpus < 2 || log < kLeastLog - 0.5 || log > kMostLog + 0.5) continue;
    CollectiveWire& wire = wires[row->device];
    // An all-reduce within the switch (NVLink SHARP) sends fewer bytes than are counted.
    double& rate = row->variant == "all_reduce" ? reduced[row->device] : wire.bytes_per_second;
    rate = std::max(rate, sent(group, row->sizes[1]) / row->seconds);
    collectives[row->device].insert(row->variant);
    ++counts[{row->device, row->variant}];
    // A size between powers of two counts for the nearest, as if that had been asked for at its rate.
    groups[group][static_cast<int>(std::lround(log))].push_back(row->seconds *
                                                                std::exp2(std::round(log) - log));
  }
  constexpr double kSwitched = 1e11;  // bytes per second that no PCIe link reaches
  std::set<std::string> all;
  for (auto& [device, wire] : wires) {
    if (!(wire.bytes_per_second > 0)) wire.bytes_per_second = reduced[device];
    const bool is_switched = wire.bytes_per_second > kSwitched;
    wire.kind = is_switched ? "nvlink" : "pcie";
    wire.generation = generation_of(device, is_switched);
    // Tables of one device alone tell nothing of a collective that they lack.
    if (wires.size() > 1) all.insert(collectives[device].begin(), collectives[device].end());
  }
  const auto base = [&](const CollectiveGroup& group, double bytes) {
    return kCollectiveFixed + sent(group, bytes) / wires[group.device].bytes_per_second;
  };
  std::map<int, Effects> by_size;
  for (int size = static_cast<int>(kLeastLog); size <= static_cast<int>(kMostLog); ++size) {
    std::vector<std::pair<std::vector<Effect>, double>> wanted;
    for (const auto& [group, sizes] : groups)
      if (const auto found = sizes.find(size); found != sizes.end())
        wanted.emplace_back(effects_of(group, wires[group.device]),
                            std::log(median_of(found->second) / base(group, std::exp2(size))));
    if (!wanted.empty()) by_size.emplace(size, fit_effects(wanted));
  }
  std::vector<std::pair<std::string, std::vector<cluster::RateTable>>> made;
  for (const auto& [device, wire] : wires) {
    std::vector<cluster::RateTable> tables;
    for (const std::string& collective : wires.size() > 1 ? all : collectives[device]) {
      cluster::RateTable table;
      table.kind = RateKind::collective;
      table.variant = collective;
      table.rows = counts[{device, collective}];
      table.fixed_seconds = kCollectiveFixed;
      table.bytes_per_second = wire.bytes_per_second;
      cluster::RateGrid grid{std::nullopt, {{0, {}}, {1, {}}}, {}};
      for (const double gpus : kGpuCounts) grid.axes[0].knots.push_back(std::log2(gpus));
      for (const double log : kByteKnots)
        if (by_size.contains(static_cast<int>(log))) grid.axes[1].knots.push_back(log);
      if (grid.axes[1].knots.empty()) continue;
      for (const double gpus : kGpuCounts)
        for (const double log : grid.axes[1].knots)
          grid.values.push_back(
              sum_of(by_size[static_cast<int>(log)], effects_of({device, collective, gpus}, wire)));
      table.grids.push_back(std::move(grid));
      tables.push_back(std::move(table));
    }
    made.emplace_back(device, std::move(tables));
  }
  return made;
}

}  // namespace weft::measure
