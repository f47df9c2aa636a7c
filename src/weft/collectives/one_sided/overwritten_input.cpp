#include "weft/collectives/one_sided/overwritten_input.h"

#include <fmt/format.h>

namespace weft::collective {
namespace {

Finding overwrites(const Where& where, std::int32_t index, std::int32_t rank) {
  return {Verdict::ok, where,
          fmt::format("overwrites input[{}]{}, although the program is declared out of place", index,
                      rank == where.rank ? "" : fmt::format(" of gpu {}", rank))};
}

std::optional<Finding> overwritten_in(const OneSided& plan, const std::vector<OneSidedStep>& steps,
                                      Where& where) {
  for (const OneSidedStep& step : steps) {
    ++where.step;
    for (const Operand& target : step.targets)
      if (target.buffer == Buffer::input)
        return overwrites(where, target.index,
                          target.where == Operand::Where::remote ? target.peer : where.rank);
    if (auto finding = overwritten_in(plan, step.body, where)) return finding;
  }
  return std::nullopt;
}

}  // namespace

std::optional<Finding> overwritten_input(const Program& program) {
  if (program.placement == Placement::in_place) return std::nullopt;
  for (std::size_t rank = 0; rank < program.ranks.size(); ++rank)
    for (std::size_t block = 0; block < program.ranks[rank].blocks.size(); ++block) {
      const std::vector<Step>& steps = program.ranks[rank].blocks[block].steps;
      for (std::size_t i = 0; i < steps.size(); ++i)
        if (writes_target(steps[i].op) && steps[i].target.buffer == Buffer::input)
          return overwrites({static_cast<std::int32_t>(rank), static_cast<std::int32_t>(block),
                             static_cast<std::int32_t>(i)},
                            steps[i].target.index, static_cast<std::int32_t>(rank));
    }
  return std::nullopt;
}

std::optional<Finding> overwritten_input(const OneSided& plan) {
  if (plan.in_place) return std::nullopt;
  for (std::size_t rank = 0; rank < plan.ranks.size(); ++rank)
    for (std::size_t block = 0; block < plan.ranks[rank].blocks.size(); ++block) {
      Where where{static_cast<std::int32_t>(rank), static_cast<std::int32_t>(block), -1};
      if (auto finding = overwritten_in(plan, plan.ranks[rank].blocks[block], where)) return finding;
    }
  return std::nullopt;
}

}  // namespace weft::collective
