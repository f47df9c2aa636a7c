#include "weft/distribute/choices.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>

#include <fmt/format.h>

#include "weft/ops/operators.h"

namespace weft::distribute {
namespace {

// Of an even choice one draw in two shows either side: after so many one is left unseen once in a million.
constexpr int kMostDrawsOfEven = 20, kMostDrawsOfFlags = 8;

}  // namespace

Result<Choices> Choices::of(const plan::Graph& graph) {
  Choices made;
  made.asked_ = graph.clone();
  plan::Graph& asked = made.asked_;
  std::map<std::uint32_t, bool> flags;  // by value: whether it is even
  for (std::size_t n = 0; n < graph.node_count(); ++n) {
    const plan::NodeView node = graph.view(plan::NodeId(n));
    if (&node.op() == &ops::select() && node.input_type(0).rank() == 0 && node.result_type(0).rank() > 0)
      flags.emplace(node.input(0).value, false);
    const bool is_either = &node.op() == &ops::maximum() || &node.op() == &ops::minimum();
    if (!is_either || node.result_type(0).rank() > 0) continue;
    const std::array<plan::ValueId, 2> both = {node.result(0), node.input(0)};
    WEFT_TRY(is_first, asked.add_value(ops::equal(), both, {}));
    flags.emplace(is_first.value, true);
  }
  for (const auto& [flag, is_even] : flags) {
    asked.add_output(asked.symbol(fmt::format("choice {}", flag)), plan::ValueId(flag));
    made.choices_.push_back({.is_even = is_even});
  }
  return made;
}

void Choices::see(const std::vector<ops::Tensor<ops::Field>>& outputs) {
  const std::size_t first = outputs.size() - choices_.size();
  for (std::size_t c = 0; c < choices_.size(); ++c) {
    const bool holds = outputs[first + c].data.front() != ops::Field();
    (holds ? choices_[c].held : choices_[c].failed) = true;
  }
  ++draws_;
}

bool Choices::all_seen() const {
  return std::ranges::all_of(choices_, [&](const Choice& choice) {
    return (choice.held && choice.failed) ||
           draws_ >= (choice.is_even ? kMostDrawsOfEven : kMostDrawsOfFlags);
  });
}

}  // namespace weft::distribute
