#include "weft/cluster/cluster.h"

#include <array>

namespace weft::cluster {
namespace {

constexpr std::array<std::string_view, kShapes> kShapeNames = {"",      "switch",           "ring", "full", "mesh",
                                                          "torus", "hybrid_cube_mesh", "mi250"};

}  // namespace

std::string_view name(Shape shape) { return kShapeNames[static_cast<std::size_t>(shape)]; }

std::optional<Shape> find_shape(std::string_view name) {
  for (std::size_t shape = 1; shape < kShapes; ++shape)
    if (kShapeNames[shape] == name) return static_cast<Shape>(shape);
  return std::nullopt;
}

std::int64_t devices_of(const Link& link, std::int64_t any) {
  switch (link.shape) {
    case Shape::hybrid_cube_mesh: return 8;
    case Shape::mi250: return 16;
    case Shape::mesh:
    case Shape::torus: {
      constexpr std::int64_t kMost = 1 << 24;
      std::int64_t product = link.sides.empty() ? 0 : 1;
      for (const std::int64_t side : link.sides) {
        if (side < 1 || side > kMost) return 0;
        product *= side;
        if (product > kMost) return 0;
      }
      return product;
    }
    default: return any;
  }
}

}  // namespace weft::cluster
