// weft/program/memory/first_fit.h -- first-fit packer: the lowest gap that is large enough.
//
//   |    b    |   Unlike the skyline packer, it also uses gaps below placed boxes: c goes under b,
//   +---+-----+   beside a, where the skyline packer would waste the space. It must look at every
//   | a | c       conflicting box, so it is for groups with few conflicts.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "weft/program/memory/boxes.h"

namespace weft::memory {

// The conflicting boxes of each box (symmetric).
class Collisions {
 public:
  // Empty if there are more than `limit` conflicting pairs.
  static std::optional<Collisions> among(const Piece& piece, std::size_t limit);

  std::span<const std::uint32_t> of(std::uint32_t position) const {
    return std::span(others_).subspan(begins_[position], begins_[position + 1] - begins_[position]);
  }

 private:
  std::vector<std::size_t> begins_;
  std::vector<std::uint32_t> others_;
};

// Offsets of the group's boxes above its base, placed in the given order.
std::vector<std::int64_t> first_fit(const Piece& piece, const Collisions& collisions,
                                    std::span<const std::uint32_t> order);

}  // namespace weft::memory
