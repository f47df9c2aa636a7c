#include "weft/app/explain/tree_plot.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "weft/app/explain/svg.h"

namespace weft::explain {
namespace {

constexpr double kCell = 34, kRow = 46, kRadius = 12, kMargin = 24;
constexpr std::size_t kPanelsInARow = 4;

// A tree with the position of each device: its depth, and its column counted in leaves.
struct PlacedTree {
  std::map<std::int32_t, std::vector<std::int32_t>> children;
  std::map<std::int32_t, Position> places;
  double width = 0;
  std::int32_t depth = 0;
};

double lay_out(PlacedTree& tree, std::int32_t device, std::int32_t depth) {
  tree.depth = std::max(tree.depth, depth);
  const std::vector<std::int32_t>& children = tree.children[device];
  double sum = 0;
  for (const std::int32_t child : children) sum += lay_out(tree, child, depth + 1);
  const double x = children.empty() ? tree.width++ : sum / static_cast<double>(children.size());
  tree.places[device] = {x, static_cast<double>(depth)};
  return x;
}

PlacedTree laid_out(const synthesis::Tree& tree) {
  PlacedTree made;
  for (const synthesis::TreeEdge& edge : tree.edges) made.children[edge.from].push_back(edge.to);
  lay_out(made, tree.root, 0);
  return made;
}

// The trees of the first root, most frequent first.
std::vector<synthesis::Tree> shown_trees(const std::vector<synthesis::Tree>& trees, const TreePlot& plot,
                                         std::size_t& left_out) {
  std::vector<synthesis::Tree> shown;
  for (const synthesis::Tree& tree : trees)
    if (tree.root == trees.front().root) shown.push_back(tree);
  std::ranges::stable_sort(shown, std::greater<>(), &synthesis::Tree::times);
  const std::size_t most = static_cast<std::size_t>(std::max(1, plot.most_trees));
  left_out = shown.size() > most ? shown.size() - most : 0;
  shown.resize(shown.size() - left_out);
  return shown;
}

void draw_tree(Svg& svg, const synthesis::Tree& tree, const PlacedTree& places, double left, double top) {
  const auto at = [&](std::int32_t device) {
    const Position place = places.places.at(device);
    return Position{left + (place.x + 0.5) * kCell, top + 30 + place.y * kRow};
  };
  svg.text(left, top,
           fmt::format("root {}{}", tree.root, tree.times > 1 ? fmt::format(", {} times", tree.times) : ""),
           {.size = 11});
  for (const synthesis::TreeEdge& edge : tree.edges) {
    const Position from = at(edge.from), to = at(edge.to);
    const double length = std::hypot(to.x - from.x, to.y - from.y);
    const double part = (length - kRadius) / length;
    svg.line(from, {from.x + (to.x - from.x) * part, from.y + (to.y - from.y) * part},
             {.stroke = "#64748b",
              .stroke_width = std::min(4.0, 1 + std::log2(static_cast<double>(tree.times)) / 2),
              .arrow = true});
  }
  for (const auto& [device, place] : places.places) {
    svg.circle(at(device), kRadius,
               {.fill = device == tree.root ? "#fde68a" : "#dbeafe", .stroke = "#1e40af"});
    svg.text(at(device).x, at(device).y + 4, fmt::to_string(device), {.size = 10, .anchor = Anchor::middle});
  }
}

}  // namespace

std::string draw_trees(const std::vector<synthesis::Tree>& trees, const TreePlot& plot) {
  if (trees.empty()) return Svg(200, 60).finish();
  std::size_t left_out = 0;
  const std::vector<synthesis::Tree> shown = shown_trees(trees, plot, left_out);
  std::vector<PlacedTree> places;
  double cell_width = 120, cell_height = 0;
  for (const synthesis::Tree& tree : shown) {
    places.push_back(laid_out(tree));
    cell_width = std::max(cell_width, places.back().width * kCell);
    cell_height = std::max(cell_height, 60 + places.back().depth * kRow);
  }
  const std::size_t columns = std::min(kPanelsInARow, shown.size());
  const std::size_t rows = (shown.size() + columns - 1) / columns;
  Svg svg(2 * kMargin + static_cast<double>(columns) * (cell_width + kMargin),
          3 * kMargin + static_cast<double>(rows) * (cell_height + kMargin));
  svg.text(kMargin, kMargin, plot.title, {.size = 14, .bold = true});
  for (std::size_t i = 0; i < shown.size(); ++i)
    draw_tree(svg, shown[i], places[i], kMargin + static_cast<double>(i % columns) * (cell_width + kMargin),
              2.5 * kMargin + static_cast<double>(i / columns) * (cell_height + kMargin));
  if (left_out > 0)
    svg.text(kMargin, 2.5 * kMargin + static_cast<double>(rows) * (cell_height + kMargin),
             fmt::format("and {} more trees of this root", left_out), {.size = 11});
  return std::move(svg).finish();
}

std::string print_trees(const std::vector<synthesis::Tree>& trees, const TreePlot& plot) {
  if (trees.empty()) return "";
  std::size_t left_out = 0;
  std::string text;
  for (const synthesis::Tree& tree : shown_trees(trees, plot, left_out)) {
    text +=
        fmt::format("root {}{}\n", tree.root, tree.times > 1 ? fmt::format(", {} times", tree.times) : "");
    std::map<std::int32_t, std::int32_t> before;
    for (const synthesis::TreeEdge& edge : tree.edges) before[edge.to] = edge.from;
    for (const synthesis::TreeEdge& edge : tree.edges) {
      const bool is_leaf = std::ranges::none_of(
          tree.edges, [&](const synthesis::TreeEdge& other) { return other.from == edge.to; });
      if (!is_leaf) continue;
      std::vector<std::int32_t> way{edge.to};
      while (way.back() != tree.root) way.push_back(before.at(way.back()));
      std::ranges::reverse(way);
      text += fmt::format("  {}\n", fmt::join(way, " -> "));
    }
  }
  if (left_out > 0) text += fmt::format("and {} more trees of this root\n", left_out);
  return text;
}

}  // namespace weft::explain
