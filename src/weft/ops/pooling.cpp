#include "weft/ops/pooling.h"

#include <array>

#include <fmt/format.h>

#include "weft/ops/loops.h"
#include "weft/ops/window.h"

namespace weft::ops {

Result<Pooling> pooling(const plan::NodeView& node, const plan::Type& x) {
  if (x.rank() < 2)
    return user_error(fmt::format("a pool runs over the last two indices, found {}",
                                  print_indices(x.dims, node.graph().symbols())));
  const plan::Dim rows = x.dims[x.rank() - 2], columns = x.dims[x.rank() - 1];
  Pooling pool;
  pool.size = node.integer(0);
  pool.stride = node.integer(1);
  pool.padding = node.integer(2);
  WEFT_TRY_STATUS(expect_between("size", pool.size, 1, kLargestStep));
  WEFT_TRY_STATUS(expect_between("padding", pool.padding, 0, pool.size / 2));
  WEFT_TRY(high, windows_along(node, rows, pool.size, pool.stride, pool.padding));
  WEFT_TRY(wide, windows_along(node, columns, pool.size, pool.stride, pool.padding));
  pool.planes = points_of(x.dims.first(x.rank() - 2));
  pool.height = rows.size;
  pool.width = columns.size;
  pool.high = high;
  pool.wide = wide;
  pool.result.assign(x.dims.begin(), x.dims.end() - 2);
  pool.result.push_back({rows.index, high});
  pool.result.push_back({columns.index, wide});
  return pool;
}

plan::Signature plane_loops(const plan::NodeView& node) {
  const std::span<const plan::Dim> dims = node.result_type(0).dims;
  const std::array<Symbol, 2> whole = {dims[dims.size() - 2].index, dims[dims.size() - 1].index};
  return parallel_loops_except(node, whole);
}

}  // namespace weft::ops
