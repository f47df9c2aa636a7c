#include "weft/parallel/distribute/stage_uses.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "weft/base/nearest.h"

namespace weft::distribute {
namespace {

Result<std::vector<IndexList>> index_lists(const plan::Graph& graph, const std::vector<AxisUse>& axes) {
  std::vector<bool> used(graph.symbols().size());
  for (std::size_t v = 0; v < graph.value_count(); ++v)
    for (const plan::Dim& dim : graph.type(plan::ValueId(v)).dims) used[dim.index.value] = true;
  std::vector<IndexList> lists;
  for (const AxisUse& use : axes) {
    IndexList& list = lists.emplace_back();
    for (const std::string& name : use.slice) {
      const Symbol index = graph.symbols().find(name);
      if (index.valid() && used[index.value]) {
        list.push_back(index);
        continue;
      }
      std::vector<std::string_view> names;
      for (std::size_t s = 0; s < used.size(); ++s)
        if (used[s]) names.push_back(graph.text(Symbol(s)));
      std::string hint = did_you_mean(name, names);
      constexpr std::size_t kMost = 20;
      if (hint.empty() && names.size() <= kMost) hint = fmt::format("it has {}", fmt::join(names, ", "));
      return user_error(fmt::format("no tensor of the plan has an index {}", name), std::move(hint));
    }
  }
  return lists;
}

std::vector<std::size_t> numbers_of(std::span<const std::int32_t> stages,
                                    const std::vector<std::size_t>& of_stage) {
  std::vector<std::size_t> numbers;
  for (const std::int32_t stage : stages)
    numbers.push_back(of_stage[std::min(static_cast<std::size_t>(stage), of_stage.size() - 1)]);
  return numbers;
}

}  // namespace

Result<StageUses> StageUses::of(const plan::Graph& graph, const Distribution& distribution,
                                std::span<const std::int32_t> stages) {
  StageUses made;
  std::int32_t others = 0;  // the first stage without an override
  for (const AxisUse& use : distribution.axes)
    for (const StageUse& own : use.in_stages) others = std::max(others, own.last + 1);
  for (std::int32_t stage = 0; stage <= others; ++stage) {
    const std::vector<AxisUse> axes = as_in_stage(distribution, stage).axes;
    const auto known = std::ranges::find(made.axes_, axes);
    made.of_stage_.push_back(static_cast<std::size_t>(known - made.axes_.begin()));
    if (known != made.axes_.end()) continue;
    made.axes_.push_back(axes);
    WEFT_TRY(lists, index_lists(graph, axes));
    made.lists_.push_back(std::move(lists));
  }
  made.numbers_ = numbers_of(stages, made.of_stage_);
  return made;
}

StageUses StageUses::with(std::span<const std::int32_t> stages) const {
  StageUses made = *this;
  made.numbers_ = numbers_of(stages, of_stage_);
  return made;
}

bool StageUses::has_choices() const {
  return std::ranges::any_of(lists_, [](const std::vector<IndexList>& lists) {
    return std::ranges::any_of(lists, [](const IndexList& list) { return list.size() > 1; });
  });
}

}  // namespace weft::distribute
