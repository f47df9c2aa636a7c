#include "weft/translate/imports/layer_runs.h"

#include <algorithm>

namespace weft::imports {
namespace {

constexpr std::size_t kLongestPeriod = 16;  // maximum number of layers per repetition

// The shortest period of the layer kinds that occurs at least twice; 0: none.
std::size_t period_of(const std::vector<std::size_t>& kinds) {
  for (std::size_t turn = 1; turn <= std::min(kLongestPeriod, kinds.size() / 2); ++turn)
    if (std::equal(kinds.begin() + static_cast<std::ptrdiff_t>(turn), kinds.end(), kinds.begin()))
      return turn;
  return 0;
}

}  // namespace

std::vector<LayerRun> layer_runs(const std::vector<std::size_t>& kinds) {
  std::vector<LayerRun> runs;
  if (const std::size_t turn = period_of(kinds); turn > 0) {
    const std::size_t whole = kinds.size() / turn * turn;
    const auto at = [&](std::size_t i) { return kinds.begin() + static_cast<std::ptrdiff_t>(i); };
    runs.push_back({static_cast<std::int64_t>(kinds.size() / turn), {kinds.begin(), at(turn)}, 0});
    if (whole < kinds.size()) runs.push_back({1, {at(whole), kinds.end()}, static_cast<std::int64_t>(whole)});
    return runs;
  }
  for (std::size_t i = 0; i < kinds.size(); ++i)
    if (i > 0 && kinds[i] == kinds[i - 1])
      ++runs.back().times;
    else
      runs.push_back({1, {kinds[i]}, static_cast<std::int64_t>(i)});
  return runs;
}

}  // namespace weft::imports
