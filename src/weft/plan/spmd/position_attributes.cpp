#include "weft/plan/spmd/position_attributes.h"

#include <algorithm>

namespace weft::spmd {

PositionAttributes find_position_attributes(const plan::Operator& op) {
  const auto find = [&](std::string_view name) {
    const auto found = std::ranges::find(op.attributes(), name, &plan::AttributeSpec::name);
    return found == op.attributes().end() ? -1 : static_cast<int>(found - op.attributes().begin());
  };
  return {find("begin"), find("size"), find("whole")};
}

}  // namespace weft::spmd
