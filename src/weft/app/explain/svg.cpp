#include "weft/app/explain/svg.h"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

#include "weft/base/utf8.h"

namespace weft::explain {
namespace {

constexpr std::array<std::string_view, 8> kPalette = {"#0072b2", "#d55e00", "#009e73", "#cc79a7",
                                                      "#56b4e9", "#e69f00", "#7b5ea7", "#4d4d4d"};
constexpr std::string_view kReplacement = "\xef\xbf\xbd";

// The byte length of the first character; 0 if XML does not allow it.
std::size_t character_length(std::string_view text) {
  if (text.starts_with("\xef\xbf\xbe") || text.starts_with("\xef\xbf\xbf")) return 0;  // U+FFFE, U+FFFF
  const char c = text[0];
  const bool control = static_cast<unsigned char>(c) < 0x20 && c != '\n' && c != '\t';
  return control ? 0 : utf8_length(text);
}

std::string escaped(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const std::size_t length = character_length(text);
    const char c = text[0];
    if (length == 0) {
      out += kReplacement;
    } else if (c == '&') {
      out += "&amp;";
    } else if (c == '<') {
      out += "&lt;";
    } else if (c == '>') {
      out += "&gt;";
    } else if (c == '"') {
      out += "&quot;";
    } else {
      out += text.substr(0, length);
    }
    text.remove_prefix(length == 0 ? 1 : length);
  }
  return out;
}

// At most two decimals: a hundredth of a pixel is precise enough.
std::string number(double value) {
  if (!std::isfinite(value)) return "0";
  std::string text = fmt::format("{:.2f}", value);
  while (text.back() == '0') text.pop_back();
  if (text.back() == '.') text.pop_back();
  return text == "-0" ? "0" : text;
}

}  // namespace

std::string_view palette(std::size_t index) { return kPalette[index % kPalette.size()]; }

std::string_view palette_dash(std::size_t index) {
  constexpr std::array<std::string_view, 3> kDashes = {"", "7 3", "2 3"};
  return kDashes[index / kPalette.size() % kDashes.size()];
}

double text_width(std::string_view text, double size) {
  double width = 0;
  for (const char c : text) {
    if (!starts_character(c)) continue;
    width += std::string_view("ijl.,:;'|![]()/ ftr").find(c) != std::string_view::npos ? 0.34
             : (c >= 'A' && c <= 'Z') || c == 'm' || c == 'w'                          ? 0.72
                                                                                       : 0.58;
  }
  return width * size;
}

Svg::Svg(double width, double height, std::string_view background) {
  out_ = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} {1}\" "
      "font-family=\"Helvetica, Arial, DejaVu Sans, sans-serif\">\n",
      number(width), number(height));
  rect(0, 0, width, height, {.fill = background});
}

void Svg::paint(const Shape& shape) {
  out_ += fmt::format(" fill=\"{}\"", escaped(shape.fill));
  // Avoids `opacity`: viewers allocate a separate layer for each such shape, which is very slow.
  if (shape.opacity != 1 && shape.fill != "none")
    out_ += fmt::format(" fill-opacity=\"{}\"", number(shape.opacity));
  if (shape.stroke == "none") return;
  out_ += fmt::format(" stroke=\"{}\"", escaped(shape.stroke));
  if (shape.opacity != 1) out_ += fmt::format(" stroke-opacity=\"{}\"", number(shape.opacity));
  if (shape.stroke_width != 1) out_ += fmt::format(" stroke-width=\"{}\"", number(shape.stroke_width));
  if (!shape.dash.empty()) out_ += fmt::format(" stroke-dasharray=\"{}\"", escaped(shape.dash));
}

void Svg::close(std::string_view element, std::string_view title) {
  if (title.empty()) {
    out_ += "/>\n";
  } else {
    out_ += fmt::format("><title>{}</title></{}>\n", escaped(title), element);
  }
}

void Svg::rect(double x, double y, double width, double height, const Shape& shape) {
  out_ += fmt::format("<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"", number(x), number(y),
                      number(std::max(width, 0.0)), number(std::max(height, 0.0)));
  if (shape.radius > 0) out_ += fmt::format(" rx=\"{}\"", number(shape.radius));
  paint(shape);
  close("rect", shape.title);
}

void Svg::line(Position from, Position to, const Shape& shape) {
  const Position ends[] = {from, to};
  polyline(ends, shape);
}

void Svg::polyline(std::span<const Position> points, const Shape& shape) {
  if (points.empty()) return;
  out_ += "<polyline points=\"";
  for (std::size_t i = 0; i < points.size(); ++i)
    out_ += fmt::format("{}{},{}", i == 0 ? "" : " ", number(points[i].x), number(points[i].y));
  out_ += "\"";
  paint(shape);
  close("polyline", shape.title);
  if (shape.arrow && points.size() > 1) arrow_head(points[points.size() - 2], points.back(), shape);
}

// Markers would be simpler, but some viewers do not colour them like their line.
void Svg::arrow_head(Position from, Position to, const Shape& shape) {
  const double length = std::hypot(to.x - from.x, to.y - from.y);
  if (!(length > 0)) return;
  const double reach = 4 + 1.5 * shape.stroke_width;
  const double x = (to.x - from.x) / length * reach, y = (to.y - from.y) / length * reach;
  out_ += fmt::format("<polygon points=\"{},{} {},{} {},{}\"", number(to.x), number(to.y),
                      number(to.x - x - 0.45 * y), number(to.y - y + 0.45 * x), number(to.x - x + 0.45 * y),
                      number(to.y - y - 0.45 * x));
  paint({.fill = shape.stroke, .opacity = shape.opacity});
  close("polygon", "");
}

void Svg::circle(Position center, double radius, const Shape& shape) {
  out_ +=
      fmt::format("<circle cx=\"{}\" cy=\"{}\" r=\"{}\"", number(center.x), number(center.y), number(radius));
  paint(shape);
  close("circle", shape.title);
}

void Svg::text(double x, double y, std::string_view text, const Lettering& lettering) {
  out_ += fmt::format("<text x=\"{}\" y=\"{}\" font-size=\"{}\" fill=\"{}\"", number(x), number(y),
                      number(lettering.size), escaped(lettering.fill));
  if (lettering.anchor != Anchor::start)
    out_ += fmt::format(" text-anchor=\"{}\"", lettering.anchor == Anchor::middle ? "middle" : "end");
  if (lettering.bold) out_ += " font-weight=\"bold\"";
  if (lettering.upright) out_ += fmt::format(" transform=\"rotate(-90 {} {})\"", number(x), number(y));
  out_ += fmt::format(">{}</text>\n", escaped(text));
}

std::string Svg::finish() && {
  out_ += "</svg>\n";
  return std::move(out_);
}

}  // namespace weft::explain
