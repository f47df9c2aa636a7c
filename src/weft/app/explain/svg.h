// weft/app/explain/svg.h -- builds SVG drawings: shapes are drawn in the order they are added.
//
//   Svg svg(200, 100);
//   svg.rect(10, 10, 80, 20, {.fill = "#dbeafe", .stroke = "#1e40af"});
//   svg.text(50, 24, "send a & b", {.anchor = Anchor::middle});
//   svg.finish()
//
// Uses plain attributes only, no style sheets or scripts, so that all viewers show the same. Text
// is escaped. Control characters, which XML forbids, and invalid UTF-8 become U+FFFD. A number that
// is not finite is drawn as 0.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace weft::explain {

struct Shape {
  std::string_view fill = "none";
  std::string_view stroke = "none";
  double stroke_width = 1;
  std::string_view dash = "";  // "4 3"
  double opacity = 1;
  double radius = 0;            // corner radius of a rectangle
  std::string_view title = "";  // shown on mouse hover
  bool arrow = false;           // puts an arrow head at the end of a line or polyline
};

enum class Anchor : std::uint8_t { start, middle, end };

struct Lettering {
  double size = 12;
  Anchor anchor = Anchor::start;
  std::string_view fill = "#1f2937";
  bool bold = false;
  bool upright = false;  // rotated to read upwards
};

struct Position {
  double x = 0, y = 0;
};

// Eight colours that are distinguishable on white, also for the colour-blind (after Okabe and Ito).
std::string_view palette(std::size_t index);
// Colours repeat after a while; lines that reuse a colour are dashed.
std::string_view palette_dash(std::size_t index);

// The approximate width of a text in the drawing's font.
double text_width(std::string_view text, double size);

class Svg {
 public:
  Svg(double width, double height, std::string_view background = "#ffffff");

  void rect(double x, double y, double width, double height, const Shape& shape);
  void line(Position from, Position to, const Shape& shape);
  void polyline(std::span<const Position> points, const Shape& shape);
  void circle(Position center, double radius, const Shape& shape);
  void text(double x, double y, std::string_view text, const Lettering& lettering = {});

  std::string finish() &&;

 private:
  void close(std::string_view element, std::string_view title);
  void paint(const Shape& shape);
  void arrow_head(Position from, Position to, const Shape& shape);

  std::string out_;
};

}  // namespace weft::explain
