// weft/program/tasks/place.h -- where a value lies in memory, and how one walks it.
//
//   q[b=8,h=6,s=256,e=64]  in buffer 12 from element 0:   b every 98304, h every 64, s every 384, e every 1
//
// A plan's type says which indices a value has; a place says in what order they run in memory. Here
// q lies as [b, s, h, e], the order in which one large matrix product writes it. Renaming, reordering
// or cutting a value makes another place of the same buffer and moves nothing.
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
  std::int64_t stride(Symbol index) const;  // 0 where it lacks the index
  std::int64_t elements() const;
};

// A stretch of a buffer, in bytes: what a task reads or writes, at most.
struct Extent {
  BufferId buffer;
  std::int64_t begin = 0, end = 0;

  bool overlaps(const Extent& other) const {
    return buffer == other.buffer && begin < other.end && other.begin < end;
  }
  friend bool operator==(const Extent&, const Extent&) = default;
};

// All of a place.
Extent extent(const Place& place);

// The indices of a value from the slowest to the fastest in memory.
using Order = std::vector<Symbol>;

// A place without gaps whose indices run in `order`, which names each index of `type` once.
Place place_in_order(BufferId buffer, const plan::Type& type, std::span<const Symbol> order);
// The same in the type's own order.
Place plain_place(BufferId buffer, const plan::Type& type);
// True when the place is without gaps in its type's own order: what most kernels ask for.
bool is_plain(const Place& place);

// The type's own order with these first: how ranks lay out what they join or part.
Order order_with_first(const plan::Type& type, std::span<const Symbol> first);
// True when the place is without gaps and its indices run in `order`, wherever it begins.
bool lies_in(const Place& place, std::span<const Symbol> order);

// How far a step along these indices, the last one fastest, moves in the place: 0 when it has none of
// them, and nothing when the steps are uneven.
std::optional<std::int64_t> step_along(const Place& place, std::span<const plan::Dim> row);

// True when these indices, the last one fastest, run fastest in the place and without gaps, and no other index of
// more than one step repeats what lies there.
bool has_rows(const Place& place, std::span<const plan::Dim> row);

// The axes that an index of the type is at the place: itself; or, where it lies apart, those that stand there instead of
// it, the slowest first. So lies a table's index on accelerators that is seen as [x, c] by whoever makes or reads it.
std::vector<Axis> axes_of(const Place& place, const plan::Type& type, Symbol index);

// The place of a view's result: renamed, reordered, split, merged, cut or repeated. Nothing when a
// merge would need elements that are not evenly spaced.
std::optional<Place> view_place(const plan::NodeView& node, const Place& of);
// True for the operators that view_place() knows.
bool is_placed_view(const plan::Operator& op);

}  // namespace weft::program
