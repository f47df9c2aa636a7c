// Random mutations of plans and programs: one step, number or flag at a time, drawn from a seed.
#pragma once
#include <random>
#include <vector>

#include "plan_cases.h"
#include "weft/collectives/chunks/program.h"

namespace weft::plans {

class Mutations {
 public:
  explicit Mutations(std::uint64_t seed) : random_(seed) {}

  std::size_t draw(std::size_t n) { return random_() % n; }

  void mutate(OneSided& plan) {
    auto& rank = plan.ranks[draw(plan.ranks.size())];
    if (draw(16) == 0) return mutate_head(plan);
    auto* steps = &rank.blocks[draw(rank.blocks.size())];
    if (steps->empty()) return;
    std::size_t at = draw(steps->size());
    if ((*steps)[at].verb == Verb::pipeline && draw(8) != 0) {
      steps = &(*steps)[at].body;
      if (steps->empty()) return;
      at = draw(steps->size());
    }
    OneSidedStep& step = (*steps)[at];
    switch (draw(9)) {
      case 0: steps->erase(steps->begin() + static_cast<std::ptrdiff_t>(at)); return;
      case 1:
        if (at + 1 < steps->size()) std::swap(step, (*steps)[at + 1]);
        return;
      case 2: {
        const OneSidedStep again = step;
        steps->insert(steps->begin() + static_cast<std::ptrdiff_t>(draw(steps->size() + 1)), again);
        return;
      }
      case 3:
        if (!step.channels.empty()) step.channels[0] = static_cast<std::int32_t>(draw(3));
        return;
      case 4: return relax(step);
      case 5:
        if (!step.sources.empty()) change(step.sources[draw(step.sources.size())]);
        return;
      case 6:
        if (!step.targets.empty()) change(step.targets[draw(step.targets.size())]);
        return;
      case 7:
        if (step.verb == Verb::pipeline) step.unit_bytes *= 2;
        if (step.parts > 1) step.part = static_cast<std::int32_t>(draw(static_cast<std::size_t>(step.parts)));
        if (step.verb == Verb::barrier) step.barrier = static_cast<std::int32_t>(draw(2));
        return;
      default: steps->insert(steps->begin() + static_cast<std::ptrdiff_t>(at), OneSidedStep{}); return;
    }
  }

  void mutate(collective::Program& program) {
    auto& rank = program.ranks[draw(program.ranks.size())];
    if (rank.blocks.empty()) return;
    auto& block = rank.blocks[draw(rank.blocks.size())];
    if (block.steps.empty()) return;
    const std::size_t at = draw(block.steps.size());
    collective::Step& step = block.steps[at];
    switch (draw(7)) {
      case 0: block.steps.erase(block.steps.begin() + static_cast<std::ptrdiff_t>(at)); return;
      case 1:
        if (at + 1 < block.steps.size()) std::swap(step, block.steps[at + 1]);
        return;
      case 2: step.source.index += draw(2) == 0 ? 1 : -1; return;
      case 3: step.target.index += draw(2) == 0 ? 1 : -1; return;
      case 4: step.op = static_cast<collective::Op>(draw(collective::kOps)); return;
      case 5: step.wait_block = -1; return;
      default:
        if (step.wait_block >= 0 && step.wait_step > 0)
          --step.wait_step;
        else
          step.publishes = !step.publishes;
    }
  }

 private:
  void mutate_head(OneSided& plan) {
    switch (draw(4)) {
      case 0: plan.double_scratch = !plan.double_scratch; return;
      case 1: plan.in_place = !plan.in_place; return;
      case 2: plan.reuse_resources = !plan.reuse_resources; return;
      default:
        for (auto& rank : plan.ranks)
          for (std::int32_t& value : rank.semaphores) value = static_cast<std::int32_t>(draw(2));
    }
  }

  static void relax(OneSidedStep& step) {
    if (step.verb == Verb::signal)
      step.verb = Verb::relaxed_signal;
    else if (step.verb == Verb::relaxed_signal)
      step.verb = Verb::signal;
    else if (step.verb == Verb::wait)
      step.verb = Verb::signal;
    else if (step.verb == Verb::nop)
      step.verb = Verb::nop;
    else if (step.verb == Verb::put_signal)
      step.verb = Verb::put;
  }

  void change(Operand& operand) {
    switch (draw(3)) {
      case 0: operand.index += draw(2) == 0 || operand.index == 0 ? 1 : -1; return;
      case 1: operand.buffer = static_cast<Buffer>(draw(3)); return;
      default: operand.count += 1;
    }
  }

  std::mt19937_64 random_;
};

}  // namespace weft::plans
