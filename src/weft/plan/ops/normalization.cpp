#include "weft/plan/ops/normalization.h"

#include <fmt/format.h>

#include "weft/plan/ops/arithmetic.h"
#include "weft/plan/ops/loops.h"

namespace weft::ops {
namespace {

using plan::ValueId;

// rstd * (rest - y * mean(dy * y) - less); `less` is optional
ValueId without_scale(Formula& f, const plan::Type& x, Indices over, ValueId rest, ValueId dy, ValueId y,
                      ValueId rstd, ValueId less = {}) {
  const DimList rows = without(x.dims, over);
  const auto count = static_cast<double>(x.elements() / points_of(rows));
  const ValueId along_y = f(div(), {f.product({dy, y}, rows), f.number(count, y)});
  ValueId scaled = f(sub(), {rest, f(mul(), {y, along_y})});
  if (less.valid()) scaled = f(sub(), {scaled, less});
  return f(mul(), {scaled, rstd});
}

}  // namespace

ValueId scaled_gradient(Formula& f, const plan::Type& x, Indices over, ValueId dy, ValueId y, ValueId rstd) {
  return without_scale(f, x, over, dy, dy, y, f.cast(rstd, x.dtype));
}

ValueId centered_gradient(Formula& f, const plan::Type& x, Indices over, ValueId dy, ValueId y,
                          ValueId rstd) {
  const ValueId centered = f(sub(), {dy, f.reduce("mean", dy, indices_of(without(x.dims, over)))});
  return without_scale(f, x, over, centered, dy, y, f.cast(rstd, x.dtype));
}

ValueId channel_gradient(Formula& f, const plan::Type& x, Indices over, ValueId dy, ValueId y, ValueId rstd) {
  const ValueId mean = f.reduce("mean", dy, indices_of(without(x.dims, over)));
  return without_scale(f, x, over, dy, dy, y, f.cast(rstd, x.dtype), mean);
}

Status only_through_first(const Gradient& g) {
  for (std::size_t k = 1; k < g.node().result_count(); ++k)
    if (g.of_result(k).valid())
      return user_error(fmt::format("{} has no gradient through its result {}", g.node().op().name(), k));
  return {};
}

}  // namespace weft::ops
