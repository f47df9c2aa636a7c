#include "weft/collectives/reshard/holdings.h"

#include <fmt/format.h>

namespace weft::reshard {
namespace {

Result<std::int64_t> ranks_of(std::span<const std::int32_t> mesh) {
  std::int64_t ranks = 1;
  for (const std::int32_t along : mesh) {
    if (along < 1) return user_error(fmt::format("an axis of a mesh has at least one rank, found {}", along));
    ranks *= along;
    if (ranks > kMostDevices)
      return user_error(fmt::format("the mesh is too large: expected at most {} ranks, found {} or more",
                                    kMostDevices, ranks));
  }
  return ranks;
}

Status check_slicing(std::size_t dims, std::span<const std::int32_t> mesh, const Slicing& slicing) {
  if (slicing.size() != dims)
    return user_error(
        fmt::format("expected one list of axes per dim, found {} lists for {} dims", slicing.size(), dims));
  std::vector<bool> used(mesh.size());
  for (std::size_t dim = 0; dim < dims; ++dim)
    for (const std::int32_t axis : slicing[dim]) {
      if (axis < 0 || axis >= static_cast<std::int32_t>(mesh.size()))
        return user_error(fmt::format("dim {} is sliced along an axis that the mesh lacks: axis {} of {}",
                                      dim, axis, mesh.size()));
      if (used[axis])
        return user_error(
            fmt::format("an axis may slice only one dim: axis {} is used again at dim {}", axis, dim));
      used[axis] = true;
    }
  return {};
}

}  // namespace

Result<std::vector<Box>> boxes_of(std::span<const std::int64_t> sizes, std::span<const std::int32_t> mesh,
                                  const Slicing& slicing) {
  WEFT_TRY(ranks, ranks_of(mesh));
  WEFT_TRY_STATUS(check_slicing(sizes.size(), mesh, slicing));
  std::vector<Box> boxes;
  std::vector<std::int32_t> at(mesh.size());  // coordinates of the rank
  for (std::int64_t rank = 0; rank < ranks; ++rank) {
    std::int64_t rest = rank;
    for (std::size_t axis = mesh.size(); axis-- > 0; rest /= mesh[axis])
      at[axis] = static_cast<std::int32_t>(rest % mesh[axis]);
    Box box;
    for (std::size_t dim = 0; dim < sizes.size(); ++dim) {
      plan::Share share{0, sizes[dim]};
      for (const std::int32_t axis : slicing[dim]) {
        const plan::Share inner = plan::share_of(share.size, mesh[axis], at[axis]);
        share = {share.begin + inner.begin, inner.size};
      }
      box.push_back(share);
    }
    boxes.push_back(std::move(box));
  }
  return boxes;
}

Result<std::vector<Box>> boxes_of(const plan::Type& type, const plan::Layout& layout,
                                  const plan::Mesh& mesh) {
  WEFT_TRY_STATUS(plan::check(mesh));
  if (mesh.ranks() > kMostDevices)
    return user_error(fmt::format("the mesh is too large: expected at most {} ranks, found {}", kMostDevices,
                                  mesh.ranks()));
  if (layout.axes.size() != mesh.axes.size())
    return user_error(fmt::format("expected a layout for every mesh axis, found {} of {}", layout.axes.size(),
                                  mesh.axes.size()));
  for (std::size_t axis = 0; axis < layout.axes.size(); ++axis)
    if (layout.axes[axis].is_partial() || layout.axes[axis].is_varying())
      return user_error(fmt::format("a reshard moves blocks; along {} the value is {}", mesh.axes[axis].name,
                                    layout.axes[axis].is_partial() ? "partial" : "varying"),
                        "reduce it first");
  std::vector<Box> boxes;
  for (std::int32_t rank = 0; rank < mesh.ranks(); ++rank)
    boxes.push_back(plan::shares_of(type, layout, mesh, rank));
  return boxes;
}

std::vector<Holding> holdings_of(std::vector<Box> boxes, std::int32_t first_device) {
  std::vector<Holding> holdings;
  for (Box& box : boxes) holdings.push_back({first_device++, std::move(box)});
  return holdings;
}

}  // namespace weft::reshard
