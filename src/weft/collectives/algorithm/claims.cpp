#include "weft/collectives/algorithm/claims.h"

#include <algorithm>

#include <fmt/format.h>

#include "weft/collectives/algorithm/evaluation.h"
#include "weft/collectives/chunks/cells.h"

namespace weft::collective {
namespace {

// Lengths of the message chains that end in one chunk of memory.
struct ClaimChain {
  std::int32_t written = 0, read = 0;
};

}  // namespace

Measure measure(const Moves& moves) {
  const Cells cells(moves);
  std::vector<ClaimChain> chains(cells.size());
  std::vector<std::int64_t> sent(moves.collective.ranks);
  std::int32_t longest = 0;
  for (const Move& move : moves.moves) {
    ClaimChain* const from = &chains[cells.at(move.from)];
    ClaimChain* const to = &chains[cells.at(move.to)];
    std::int32_t chain = 0;
    for (std::int32_t i = 0; i < move.count; ++i)
      chain = std::max({chain, from[i].written, to[i].written, to[i].read});
    if (!move.local()) {
      ++chain;
      sent[move.from.rank] += move.count;
    }
    for (std::int32_t i = 0; i < move.count; ++i) {
      from[i].read = std::max(from[i].read, chain);
      to[i].written = chain;
    }
    longest = std::max(longest, chain);
  }
  return {longest, *std::ranges::max_element(sent)};
}

Result<Claims> claims(const Algorithm& algorithm, const Arguments& arguments) {
  Progress progress{TraceLimits{}.work, {}};
  Evaluation values(algorithm.syntax(), progress);
  if (!values.bind(arguments)) return *progress.error;
  Claims result;
  if (algorithm.syntax().steps != kNoExpression) result.steps = values.number(algorithm.syntax().steps);
  if (algorithm.syntax().wire != kNoExpression) result.wire = values.number(algorithm.syntax().wire);
  if (values.failed()) return *progress.error;
  return result;
}

Status check_claims(const Algorithm& algorithm, const Arguments& arguments, const Moves& moves) {
  WEFT_TRY(claimed, claims(algorithm, arguments));
  if (!claimed.steps && !claimed.wire) return {};
  const Measure measured = measure(moves);
  const auto expect = [&](std::string_view what, std::optional<std::int64_t> claim,
                          std::int64_t found) -> Status {
    if (!claim || *claim == found) return {};
    return user_error(
        fmt::format("{} claims {} {}, but its moves take {}", algorithm.name(), what, *claim, found),
        fmt::format("correct the line {}, or the moves", what));
  };
  WEFT_TRY_STATUS(expect("STEPS", claimed.steps, measured.steps));
  return expect("WIRE", claimed.wire, measured.wire);
}

}  // namespace weft::collective
