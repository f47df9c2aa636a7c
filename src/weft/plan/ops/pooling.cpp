#include "weft/plan/ops/pooling.h"

#include <array>

#include <fmt/format.h>

#include "weft/plan/ops/loops.h"
#include "weft/plan/ops/window.h"

namespace weft::ops {

Result<Pooling> pooling(const plan::NodeView& node, const plan::Type& x) {
  if (x.rank() < 2)
    return user_error(fmt::format("a pool runs over the last two indices, found {}",
                                  print_indices(x.dims, node.graph().symbols())));
  const plan::Dim rows = x.dims[x.rank() - 2], columns = x.dims[x.rank() - 1];
  Pooling pool;
  const std::size_t attributes = node.op().attributes().size();
  const std::int64_t counted_high = node.integer(attributes - 2), counted_wide = node.integer(attributes - 1);
  const auto most_padding = [&](std::int64_t counted) { return counted > 0 ? pool.size - 1 : pool.size / 2; };
  pool.size = node.integer(0);
  pool.stride = node.integer(1);
  pool.padding = node.integer(2);
  pool.padding_w = node.integer(attributes - 3) < 0 ? pool.padding : node.integer(attributes - 3);
  WEFT_TRY_STATUS(expect_between("size", pool.size, 1, kLargestStep));
  WEFT_TRY_STATUS(expect_between("padding_w", node.integer(attributes - 3), -1, kLargestStep));
  WEFT_TRY_STATUS(expect_between("padding", pool.padding, 0, most_padding(counted_high)));
  WEFT_TRY_STATUS(expect_between("padding_w", pool.padding_w, 0, most_padding(counted_wide)));
  WEFT_TRY(high, windows_along(node, rows, pool.size, pool.stride, pool.padding, counted_high));
  WEFT_TRY(wide, windows_along(node, columns, pool.size, pool.stride, pool.padding_w, counted_wide));
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

std::vector<plan::AttributeValue> pool_attributes_like(const plan::NodeView& node, plan::TypeId type) {
  std::vector<plan::AttributeValue> attributes = {node.integer(0), node.integer(1), node.integer(2)};
  if (type.valid()) attributes.emplace_back(type);
  for (std::size_t k = node.op().attributes().size() - 3; k < node.op().attributes().size(); ++k)
    attributes.emplace_back(node.integer(k));
  return attributes;
}

plan::Signature plane_loops(const plan::NodeView& node) {
  const std::span<const plan::Dim> dims = node.result_type(0).dims;
  const std::array<Symbol, 2> whole = {dims[dims.size() - 2].index, dims[dims.size() - 1].index};
  return parallel_loops_except(node, whole);
}

}  // namespace weft::ops
