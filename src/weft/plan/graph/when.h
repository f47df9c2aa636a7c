// weft/plan/graph/when.h -- when in a step a node runs.
//
//   forward    the model's own nodes, up to the loss
//   backward   the gradient of the loss
//   update     the optimizer's nodes
//
// An inference plan is all forward. Code that derives a node from another copies its `When` as one
// value. A node never reads from a later phase (verify.h), so a node derived from several takes the
// latest.
#pragma once
#include <compare>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace weft::plan {

enum class Phase : std::uint8_t { forward, backward, update };  // in execution order

std::string_view name(Phase phase);
std::span<const std::string_view> phase_names();
std::optional<Phase> find_phase(std::string_view name);

struct When {
  Phase phase = Phase::forward;

  friend auto operator<=>(const When&, const When&) = default;
};

}  // namespace weft::plan
