// weft/program/memory/skyline.h -- the quick packer: fills the lowest valley of the skyline first.
//
//        +------+                   The most preferred box that fits between the walls of the lowest
//   -----+      |                   valley lies down in it. When none fits, the valley is filled up
//               +---------+         to its lower wall, and what is under there is wasted.
//               |  valley +-----
//
// Takes about n log n steps for n boxes, however many of them collide.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "weft/program/memory/boxes.h"
#include "weft/program/memory/waiting_boxes.h"

namespace weft::memory {

// Offsets of the piece's boxes above its base. `waiting` must have been made of these boxes; `order`
// says which are preferred.
std::vector<std::int64_t> fill_valleys(const Piece& piece, WaitingBoxes& waiting,
                                       std::span<const std::uint32_t> order);

}  // namespace weft::memory
