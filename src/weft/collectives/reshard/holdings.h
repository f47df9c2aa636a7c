// weft/collectives/reshard/holdings.h -- the box of a tensor that each rank of a mesh holds.
//
//   mesh 2 x 4, slicing {{0, 1}, {}}: dim 0 in two along axis 0, each half in four along axis 1; dim 1 whole
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "weft/collectives/reshard/reshard.h"
#include "weft/plan/graph/layout.h"

namespace weft::reshard {

// Per dim, the mesh axes that slice it, outermost first. An axis that slices no dim replicates.
using Slicing = std::vector<std::vector<std::int32_t>>;

// Larger meshes are rejected.
constexpr std::int64_t kMostDevices = 1 << 16;

// One box per rank, the last mesh axis varying fastest. Slices may be uneven: the last are shorter
// or empty. Fails if a slicing names an unknown axis or an axis twice, or the mesh is too large.
Result<std::vector<Box>> boxes_of(std::span<const std::int64_t> sizes, std::span<const std::int32_t> mesh,
                                  const Slicing& slicing);

// The same for a value of a plan. Fails if the layout is partial or varying.
Result<std::vector<Box>> boxes_of(const plan::Type& type, const plan::Layout& layout, const plan::Mesh& mesh);

// Rank r is device `first_device` + r.
std::vector<Holding> holdings_of(std::vector<Box> boxes, std::int32_t first_device);

}  // namespace weft::reshard
