// weft/collectives/reshard/cells.h -- the pieces into which the boxes of a reshard cut each other.
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
  std::vector<std::int32_t> holders, needers;  // devices, those of one host together
};

// Of a cell's holders or needers, those on one host. `hosts`: of each device.
std::span<const std::int32_t> on_host(const std::vector<std::int32_t>& devices, std::int32_t host,
                                      std::span<const std::int32_t> hosts);

// The cells that somebody needs, in the order of the tensor's elements. Fails as plan_moves does.
Result<std::vector<Cell>> cells_of(const Reshard& reshard);

}  // namespace weft::reshard
