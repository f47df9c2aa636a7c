#include "weft/plan/ops/operator.h"

#include <fmt/format.h>

namespace weft::ops {

Status Operator::gradient(Gradient& g) const {
  return user_error(fmt::format("{} has no gradient", g.node().op().name()));
}

}  // namespace weft::ops
