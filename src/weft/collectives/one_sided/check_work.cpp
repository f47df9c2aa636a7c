#include "weft/collectives/one_sided/check_work.h"

#include <algorithm>

#include <fmt/format.h>

#include "weft/collectives/one_sided/one_sided_memory.h"

namespace weft::collective {
namespace {

constexpr std::int64_t kMostWork = std::int64_t{1} << 50;  // counts saturate here

Status expect_work(std::int64_t found, std::int64_t most, std::int64_t effort, std::string_view what) {
  if (found <= most * effort) return {};
  return user_error(fmt::format("expected at most {} {} at effort {}, found {}", most * effort, what, effort,
                                found >= kMostWork ? "more" : std::to_string(found)),
                    fmt::format("weft collective check --effort {} asks for more time and memory",
                                (found + most - 1) / most));
}

class PlanWork {
 public:
  explicit PlanWork(const OneSided& plan) : plan_(plan), parts_(std::max(1, parts_of_chunk(plan, 1 << 12))) {}

  std::int64_t accesses() {
    for (const OneSidedRank& rank : plan_.ranks)
      for (const auto& block : rank.blocks) add(rank, block, 1);
    // Factors: the runs and, with pipelines, the slices that a step outside of them touches.
    return std::min(kMostWork, total_ * (plan_.double_scratch ? 3 : 2) * (pipelines_ ? 3 : 1));
  }

  std::int64_t chunks() const {
    std::int64_t all = 0;
    for (const OneSidedRank& rank : plan_.ranks)
      all += std::int64_t{rank.input_chunks} + rank.output_chunks + rank.scratch_chunks;
    return std::min(kMostWork, all * parts_);
  }

 private:
  void add(const OneSidedRank& rank, const std::vector<OneSidedStep>& steps, std::int64_t times) {
    for (const OneSidedStep& step : steps) {
      std::int64_t cells = 1 + static_cast<std::int64_t>(step.channels.size() + step.semaphores.size());
      for (const auto* operands : {&step.sources, &step.targets})
        for (const Operand& operand : *operands) {
          const bool all = operand.where == Operand::Where::switched && operand.peer >= 0 &&
                           operand.peer < static_cast<std::int32_t>(rank.switches.size());
          const std::size_t ranks =
              all ? rank.switches[static_cast<std::size_t>(operand.peer)].ranks.size() : 1;
          cells += std::int64_t{std::max(operand.count, 0)} * parts_ / std::max(step.parts, 1) *
                   static_cast<std::int64_t>(ranks);
        }
      total_ = std::min(kMostWork, total_ + cells * times);
      if (step.verb != Verb::pipeline) continue;
      pipelines_ = true;
      add(rank, step.body, times);
    }
  }

  const OneSided& plan_;
  const std::int64_t parts_;
  std::int64_t total_ = 0;
  bool pipelines_ = false;
};

}  // namespace

Status check_work(const Program& program, std::int64_t effort) {
  const CheckLimits limits;
  std::int64_t actions = 0, chunks = std::int64_t{program.collective.chunks};
  for (const RankProgram& rank : program.ranks) {
    chunks += std::int64_t{std::max(rank.input_chunks, 0)} + std::max(rank.output_chunks, 0) +
              std::max(rank.scratch_chunks, 0);
    for (const Threadblock& block : rank.blocks)
      for (const Step& step : block.steps) actions += step.op == Op::nop ? 1 : std::max(step.count, 1);
  }
  WEFT_TRY_STATUS(expect_work(actions, limits.actions, effort, "steps times chunks"));
  return expect_work(chunks, limits.chunks, effort, "chunks of memory");
}

Status check_work(const OneSided& plan, std::int64_t effort) {
  const CheckLimits limits;
  PlanWork work(plan);
  WEFT_TRY_STATUS(expect_work(work.accesses(), limits.accesses, effort, "accesses to chunks"));
  return expect_work(work.chunks(), limits.chunks, effort, "chunks of memory");
}

TraceLimits trace_limits(std::int64_t effort) {
  TraceLimits limits;
  const TraceLimits all = limits;
  const auto times = [&](std::int64_t one, std::int64_t most) {
    return effort < most / one ? one * effort : most;
  };
  limits.work = std::min(kMostWork, (std::int64_t{1} << 27) * effort);
  limits.moves = times(std::int64_t{1} << 19, all.moves);
  limits.moved_chunks = times(std::int64_t{1} << 19, all.moved_chunks);
  limits.memory_chunks = times(std::int64_t{1} << 21, all.memory_chunks);
  return limits;
}

}  // namespace weft::collective
