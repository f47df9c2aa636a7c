#include "weft/collectives/compile/compile.h"

#include <fmt/format.h>

#include <algorithm>

#include "weft/base/check.h"
#include "weft/collectives/check/check.h"
#include "weft/collectives/chunks/check_moves.h"
#include "weft/collectives/compile/block_waits.h"
#include "weft/collectives/compile/cut.h"
#include "weft/collectives/compile/dependence.h"
#include "weft/collectives/compile/fuse.h"
#include "weft/collectives/compile/instances.h"
#include "weft/collectives/compile/order.h"
#include "weft/collectives/compile/split.h"

namespace weft::collective {

std::int32_t slots_of(const CompileOptions& options) {
  return options.slots > 0 ? options.slots : fifo_slots(options.protocol);
}

// The limits of one instance.
AssignLimits limits_of(const CompileOptions& options) {
  return {options.max_channels / options.instances,
          options.max_blocks == 0 ? 0 : std::max(1, options.max_blocks / options.instances),
          options.join_blocks};
}

Status check_options(const CompileOptions& options) {
  if (options.instances < 1 || options.max_channels < options.instances)
    return user_error(fmt::format("expected 1 to {} instances (the number of channels), found {}",
                                  options.max_channels, options.instances));
  if (options.slots < 0 || options.max_blocks < 0)
    return user_error(fmt::format("expected slots and threadblocks of at least 0, found {} and {}",
                                  options.slots, options.max_blocks));
  return {};
}

namespace {

Result<Instructions> arrange(const Moves& moves, const CompileOptions& options) {
  const Cells cells(moves);
  const Dependences dependences = find_dependences(moves, cells);
  const Instructions plain = split(moves, cells, dependences);
  if (!options.fuse) return assign(plain, limits_of(options));
  Result<Instructions> assigned = assign(fuse(plain), limits_of(options));
  // Fused instructions may need more channels, and so more blocks, than plain ones.
  return assigned.ok() ? std::move(assigned) : assign(plain, limits_of(options));
}

// Long moves are cut if that is faster because both directions of a link are then busy at once.
Result<Instructions> arrange_in_order(const Moves& moves, const CompileOptions& options) {
  const std::int32_t slots = slots_of(options);
  WEFT_TRY(assigned, arrange(moves, options));
  Instructions whole = order(assigned, slots);
  const std::vector<std::int32_t> sizes = pieces(assigned, slots, moves.moves.size());
  if (sizes.empty()) return whole;
  WEFT_TRY(assigned_pieces, arrange(cut(moves, sizes), options));
  Instructions in_pieces = order(assigned_pieces, slots);
  return duration(in_pieces, slots) < duration(whole, slots) ? std::move(in_pieces) : std::move(whole);
}

// check_moves() counted one instance.
Status check_size(const Moves& moves, std::int32_t instances) {
  std::int64_t moved = 0, held = Cells(moves).size();
  for (const Move& move : moves.moves) moved += move.count;
  if (moved <= kMostMovedChunks / instances && held <= kMostMemoryChunks / instances) return {};
  return user_error(
      fmt::format("too many chunks for {} instances: {} moved, {} held", instances, moved, held),
      "use fewer instances");
}

}  // namespace

Result<Program> compile(const Moves& moves, const CompileOptions& options) {
  WEFT_TRY_STATUS(check_options(options));
  WEFT_TRY_STATUS(check_moves(moves));
  WEFT_TRY_STATUS(check_size(moves, options.instances));
  WEFT_TRY(ordered, arrange_in_order(moves, options));
  Program once = add_waits(ordered);
  once.protocol = options.protocol;
  WEFT_TRY(program, replicate(once, options.instances));

  const Report report = check(program, {.slots = slots_of(options)});
  if (!report.finding) return program;
  const std::string said = print(*report.finding);
  const bool result = report.verdict() == Verdict::wrong_result;
  const std::optional<Place> wrong = result ? first_wrong(moves) : std::nullopt;
  WEFT_CHECK(wrong.has_value(), "compiled program is wrong: " + said);
  return user_error(fmt::format("moves do not compute {}: output[{}] of {} is wrong: {}",
                                name(moves.collective.kind), wrong->index, wrong->rank, said));
}

}  // namespace weft::collective
