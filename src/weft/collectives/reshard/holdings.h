// weft/collectives/reshard/holdings.h -- which box of a tensor each rank of a mesh holds.
//
//   mesh 2 x 4, slicing {{0, 1}, {}}: dim 0 in two along axis 0, each half in four along axis 1; dim 1 whole
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "weft/collectives/reshard/reshard.h"
#include "weft/plan/graph/layout.h"

namespace weft::reshard {

// For each dim the mesh axes that slice it, the outermost cut first. What no dim names replicates.
using Slicing = std::vector<std::vector<std::int32_t>>;

// More ranks than these are refused.
constexpr std::int64_t kMostDevices = 1 << 16;

// A box a rank, the last axis fastest. Slices may be uneven: the last are shorter or empty. Fails when a
// slicing names an axis that the mesh lacks or an axis twice, or the mesh is too large.
Result<std::vector<Box>> boxes_of(std::span<const std::int64_t> sizes, std::span<const std::int32_t> mesh,
                                  const Slicing& slicing);

// The same of a plan's value. Fails where ranks hold addends or values of their own: these are no blocks.
Result<std::vector<Box>> boxes_of(const plan::Type& type, const plan::Layout& layout, const plan::Mesh& mesh);

// Rank r is device `first_device` + r.
std::vector<Holding> holdings_of(std::vector<Box> boxes, std::int32_t first_device);

}  // namespace weft::reshard
