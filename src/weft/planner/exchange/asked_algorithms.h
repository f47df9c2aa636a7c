// weft/planner/exchange/asked_algorithms.h -- algorithms that somebody asks for by name, in place of what would be chosen.
//
//   SET algorithm = 'all_reduce_ring(channels=2); direct two-shot'
//
//   all-reduce   all_reduce_ring(channels=2)      the first that is for the collective, or for any
//   all-gather   direct two-shot
#pragma once
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weft/base/result.h"
#include "weft/collectives/chunks/collective.h"

namespace weft::exchange {

struct AskedAlgorithm {
  std::string name;
  std::optional<collective::Kind> kind;  // that it is an algorithm of; none: of any
};

// Names between semicolons. Fails where nothing has such a name, or its parameters do not fit.
Result<std::vector<AskedAlgorithm>> read_asked_algorithms(std::string_view text);

// Null where none is for the collective.
const AskedAlgorithm* find_asked(std::span<const AskedAlgorithm> asked, collective::Kind kind);

}  // namespace weft::exchange
