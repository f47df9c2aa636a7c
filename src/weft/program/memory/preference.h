// weft/program/memory/preference.h -- which box to place first, where several could go.
//
// Width is life and height is size. No one order is best for all problems: wide boxes first keeps the skyline
// flat, tall ones first leaves the small change for the end. So the packers try several and keep what came
// out best.
#pragma once
#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "weft/program/memory/boxes.h"

namespace weft::memory {

enum class Preference : std::uint8_t { wide, tall_area, tall, wide_area, area, wide_and_flat };

inline constexpr std::array kPreferences = {Preference::wide, Preference::tall_area,
                                            Preference::tall, Preference::wide_area,
                                            Preference::area, Preference::wide_and_flat};

// The positions of `boxes`, the preferred first; ties keep their order. A variant other than zero
// shakes the order a little, each in its own way.
std::vector<std::uint32_t> ranked(std::span<const Box> boxes, Preference preference,
                                  std::uint64_t variant = 0);

}  // namespace weft::memory
