#include "weft/app/explain/plot.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "weft/app/explain/svg.h"
#include "weft/app/explain/ticks.h"
#include "weft/base/units.h"

namespace weft::explain {
namespace {

constexpr double kPlotLeft = 72, kPlotTop = 44, kPlotWidth = 640, kPlotHeight = 360;
constexpr double kBottom = kPlotTop + kPlotHeight, kPlotRight = kPlotLeft + kPlotWidth;
constexpr double kWinnersTop = kBottom + 46, kWinnersHeight = 20;
constexpr double kLegendLeft = kPlotRight + 20, kLegendLine = 20;
constexpr std::string_view kGrid = "#e5e7eb", kFrame = "#6b7280", kPlotGrey = "#4b5563";

struct Axis {
  double low = 0, high = 1;  // of the value or its logarithm (base 2 or 10)
};

class Plot {
 public:
  Plot(std::span<const PlotCurve> curves, std::span<const PlotRange> winners, const PlotOptions& options)
      : curves_(curves), winners_(winners), options_(options) {}

  Result<std::string> draw() {
    if (!find_extents())
      return user_error("expected at least one measured or predicted time to plot, found none");
    double longest = 0;
    for (const PlotCurve& curve : curves_) longest = std::max(longest, text_width(curve.name, 12));
    const double width = kLegendLeft + 28 + std::clamp(longest, 60.0, 400.0) + 16;
    const double legend_end = kPlotTop + kLegendLine * static_cast<double>(curves_.size()) + 16;
    const double height =
        std::max(winners_.empty() ? kBottom + 52 : kWinnersTop + kWinnersHeight + 16, legend_end);
    Svg svg(width, height);
    svg.text(kPlotLeft, 24, options_.title, {.size = 15, .bold = true});
    draw_size_axis(svg);
    draw_value_axis(svg);
    svg.rect(kPlotLeft, kPlotTop, kPlotWidth, kPlotHeight, {.stroke = kFrame});
    for (const PlotCurve& curve : curves_) draw_curve(svg, curve);
    draw_legend(svg);
    draw_winners(svg);
    return std::move(svg).finish();
  }

 private:
  bool is_time() const { return options_.measure == PlotMeasure::time; }

  bool usable(const PlotPoint& point) const {
    return point.bytes > 0 && point.seconds > 0 && std::isfinite(point.seconds) &&
           std::isfinite(value(point));
  }

  // Seconds, or bytes per second.
  double value(const PlotPoint& point) const {
    if (is_time()) return point.seconds;
    return static_cast<double>(point.bytes) / point.seconds *
           collective::bus_factor(options_.kind, options_.ranks);
  }

  bool find_extents() {
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    double low = kInfinity, high = -kInfinity;
    x_ = {kInfinity, -kInfinity};
    for (const PlotCurve& curve : curves_) {
      for (const PlotPoint& point : curve.points) {
        if (!usable(point)) continue;
        const double x = std::log2(static_cast<double>(point.bytes));
        x_ = {std::min(x_.low, x), std::max(x_.high, x)};
        low = std::min(low, value(point));
        high = std::max(high, value(point));
      }
    }
    if (low > high) return false;
    if (x_.high - x_.low < 1) x_ = {x_.low - 0.5, x_.high + 0.5};
    if (is_time()) {
      y_ = {std::log10(low) - 0.08, std::log10(high) + 0.08};
      if (y_.high - y_.low < 0.6) y_ = {y_.low - 0.3, y_.high + 0.3};
    } else {
      y_ = {0, high > 0 ? high * 1.06 : 1};
    }
    return true;
  }

  double place_x(double bytes) const {
    return kPlotLeft + (std::log2(bytes) - x_.low) / (x_.high - x_.low) * kPlotWidth;
  }

  double place_y(double value) const {
    const double y = is_time() ? std::log10(value) : value;
    return kBottom - (y - y_.low) / (y_.high - y_.low) * kPlotHeight;
  }

  void draw_size_axis(Svg& svg) const {
    const auto first = static_cast<int>(std::ceil(x_.low - 1e-9)), last = static_cast<int>(x_.high + 1e-9);
    const int step = std::max(1, static_cast<int>(std::ceil((last - first + 1) / 10.0)));
    for (int power = first; power <= last; ++power) {
      const double x = place_x(std::exp2(power));
      if ((power - first) % step != 0) continue;
      svg.line({x, kPlotTop}, {x, kBottom}, {.stroke = kGrid});
      svg.text(x, kBottom + 16, print_bytes(std::exp2(power)),
               {.size = 11, .anchor = Anchor::middle, .fill = kPlotGrey});
    }
    svg.text(kPlotLeft + kPlotWidth / 2, kBottom + 34, "size of the message",
             {.anchor = Anchor::middle, .fill = kPlotGrey});
  }

  void draw_value_axis(Svg& svg) const {
    for (const double tick : is_time() ? time_ticks() : round_ticks(y_.high, 6)) {
      const double y = place_y(tick);
      svg.line({kPlotLeft, y}, {kPlotRight, y}, {.stroke = kGrid});
      svg.text(kPlotLeft - 6, y + 4, is_time() ? print_seconds(tick) : fmt::format("{:g}", tick / 1e9),
               {.size = 11, .anchor = Anchor::end, .fill = kPlotGrey});
    }
    svg.text(16, kPlotTop + kPlotHeight / 2, is_time() ? "time" : "bus bandwidth, GB/s",
             {.anchor = Anchor::middle, .fill = kPlotGrey, .upright = true});
  }

  // 1, 2 and 5 in every decade, or only 1 if there are many decades.
  std::vector<double> time_ticks() const {
    std::vector<double> ticks;
    const bool many = y_.high - y_.low > 3.5;
    for (int decade = static_cast<int>(std::floor(y_.low)); decade <= y_.high; ++decade) {
      for (const double part : {1.0, 2.0, 5.0}) {
        const double tick = part * std::pow(10, decade);
        const bool seen = std::log10(tick) >= y_.low && std::log10(tick) <= y_.high;
        if (seen && (part == 1 || !many)) ticks.push_back(tick);
      }
    }
    return ticks;
  }

  void draw_curve(Svg& svg, const PlotCurve& curve) const {
    std::vector<Position> path;
    for (const PlotPoint& point : curve.points)
      if (usable(point)) path.push_back({place_x(static_cast<double>(point.bytes)), place_y(value(point))});
    if (!curve.measured)
      svg.polyline(path, {.stroke = palette(curve.color),
                          .stroke_width = 2,
                          .dash = palette_dash(curve.color),
                          .title = curve.name});
    if (curve.measured || path.size() == 1)
      for (const Position& dot : path)
        svg.circle(dot, 3, {.fill = "#ffffff", .stroke = palette(curve.color), .stroke_width = 1.5});
  }

  void draw_legend(Svg& svg) const {
    double y = kPlotTop + 8;
    for (const PlotCurve& curve : curves_) {
      if (curve.measured)
        svg.circle({kLegendLeft + 10, y}, 3,
                   {.fill = "#ffffff", .stroke = palette(curve.color), .stroke_width = 1.5});
      else
        svg.line({kLegendLeft, y}, {kLegendLeft + 20, y},
                 {.stroke = palette(curve.color), .stroke_width = 2.5, .dash = palette_dash(curve.color)});
      svg.text(kLegendLeft + 28, y + 4, curve.name);
      y += kLegendLine;
    }
  }

  void draw_winners(Svg& svg) const {
    if (winners_.empty()) return;
    svg.text(kPlotLeft - 6, kWinnersTop + 14, "fastest",
             {.size = 11, .anchor = Anchor::end, .fill = kPlotGrey});
    for (const PlotRange& range : winners_) {
      const auto at = [&](std::int64_t bytes) {
        return std::clamp(place_x(static_cast<double>(std::max<std::int64_t>(bytes, 1))), kPlotLeft,
                          kPlotRight);
      };
      const double left = at(range.min_bytes), right = at(range.max_bytes);
      const std::string title =
          fmt::format("{}: {} to {}", range.name, print_bytes(static_cast<double>(range.min_bytes)),
                      print_bytes(static_cast<double>(range.max_bytes)));
      svg.rect(left, kWinnersTop, std::max(right - left, 1.0), kWinnersHeight,
               {.fill = palette(range.color), .stroke = "#ffffff", .title = title});
      if (text_width(range.name, 11) + 6 < right - left)
        svg.text((left + right) / 2, kWinnersTop + 14, range.name,
                 {.size = 11, .anchor = Anchor::middle, .fill = "#ffffff", .bold = true});
    }
  }

  std::span<const PlotCurve> curves_;
  std::span<const PlotRange> winners_;
  const PlotOptions& options_;
  Axis x_, y_;
};

}  // namespace

Result<std::string> plot(std::span<const PlotCurve> curves, std::span<const PlotRange> winners,
                         const PlotOptions& options) {
  return Plot(curves, winners, options).draw();
}

}  // namespace weft::explain
