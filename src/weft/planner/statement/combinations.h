// weft/planner/statement/combinations.h -- what cannot be combined, one row each, with the reason.
//
//   sync_every with codecs      what is averaged are parameters, and codecs are for gradients
//
// docs/combinations.md lists the rows. A new feature redesigns what stands in its way before it adds one.
#pragma once
#include <span>
#include <string_view>

#include "weft/base/result.h"
#include "weft/planner/settings/settings.h"
#include "weft/planner/target/target.h"

namespace weft::planner {

struct Combination {
  std::string_view first, second;  // as users name them
  std::string_view reason, hint;
  bool (*is_asked)(const Settings& settings, const Target& target);
};

std::span<const Combination> refused_combinations();

// Fails with the first that is asked for. `learns`: whether the statement trains.
Status check_combinations(const Settings& settings, const Target& target, bool learns);

}  // namespace weft::planner
