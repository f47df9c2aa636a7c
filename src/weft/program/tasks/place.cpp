#include "weft/program/tasks/place.h"

#include <algorithm>

#include "weft/plan/ops/operators.h"

namespace weft::program {

const Axis* Place::find(Symbol index) const {
  for (const Axis& axis : axes)
    if (axis.index == index) return &axis;
  return nullptr;
}

std::int64_t Place::stride(Symbol index) const {
  const Axis* axis = find(index);
  return axis != nullptr ? axis->stride : 0;
}

std::int64_t Place::elements() const {
  std::int64_t count = 1;
  for (const Axis& axis : axes) count *= axis.size;
  return count;
}

Extent extent(const Place& place) {
  std::int64_t last = 0;
  for (const Axis& axis : place.axes) last += (axis.size - 1) * axis.stride;
  const std::int64_t width = plan::size_in_bytes(place.dtype);
  return {place.buffer, place.offset * width, (place.offset + last + 1) * width};
}

Place place_in_order(BufferId buffer, const plan::Type& type, std::span<const Symbol> order) {
  WEFT_CHECK(order.size() == type.rank());
  Place place{buffer, 0, type.dtype, {}};
  for (const plan::Dim& dim : type.dims) place.axes.push_back({dim.index, dim.size, 0});
  std::int64_t stride = 1;
  for (std::size_t i = order.size(); i-- > 0;) {
    const int at = type.position(order[i]);
    WEFT_CHECK(at >= 0);
    place.axes[static_cast<std::size_t>(at)].stride = stride;
    stride *= type.dims[static_cast<std::size_t>(at)].size;
  }
  return place;
}

Place plain_place(BufferId buffer, const plan::Type& type) {
  Order order;
  for (const plan::Dim& dim : type.dims) order.push_back(dim.index);
  return place_in_order(buffer, type, order);
}

bool is_plain(const Place& place) {
  std::int64_t stride = 1;
  for (std::size_t i = place.axes.size(); i-- > 0;) {
    const Axis& axis = place.axes[i];
    if (axis.size != 1 && axis.stride != stride) return false;
    stride *= axis.size;
  }
  return true;
}

Order order_with_first(const plan::Type& type, std::span<const Symbol> first) {
  Order order;
  for (const Symbol index : first)
    if (type.has(index)) order.push_back(index);
  for (const plan::Dim& dim : type.dims)
    if (std::ranges::find(first, dim.index) == first.end()) order.push_back(dim.index);
  return order;
}

bool is_in_order(const Place& place, std::span<const Symbol> order) {
  std::int64_t stride = 1;
  for (std::size_t i = order.size(); i-- > 0;) {
    const Axis* axis = place.find(order[i]);
    WEFT_CHECK(axis != nullptr);
    if (axis->size != 1 && axis->stride != stride) return false;
    stride *= axis->size;
  }
  return true;
}

std::optional<std::int64_t> step_along(const Place& place, std::span<const plan::Dim> row) {
  std::int64_t size = 1, step = 0;
  bool any = false, all = true;
  for (std::size_t i = row.size(); i-- > 0;) {
    if (row[i].size == 1) continue;
    const std::int64_t stride = place.stride(row[i].index);
    if (stride == 0) {
      all = false;
      continue;
    }
    if (!any) {
      // The value would repeat below an index that it lacks.
      if (!all) return std::nullopt;
      step = stride;
    } else if (!all || stride != size * step) {
      return std::nullopt;
    }
    any = true;
    size *= row[i].size;
  }
  if (any && !all) return std::nullopt;
  return step;
}

bool has_rows(const Place& place, std::span<const plan::Dim> row) {
  for (const Axis& axis : place.axes)
    if (axis.size > 1 && axis.stride == 0) return false;
  const bool is_one = std::ranges::all_of(row, [](const plan::Dim& dim) { return dim.size == 1; });
  return is_one || step_along(place, row) == 1;
}

std::vector<Axis> axes_of(const Place& place, const plan::Type& type, Symbol index) {
  if (const Axis* own = place.find(index)) return {*own};
  std::vector<Axis> parts;
  for (const Axis& axis : place.axes)
    if (!type.has(axis.index)) parts.push_back(axis);
  return parts;
}

bool is_placed_view(const plan::Operator& op) {
  return op.is_view() || &op == &ops::transpose() || &op == &ops::slice() || &op == &ops::broadcast();
}

std::optional<Place> view_place(const plan::NodeView& node, const Place& of) {
  const plan::Type type = node.result_type(0);
  Place place{of.buffer, of.offset, of.dtype, {}};
  if (&node.op() == &ops::rename()) {
    for (std::size_t i = 0; i < type.rank(); ++i)
      place.axes.push_back({type.dims[i].index, type.dims[i].size, of.axes[i].stride});
    return place;
  }
  if (&node.op() == &ops::slice()) {
    place.axes = of.axes;
    for (std::size_t i = 0; i < type.rank(); ++i) {
      place.axes[i].size = type.dims[i].size;
      if (type.dims[i].index == node.symbol(0)) place.offset += node.integer(1) * of.axes[i].stride;
    }
    return place;
  }
  if (&node.op() == &ops::split() || &node.op() == &ops::merge()) {
    const bool splits = &node.op() == &ops::split();
    const Symbol first = splits ? node.symbol(0) : node.indices(0)[0];
    const std::size_t parts = splits ? node.type(1).rank() : node.indices(0).size();
    const auto at = static_cast<std::size_t>(node.input_type(0).position(first));
    for (std::size_t i = 0; i < at; ++i) place.axes.push_back(of.axes[i]);
    if (splits) {
      std::int64_t stride = of.axes[at].stride;
      InlineVector<Axis, 6> inner;
      for (std::size_t i = parts; i-- > 0;) {
        const plan::Dim dim = node.type(1).dims[i];
        inner.push_back({dim.index, dim.size, stride});
        stride *= dim.size;
      }
      for (std::size_t i = inner.size(); i-- > 0;) place.axes.push_back(inner[i]);
    } else {
      // Evenly spaced: the stride of each part is the span of the next.
      std::int64_t size = 1, stride = 0;
      for (std::size_t i = parts; i-- > 0;) {
        const Axis& axis = of.axes[at + i];
        if (axis.size == 1) continue;
        if (size == 1)
          stride = axis.stride;
        else if (axis.stride != size * stride)
          return std::nullopt;
        size *= axis.size;
      }
      place.axes.push_back({node.symbol(1), size, size == 1 ? 1 : stride});
    }
    const std::size_t taken = splits ? 1 : parts;
    for (std::size_t i = at + taken; i < of.axes.size(); ++i) place.axes.push_back(of.axes[i]);
    return place;
  }
  // transpose and broadcast: the same axes by name, with repeated ones added.
  for (const plan::Dim& dim : type.dims) place.axes.push_back({dim.index, dim.size, of.stride(dim.index)});
  return place;
}

}  // namespace weft::program
