// weft/program/tasks/place.h -- the storage of a value: buffer, offset and strides.
//
//   q[b=8,h=6,s=256,e=64]  in buffer 12 from element 0:   b every 98304, h every 64, s every 384, e every 1
//
// A plan's type states the indices of a value; a place states their order in memory. Here q is
// stored as [b, s, h, e], the order in which one large matrix product writes it. Renaming,
// reordering or slicing a value makes another place of the same buffer and moves nothing.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "weft/base/ids.h"
#include "weft/base/inline_vector.h"
#include "weft/plan/graph/graph.h"

namespace weft::program {

struct BufferTag;
using BufferId = Id<BufferTag>;

struct Axis {
  Symbol index;
  std::int64_t size = 0;
  std::int64_t stride = 0;  // in elements; 0: repeated

  friend bool operator==(const Axis&, const Axis&) = default;
};

struct Place {
  BufferId buffer;
  std::int64_t offset = 0;  // of the first element, in elements
  plan::DType dtype = plan::DType::f32;
  InlineVector<Axis, 6> axes;  // in the order of the value's type

  const Axis* find(Symbol index) const;
  std::int64_t stride(Symbol index) const;  // 0 if it does not have the index
  std::int64_t elements() const;
};

// A byte range of a buffer that contains everything that a task reads or writes.
struct Extent {
  BufferId buffer;
  std::int64_t begin = 0, end = 0;

  bool overlaps(const Extent& other) const {
    return buffer == other.buffer && begin < other.end && other.begin < end;
  }
  friend bool operator==(const Extent&, const Extent&) = default;
};

// The extent of a whole place.
Extent extent(const Place& place);

// The indices of a value from slowest to fastest in memory.
using Order = std::vector<Symbol>;

// A dense place whose indices run in `order`, which names each index of `type` once.
Place place_in_order(BufferId buffer, const plan::Type& type, std::span<const Symbol> order);
// The same in the type's own order.
Place plain_place(BufferId buffer, const plan::Type& type);
// Whether the place is dense in its type's own order, as most kernels require.
bool is_plain(const Place& place);

// The type's own order with these indices first, as used for collectives that join or split along
// them.
Order order_with_first(const plan::Type& type, std::span<const Symbol> first);
// Whether the place is dense and its indices run in `order`, at any offset.
bool is_in_order(const Place& place, std::span<const Symbol> order);

// The stride along these indices, the last one fastest: 0 if the place has none of them, empty if
// steps are uneven.
std::optional<std::int64_t> step_along(const Place& place, std::span<const plan::Dim> row);

// Whether these indices, the last one fastest, are fastest in the place and dense, and no other
// index of size above one is repeated.
bool has_rows(const Place& place, std::span<const plan::Dim> row);

// The axes of an index of the type at the place: its own axis, or the axes stored in its place,
// slowest first. The latter occurs on accelerators for the row index of a table that its producer
// or readers see as [x, c].
std::vector<Axis> axes_of(const Place& place, const plan::Type& type, Symbol index);

// The place of a view's result: renamed, reordered, split, merged, sliced or repeated. Empty if a
// merge would need unevenly spaced elements.
std::optional<Place> view_place(const plan::NodeView& node, const Place& of);
// Whether view_place() supports the operator.
bool is_placed_view(const plan::Operator& op);

}  // namespace weft::program
