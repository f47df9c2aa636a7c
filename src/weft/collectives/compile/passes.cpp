#include "weft/collectives/compile/passes.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <utility>

#include "weft/collectives/chunks/check_moves.h"
#include "weft/collectives/chunks/program_text.h"
#include "weft/collectives/compile/assign.h"
#include "weft/collectives/compile/block_waits.h"
#include "weft/collectives/compile/cut.h"
#include "weft/collectives/compile/dependence.h"
#include "weft/collectives/compile/fuse.h"
#include "weft/collectives/compile/instances.h"
#include "weft/collectives/compile/order.h"
#include "weft/collectives/compile/split.h"

namespace weft::collective {
namespace {

// The representation after a pass.
enum class Stage : std::uint8_t { moves, plain, assigned, ordered, program };

struct State {
  Moves moves;
  Instructions instructions;
  Program program;
  std::string text;
};

struct Pass {
  std::string_view name;
  Stage needs, leaves;
  Status (*run)(State& state, const CompileOptions& options);
};

Status run_dependence(State& state, const CompileOptions&) {
  state.text = print(state.moves, find_dependences(state.moves, Cells(state.moves)));
  return {};
}

Status run_split(State& state, const CompileOptions&) {
  const Cells cells(state.moves);
  state.instructions = split(state.moves, cells, find_dependences(state.moves, cells));
  state.text = print(state.instructions);
  return {};
}

Status run_fuse(State& state, const CompileOptions&) {
  state.instructions = fuse(state.instructions);
  state.text = print(state.instructions);
  return {};
}

Status run_assign(State& state, const CompileOptions& options) {
  WEFT_TRY(assigned, assign(state.instructions, limits_of(options)));
  state.instructions = std::move(assigned);
  state.text = print(state.instructions);
  return {};
}

Status run_cut(State& state, const CompileOptions& options) {
  const std::vector<std::int32_t> sizes =
      pieces(state.instructions, slots_of(options), state.moves.moves.size());
  if (!sizes.empty()) state.moves = cut(state.moves, sizes);
  state.text = print(state.moves);
  return {};
}

Status run_order(State& state, const CompileOptions& options) {
  state.instructions = order(state.instructions, slots_of(options));
  state.text = print(state.instructions);
  return {};
}

Status run_waits(State& state, const CompileOptions& options) {
  state.program = add_waits(state.instructions);
  state.program.protocol = options.protocol;
  state.text = print(state.program);
  return {};
}

Status run_instances(State& state, const CompileOptions& options) {
  WEFT_TRY(program, replicate(state.program, options.instances));
  state.program = std::move(program);
  state.text = print(state.program);
  return {};
}

constexpr std::array<Pass, 8> kPasses = {{
    {"dependence", Stage::moves, Stage::moves, run_dependence},
    {"split", Stage::moves, Stage::plain, run_split},
    {"fuse", Stage::plain, Stage::plain, run_fuse},
    {"assign", Stage::plain, Stage::assigned, run_assign},
    {"cut", Stage::assigned, Stage::moves, run_cut},
    {"order", Stage::assigned, Stage::ordered, run_order},
    {"waits", Stage::ordered, Stage::program, run_waits},
    {"instances", Stage::program, Stage::program, run_instances},
}};

constexpr std::array<std::string_view, kPasses.size()> kPassNames = [] {
  std::array<std::string_view, kPasses.size()> names{};
  for (std::size_t i = 0; i < kPasses.size(); ++i) names[i] = kPasses[i].name;
  return names;
}();

}  // namespace

Result<std::string> run_passes(const Moves& moves, std::span<const std::string_view> names,
                               const CompileOptions& options) {
  WEFT_TRY_STATUS(check_options(options));
  WEFT_TRY_STATUS(check_moves(moves));
  State state{moves, {}, {}, print(moves)};
  Stage stage = Stage::moves;
  for (const std::string_view name : names) {
    const auto pass = std::find_if(kPasses.begin(), kPasses.end(),
                                   [&](const Pass& candidate) { return candidate.name == name; });
    if (pass == kPasses.end())
      return user_error(fmt::format("there is no pass {}", name),
                        fmt::format("passes are {}", fmt::join(kPassNames, ", ")));
    if (pass->needs != stage)
      return user_error(fmt::format("pass {} is out of order", name),
                        fmt::format("the passes in their order are {}", fmt::join(kPassNames, ", ")));
    WEFT_TRY_STATUS(pass->run(state, options));
    stage = pass->leaves;
  }
  return state.text;
}

}  // namespace weft::collective
