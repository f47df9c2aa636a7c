// weft/planner/statement/combinations.h -- settings that cannot be combined, with the reason.
//
//   sync_every with codecs      ranks average parameters, and codecs compress what is sent in every step
//
// docs/combinations.md lists the rows. A new feature should remove obstacles before it adds a row.
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

// Fails with the first row that applies. `learns`: whether the statement trains.
Status check_combinations(const Settings& settings, const Target& target, bool learns);

}  // namespace weft::planner
