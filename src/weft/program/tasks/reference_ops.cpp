#include "weft/program/tasks/reference_ops.h"

#include <algorithm>
#include <string_view>

#include <fmt/format.h>

#include "weft/program/tasks/items.h"

namespace weft::program {

std::vector<ReferenceOps> find_reference_ops(const Program& program) {
  std::vector<ReferenceOps> found;
  for (const Unit& unit : program.units) {
    const auto* call = std::get_if<OperatorCall>(&unit.kernel);
    if (call == nullptr) continue;
    const plan::NodeView node = program.graph->view(call->node);
    const std::string why = why_reference_op(node);
    if (why.empty()) continue;
    const auto same = std::ranges::find_if(
        found, [&](const ReferenceOps& one) { return one.op == node.op().name() && one.why == why; });
    if (same != found.end())
      ++same->count;
    else
      found.push_back({std::string(node.op().name()), why, 1});
  }
  return found;
}

std::string print(std::span<const ReferenceOps> found) {
  std::string text;
  std::vector<std::string_view> told;
  for (const ReferenceOps& first : found) {
    if (std::ranges::find(told, first.why) != told.end()) continue;
    told.push_back(first.why);
    std::string together;
    for (const ReferenceOps& one : found)
      if (one.why == first.why)
        together += fmt::format("{}{}{}", together.empty() ? "" : ", ", one.op,
                                one.count > 1 ? fmt::format(" ×{}", one.count) : "");
    text += fmt::format("{}{} ({})", text.empty() ? "" : "; ", together, first.why);
  }
  return text;
}

}  // namespace weft::program
