#include "weft/plan/graph/when.h"

#include <array>

namespace weft::plan {
namespace {

constexpr std::array<std::string_view, 3> kPhaseNames = {"forward", "backward", "update"};

}  // namespace

std::string_view name(Phase phase) { return kPhaseNames[static_cast<std::size_t>(phase)]; }
std::span<const std::string_view> phase_names() { return kPhaseNames; }

std::optional<Phase> find_phase(std::string_view name) {
  for (std::size_t i = 0; i < kPhaseNames.size(); ++i)
    if (kPhaseNames[i] == name) return static_cast<Phase>(i);
  return std::nullopt;
}

}  // namespace weft::plan
