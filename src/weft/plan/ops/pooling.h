// weft/plan/ops/pooling.h -- shared by the pools: windows over the last two indices of a value.
#pragma once
#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "weft/base/result.h"
#include "weft/plan/graph/graph.h"

namespace weft::ops {

struct Pooling {
  std::int64_t size = 1, stride = 1;
  std::int64_t padding = 0, padding_w = 0;         // above, left
  std::int64_t planes = 1, height = 1, width = 1;  // of x
  std::int64_t high = 1, wide = 1;                 // of y
  std::vector<plan::Dim> result;                   // dims of y: x's with fewer rows and columns

  double window_points() const { return static_cast<double>(size) * static_cast<double>(size); }
};

// The first three and last three attributes of a pool or its gradient. padding_w is the padding
// left and right, -1 if the same as above and below. high and wide are the number of windows, 0 for
// as many as fit (window.h).
constexpr plan::AttributeSpec kPoolSizeSpec = {"size", plan::AttributeKind::integer};
constexpr plan::AttributeSpec kPoolStrideSpec = {"stride", plan::AttributeKind::integer};
constexpr plan::AttributeSpec kPoolPaddingSpec = {"padding", plan::AttributeKind::integer, false};
constexpr plan::AttributeSpec kPoolPaddingWSpec = {"padding_w", plan::AttributeKind::integer, false, -1};
constexpr plan::AttributeSpec kPoolHighSpec = {"high", plan::AttributeKind::integer, false, 0};
constexpr plan::AttributeSpec kPoolWideSpec = {"wide", plan::AttributeKind::integer, false, 0};

// A pool's attributes with the node's windows; those of its gradient if `type` is valid.
std::vector<plan::AttributeValue> pool_attributes_like(const plan::NodeView& node, plan::TypeId type = {});

// Reads these. Fails if no window fits, or if a window might contain only padding: unless the
// windows are counted, padding is at most half of the window.
Result<Pooling> pooling(const plan::NodeView& node, const plan::Type& x);

// All indices except the last two are parallel.
plan::Signature plane_loops(const plan::NodeView& node);

// Calls visit(offset in y, offsets in x of its window), row by row. Windows are never empty.
template <class Visit>
void visit_windows(const Pooling& pool, Visit visit) {
  std::vector<std::int64_t> window;
  std::int64_t in_y = 0;
  for (std::int64_t plane = 0; plane < pool.planes; ++plane)
    for (std::int64_t p = 0; p < pool.high; ++p)
      for (std::int64_t t = 0; t < pool.wide; ++t) {
        window.clear();
        const std::int64_t top = p * pool.stride - pool.padding, left = t * pool.stride - pool.padding_w;
        for (std::int64_t h = std::max<std::int64_t>(top, 0); h < std::min(top + pool.size, pool.height); ++h)
          for (std::int64_t w = std::max<std::int64_t>(left, 0); w < std::min(left + pool.size, pool.width);
               ++w)
            window.push_back((plane * pool.height + h) * pool.width + w);
        visit(in_y++, std::span<const std::int64_t>(window));
      }
}

}  // namespace weft::ops
