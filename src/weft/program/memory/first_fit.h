// weft/program/memory/first_fit.h -- the patient packer: each box in turn into the lowest gap that takes it.
//
//   |    b    |   Unlike the skyline's, its gaps may lie below boxes already placed: c goes under b,
//   +---+-----+   beside a, where the skyline would have called the space wasted. The price is to look
//   | a | c       at every box that collides, so it is for pieces where these are not too many.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "weft/program/memory/boxes.h"

namespace weft::memory {

// Which boxes collide, both ways.
class Collisions {
 public:
  // None when there are more than `limit` colliding pairs.
  static std::optional<Collisions> among(const Piece& piece, std::size_t limit);

  std::span<const std::uint32_t> of(std::uint32_t position) const {
    return std::span(others_).subspan(begins_[position], begins_[position + 1] - begins_[position]);
  }

 private:
  std::vector<std::size_t> begins_;
  std::vector<std::uint32_t> others_;
};

// Offsets of the piece's boxes above its base, placed in the order given.
std::vector<std::int64_t> first_fit(const Piece& piece, const Collisions& collisions,
                                    std::span<const std::uint32_t> order);

}  // namespace weft::memory
