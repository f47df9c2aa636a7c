// weft/base/nearest.h -- the name the user probably meant.
#pragma once
#include <span>
#include <string>
#include <string_view>

namespace weft {

// The candidate with the fewest single-letter edits (insert, delete, replace, swap of two
// neighbours) from `word`, letter case ignored; empty when none is near enough to be a slip.
std::string_view nearest(std::string_view word, std::span<const std::string_view> candidates);

// "did you mean 'NAME'?" for the nearest candidate, or "" when there is none.
std::string did_you_mean(std::string_view word, std::span<const std::string_view> candidates);

}  // namespace weft
