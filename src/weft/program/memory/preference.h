// weft/program/memory/preference.h -- the orders in which packers place boxes.
//
// Width is lifetime and height is size. No single order is best for all problems: wide boxes first
// keeps the skyline flat, tall ones first leaves small boxes for the end. So the packers try
// several and keep the best result.
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

// The positions of `boxes` in order of preference, stable for ties. Each nonzero variant perturbs
// the order slightly in its own way.
std::vector<std::uint32_t> ranked(std::span<const Box> boxes, Preference preference,
                                  std::uint64_t variant = 0);

}  // namespace weft::memory
