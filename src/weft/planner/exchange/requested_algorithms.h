// weft/planner/exchange/requested_algorithms.h -- collective algorithms that the user selects by name.
//
//   SET algorithm = 'all_reduce_ring(channels=2); direct two-shot'
//
//   all-reduce   all_reduce_ring(channels=2)      the first that implements the collective, or any
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

struct RequestedAlgorithm {
  std::string name;
  std::optional<collective::Kind> kind;  // the collective it implements; none: any
};

// Reads names separated by semicolons. Fails if a name is unknown or its parameters do not match.
Result<std::vector<RequestedAlgorithm>> read_requested_algorithms(std::string_view text);

// Null if none implements the collective.
const RequestedAlgorithm* find_requested(std::span<const RequestedAlgorithm> asked, collective::Kind kind);

}  // namespace weft::exchange
