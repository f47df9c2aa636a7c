#include "weft/collectives/compile/instructions.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

namespace weft::collective {
namespace {

std::string print(Slot slot, std::int32_t count) {
  if (count == 1) return fmt::format("{}[{}]", name(slot.buffer), slot.index);
  return fmt::format("{}[{}..{}]", name(slot.buffer), slot.index, slot.index + count - 1);
}

std::string print(const Instructions& instructions, std::int32_t number) {
  const Instruction& it = instructions.list[number];
  const auto rank_of = [&](std::int32_t other) { return instructions.list[other].rank; };
  std::string text = fmt::format("{:4}  {} {}", number, name(it.op), print(it.source, it.count));
  if (it.source != it.target) text += fmt::format(" -> {}", print(it.target, it.count));
  if (it.giver >= 0) text += fmt::format(" from {} ({})", rank_of(it.giver), it.giver);
  if (it.taker >= 0) text += fmt::format(" to {} ({})", rank_of(it.taker), it.taker);
  if (it.channel >= 0) text += fmt::format(" on {}", it.channel);
  std::string_view separator = " after ";
  for (const std::int32_t other : instructions.dependences(number)) {
    text += fmt::format("{}{}", separator, other);
    separator = ", ";
  }
  return text += '\n';
}

std::string print(const InstructionBlock& block, std::size_t number) {
  std::string text = fmt::format("  block {}:", number);
  if (block.send_to >= 0) text += fmt::format(" send to {},", block.send_to);
  if (block.receive_from >= 0) text += fmt::format(" receive from {},", block.receive_from);
  return text += fmt::format(" channel {}\n", block.channel);
}

}  // namespace

Successors successors(const Instructions& instructions) {
  Successors result;
  result.first.assign(static_cast<std::size_t>(instructions.size()) + 1, 0);
  for (const std::int32_t other : instructions.after) ++result.first[other + 1];
  for (std::size_t i = 1; i < result.first.size(); ++i) result.first[i] += result.first[i - 1];
  result.list.resize(instructions.after.size());
  std::vector<std::int64_t> next(result.first.begin(), result.first.end() - 1);
  for (std::int32_t i = 0; i < instructions.size(); ++i)
    for (const std::int32_t other : instructions.dependences(i))
      result.list[static_cast<std::size_t>(next[other]++)] = i;
  return result;
}

bool fused(Op op) { return receives(op) && sends(op); }

std::string print(const Instructions& instructions) {
  // The instructions of each rank, or of each of its blocks, in list order.
  const std::int32_t ranks = instructions.collective.ranks;
  const bool assigned = !instructions.blocks.empty();
  std::vector<std::vector<std::int32_t>> groups(assigned ? instructions.blocks.size()
                                                         : static_cast<std::size_t>(ranks));
  for (std::int32_t i = 0; i < instructions.size(); ++i)
    groups[assigned ? instructions.list[i].block : instructions.list[i].rank].push_back(i);
  std::string text;
  std::size_t group = 0;
  for (std::int32_t rank = 0; rank < ranks; ++rank) {
    text += fmt::format("rank {}\n", rank);
    const std::size_t first = group;
    const auto of_rank = [&] {
      return assigned ? group < groups.size() && instructions.blocks[group].rank == rank
                      : group == static_cast<std::size_t>(rank);
    };
    for (; of_rank(); ++group) {
      if (assigned) text += print(instructions.blocks[group], group - first);
      for (const std::int32_t i : groups[group]) {
        if (assigned) text += "  ";
        text += print(instructions, i);
      }
    }
  }
  return text;
}

}  // namespace weft::collective
