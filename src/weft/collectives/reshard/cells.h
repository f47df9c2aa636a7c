// weft/collectives/reshard/cells.h -- intersects the source and destination boxes of a reshard.
//
//   held   |------0------|------1------|
//   needed |----2----|----3----|---4---|
//   cells  |    a    | b |  c  |   d   |      a: held by 0, needed by 2; b: held by 0, needed by 3; ...
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "weft/collectives/reshard/reshard.h"

namespace weft::reshard {

struct Cell {
  Box box;
  std::vector<std::int32_t> holders, needers;  // devices, grouped by host
};

// The holders or needers of a cell that are on one host. `hosts`: per device.
std::span<const std::int32_t> on_host(const std::vector<std::int32_t>& devices, std::int32_t host,
                                      std::span<const std::int32_t> hosts);

// The cells that a device needs, in the tensor's element order. Fails as plan_moves does.
Result<std::vector<Cell>> cells_of(const Reshard& reshard);

}  // namespace weft::reshard
