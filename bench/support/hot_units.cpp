#include "support/hot_units.h"

#include <algorithm>
#include <map>
#include <utility>

#include <fmt/format.h>

namespace weft::bench {
namespace {

std::string name_of(const program::Program& program, const program::Unit& unit) {
  std::string name = program::describe(program, unit);
  if (const auto* product = std::get_if<program::MatrixProduct>(&unit.kernel)) {
    name += fmt::format(" {}{} x {}{} x {}", product->m, product->a.transposed ? "'" : "", product->n,
                        product->b.transposed ? "'" : "", product->k);
    if (product->calls() > 1) name += fmt::format(", {} times", product->calls());
  } else if (const auto* loop = std::get_if<program::RowLoop>(&unit.kernel)) {
    name += fmt::format(" {} x {}", loop->rows(), loop->length);
  }
  return name;
}

// Bytes in memory: repeated elements are stored once.
double bytes_of(const program::Place& place) {
  std::int64_t elements = 1;
  for (const program::Axis& axis : place.axes)
    if (axis.stride != 0) elements *= axis.size;
  return static_cast<double>(elements * plan::size_in_bytes(place.dtype));
}

double bytes_of(const program::Unit& unit) {
  double bytes = 0;
  for (const program::Place& place : unit.reads) bytes += bytes_of(place);
  for (const program::Place& place : unit.writes) bytes += bytes_of(place);
  return bytes;
}

double flops_of(const program::Program& program, const program::Unit& unit) {
  double flops = 0;
  for (const plan::NodeId id : unit.nodes) {
    const plan::NodeView node = program.graph->view(id);
    flops += node.op().work(node).flops;
  }
  return flops;
}

std::string shortened(const std::string& name, std::size_t most) {
  if (name.size() <= most) return name;
  // Cuts out the middle: operators are at the beginning, sizes at the end.
  const std::size_t end = most / 3, begin = most - end - 2;
  return name.substr(0, begin) + ".." + name.substr(name.size() - end);
}

void print_row(const HotUnit& unit, const Roof& roof, double all) {
  constexpr std::size_t kName = 58;
  fmt::print("{:58} {:5} {:10.3f} {:6.1f}% {:9.1f} {:8.1f} {:10.3f} {:6.0f}%\n", shortened(unit.name, kName),
             unit.count, unit.seconds * 1e3, 100 * unit.seconds / all, unit.flops / unit.seconds / 1e9,
             unit.bytes / unit.seconds / 1e9, roof.seconds(unit) * 1e3,
             100 * roof.seconds(unit) / unit.seconds);
}

}  // namespace

double Roof::seconds(const HotUnit& unit) const {
  return std::max(unit.flops / flops_per_second, unit.bytes / bytes_per_second);
}

std::vector<HotUnit> hot_units(TrainingRank& rank, int steps) {
  const program::Program& program = rank.rank().program();
  std::vector<std::vector<double>> times(program.units.size(), std::vector<double>(steps));
  program::Timeline timeline;
  for (int step = 0; step < steps; ++step) {
    rank.step(timeline);
    for (std::size_t t = 0; t < program.tasks.size(); ++t)
      times[program.tasks[t].unit][step] += timeline.tasks[t].end - timeline.tasks[t].begin;
  }
  std::map<std::string, HotUnit> by_name;
  for (std::size_t u = 0; u < program.units.size(); ++u) {
    const program::Unit& unit = program.units[u];
    HotUnit& hot = by_name[name_of(program, unit)];
    ++hot.count;
    hot.seconds += std::ranges::min(times[u]);
    hot.flops += flops_of(program, unit);
    hot.bytes += bytes_of(unit);
  }
  std::vector<HotUnit> units;
  for (auto& [name, unit] : by_name) {
    unit.name = name;
    units.push_back(std::move(unit));
  }
  std::ranges::sort(units, std::ranges::greater(), &HotUnit::seconds);
  return units;
}

void print_hot_units(const std::vector<HotUnit>& units, const Roof& roof, std::size_t most) {
  HotUnit rest{.name = "the rest"}, all{.name = "all"};
  double rest_roof = 0, all_roof = 0;
  const auto add = [&](HotUnit& sum, const HotUnit& unit) {
    sum.count += unit.count;
    sum.seconds += unit.seconds;
    sum.flops += unit.flops;
    sum.bytes += unit.bytes;
  };
  for (std::size_t i = 0; i < units.size(); ++i) {
    add(all, units[i]);
    all_roof += roof.seconds(units[i]);
    if (i < most) continue;
    add(rest, units[i]);
    rest_roof += roof.seconds(units[i]);
  }
  fmt::print("{:58} {:>5} {:>10} {:>7} {:>9} {:>8} {:>10} {:>7}\n", "unit", "units", "ms", "share", "GFLOP/s",
             "GB/s", "roof ms", "of roof");
  for (std::size_t i = 0; i < std::min(most, units.size()); ++i) print_row(units[i], roof, all.seconds);
  const auto print_sum = [&](const HotUnit& sum, double roof_seconds) {
    fmt::print("{:58} {:5} {:10.3f} {:6.1f}% {:9} {:8} {:10.3f} {:6.0f}%\n", sum.name, sum.count,
               sum.seconds * 1e3, 100 * sum.seconds / all.seconds, "", "", roof_seconds * 1e3,
               100 * roof_seconds / sum.seconds);
  };
  if (rest.count > 0) print_sum(rest, rest_roof);
  print_sum(all, all_roof);
}

}  // namespace weft::bench
