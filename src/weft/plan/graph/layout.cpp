#include "weft/plan/graph/layout.h"

#include <algorithm>

#include <fmt/format.h>

#include "weft/base/check.h"

namespace weft::plan {
namespace {

// Difference in rank between two neighbours along the axis.
std::int32_t stride_of(const Mesh& mesh, std::size_t axis) {
  std::int32_t stride = 1;
  for (std::size_t inner = axis + 1; inner < mesh.axes.size(); ++inner) stride *= mesh.axes[inner].ranks;
  return stride;
}

}  // namespace

std::int32_t Mesh::ranks() const {
  std::int32_t product = 1;
  for (const MeshAxis& axis : axes) product *= axis.ranks;
  return product;
}

int Mesh::find(std::string_view axis) const {
  for (std::size_t i = 0; i < axes.size(); ++i)
    if (axes[i].name == axis) return static_cast<int>(i);
  return -1;
}

std::int32_t Mesh::coordinate(std::int32_t rank, std::size_t axis) const {
  return rank / stride_of(*this, axis) % axes[axis].ranks;
}

std::vector<std::int32_t> Mesh::group(std::int32_t rank, std::size_t axis) const {
  const std::int32_t stride = stride_of(*this, axis);
  const std::int32_t first = rank - coordinate(rank, axis) * stride;
  std::vector<std::int32_t> ranks;
  for (std::int32_t i = 0; i < axes[axis].ranks; ++i) ranks.push_back(first + i * stride);
  return ranks;
}

Status check(const Mesh& mesh) {
  std::int64_t ranks = 1;
  for (std::size_t i = 0; i < mesh.axes.size(); ++i) {
    const MeshAxis& axis = mesh.axes[i];
    if (axis.name.empty()) return user_error("a mesh axis needs a name");
    if (mesh.find(axis.name) != static_cast<int>(i))
      return user_error(fmt::format("two mesh axes are named {}", axis.name));
    if (axis.ranks < 1)
      return user_error(
          fmt::format("mesh axis {} must have at least 1 rank, found {}", axis.name, axis.ranks));
    ranks *= axis.ranks;
    if (ranks > kMostRanks) return user_error(fmt::format("a mesh has at most {} ranks", kMostRanks));
  }
  return {};
}

Share share_of(std::int64_t size, std::int32_t parts, std::int32_t part) {
  WEFT_CHECK(parts > 0 && part >= 0 && part < parts);
  const std::int64_t block = size / parts + (size % parts != 0 ? 1 : 0);
  const std::int64_t begin = std::min(size, block * part);
  return {begin, std::min(block, size - begin)};
}

Share with_borders(Share block, std::int64_t before, std::int64_t after, std::int64_t size) {
  const std::int64_t begin = std::max<std::int64_t>(block.begin - before, 0);
  return {begin, std::min(block.end() + after, size) - begin};
}

Share overlap(Share a, Share b) {
  const std::int64_t begin = std::max(a.begin, b.begin);
  return {begin, std::max<std::int64_t>(std::min(a.end(), b.end()) - begin, 0)};
}

std::vector<Share> shares_of(const Type& type, const Layout& layout, const Mesh& mesh, std::int32_t rank) {
  std::vector<Share> shares;
  for (const Dim& dim : type.dims) {
    Share share{0, dim.size};
    for (std::size_t axis = 0; axis < layout.axes.size(); ++axis) {
      const AxisLayout& held = layout.axes[axis];
      if (!held.slices(dim.index)) continue;
      const Share inner = share_of(share.size, mesh.axes[axis].ranks, mesh.coordinate(rank, axis));
      share = with_borders({share.begin + inner.begin, inner.size}, held.before, held.after, dim.size);
    }
    shares.push_back(share);
  }
  return shares;
}

}  // namespace weft::plan
