// weft/base/nearest.h -- spelling suggestions.
#pragma once
#include <span>
#include <string>
#include <string_view>

namespace weft {

// The candidate with the fewest single-letter edits (insert, delete, replace, swap of two
// neighbours) from `word`, ignoring case; empty if none is near enough.
std::string_view nearest(std::string_view word, std::span<const std::string_view> candidates);

// "did you mean 'NAME'?" for the nearest candidate, or "" if there is none.
std::string did_you_mean(std::string_view word, std::span<const std::string_view> candidates);

}  // namespace weft
