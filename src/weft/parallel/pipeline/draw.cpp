#include "weft/parallel/pipeline/draw.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace weft::pipeline {
namespace {

// One colour per kind; later chunks are darker.
std::string colour_of(const Pass& pass) {
  static constexpr int kColours[][3] = {{120, 170, 230}, {150, 200, 120}, {240, 190, 100}, {130, 190, 130}};
  const auto& base = kColours[static_cast<std::size_t>(pass.kind)];
  const double dark = std::max(0.5, 1 - 0.2 * pass.chunk);
  return fmt::format("rgb({},{},{})", static_cast<int>(base[0] * dark), static_cast<int>(base[1] * dark),
                     static_cast<int>(base[2] * dark));
}

// In an overlapping pair, F is drawn in the first half of their time and B in the second.
Slot drawn(const Schedule& schedule, const Price& price, std::size_t stage, std::size_t index) {
  const auto& slots = price.slots[stage];
  Slot slot = slots[index];
  const auto is_beside = [&](std::size_t first) {
    return slots[first].begin == slots[first + 1].begin && schedule.is_pair(schedule.orders[stage], first);
  };
  const double middle = (slot.begin + slot.end) / 2;
  if (index + 1 < slots.size() && is_beside(index)) slot.end = middle;
  if (index > 0 && is_beside(index - 1)) slot.begin = middle;
  return slot;
}

}  // namespace

std::string draw_text(const Schedule& schedule, const Price& price, std::size_t width) {
  const std::size_t columns = std::max<std::size_t>(width, 30) - 10;
  const double unit = price.end > 0 ? price.end / static_cast<double>(columns) : 1;
  std::string text;
  for (std::size_t stage = 0; stage < schedule.orders.size(); ++stage) {
    std::string row(columns, '.');
    for (std::size_t index = 0; index < schedule.orders[stage].size(); ++index) {
      const Slot slot = drawn(schedule, price, stage, index);
      // A column shows what runs at its middle.
      const auto from = static_cast<std::size_t>(std::max(0.0, std::ceil(slot.begin / unit - 0.5)));
      const auto to = static_cast<std::size_t>(std::max(0.0, std::ceil(slot.end / unit - 0.5)));
      const std::string label = print(schedule.orders[stage][index], false);
      for (std::size_t column = from; column < std::min(to, columns); ++column)
        row[column] = column - from < label.size() ? label[column - from] : '-';
    }
    text += fmt::format("stage {:<3} {}\n", stage, row);
  }
  return text;
}

std::string draw_svg(const Schedule& schedule, const Price& price) {
  constexpr double kWidth = 1200, kRow = 28, kLeft = 70;
  const double scale = price.end > 0 ? kWidth / price.end : 1;
  std::string svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{:.0f}\" height=\"{:.0f}\" "
      "font-family=\"sans-serif\" "
      "font-size=\"11\">\n",
      kLeft + kWidth + 10, kRow * static_cast<double>(schedule.orders.size()) + 10);
  for (std::size_t stage = 0; stage < schedule.orders.size(); ++stage) {
    const double top = 5 + kRow * static_cast<double>(stage);
    svg += fmt::format("<text x=\"5\" y=\"{:.1f}\">stage {}</text>\n", top + 17, stage);
    for (std::size_t index = 0; index < schedule.orders[stage].size(); ++index) {
      const Slot slot = drawn(schedule, price, stage, index);
      const std::string label = print(schedule.orders[stage][index], schedule.chunks > 1);
      const double left = kLeft + slot.begin * scale, wide = (slot.end - slot.begin) * scale;
      svg += fmt::format(
          "<rect x=\"{:.2f}\" y=\"{:.1f}\" width=\"{:.2f}\" height=\"{:.0f}\" fill=\"{}\" stroke=\"white\" "
          "stroke-width=\"0.5\"><title>{}</title></rect>\n",
          left, top, wide, kRow - 4, colour_of(schedule.orders[stage][index]), label);
      if (wide > 6.5 * static_cast<double>(label.size()))
        svg += fmt::format("<text x=\"{:.2f}\" y=\"{:.1f}\" text-anchor=\"middle\">{}</text>\n",
                           left + wide / 2, top + 16, label);
    }
  }
  return svg + "</svg>\n";
}

}  // namespace weft::pipeline
