// weft/program/memory/skyline.h -- skyline packer: fills the lowest valley first.
//
//        +------+                   Puts the most preferred box that fits between the walls of the
//   -----+      |                   lowest valley at its bottom. If none fits, the valley is raised
//               +---------+         to its lower wall, and the space below is wasted.
//               |  valley +-----
//
// Takes about n log n steps for n boxes, however many of them conflict.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "weft/program/memory/boxes.h"
#include "weft/program/memory/waiting_boxes.h"

namespace weft::memory {

// Offsets of the group's boxes above its base. `waiting` must have been built from these boxes;
// `order` lists them by preference.
std::vector<std::int64_t> fill_valleys(const Piece& piece, WaitingBoxes& waiting,
                                       std::span<const std::uint32_t> order);

}  // namespace weft::memory
