// weft/plan/graph/layout.h -- how the ranks of a mesh hold a value.
//
//   mesh node=2, gpu=3     x[b=8,d=4]  "sliced(b) on gpu, partial(sum) on node"
//
//          gpu 0     gpu 1     gpu 2
//   node 0 rows 0-2  rows 3-5  rows 6-7     each rank holds three rows, the last one two;
//   node 1 rows 0-2  rows 3-5  rows 6-7     a row is the sum of what the two nodes hold of it
//
// Types stay global: a value on a mesh has the type it would have on one device. Its layout states
// for each mesh axis what the ranks along it hold:
//
//   replicated    each rank holds the same whole value
//   sliced(b)     each rank holds ceil(size / ranks) of index b, in order: the last ones hold less,
//                 or nothing. sliced(y, 1, 2) adds a border to the block, one element before and
//                 two after, where they exist; windows that slide along y read it (ops/sliding.h)
//   partial(sum)  each rank holds an addend of full size; likewise partial(max), partial(min)
//   varying       each rank holds its own value of the full type: there is no one global value
//
// Where two axes slice one index, the outer axis slices first and the inner one slices its blocks.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "weft/base/result.h"
#include "weft/base/symbols.h"
#include "weft/plan/graph/signature.h"
#include "weft/plan/graph/type.h"

namespace weft::plan {

struct MeshAxis {
  std::string name;
  std::int32_t ranks = 1;

  friend bool operator==(const MeshAxis&, const MeshAxis&) = default;
};

// Ranks are numbered with the last axis fastest: on node=2, gpu=3, rank 4 is node 1, gpu 1.
struct Mesh {
  std::vector<MeshAxis> axes;  // outermost first

  std::int32_t ranks() const;
  int find(std::string_view axis) const;  // -1 when there is none
  std::int32_t coordinate(std::int32_t rank, std::size_t axis) const;
  // The ranks that differ from `rank` along that axis alone, itself included, in order.
  std::vector<std::int32_t> group(std::int32_t rank, std::size_t axis) const;

  friend bool operator==(const Mesh&, const Mesh&) = default;
};

// The maximum number of ranks of a mesh.
constexpr std::int32_t kMostRanks = 1 << 20;

// Fails if an axis has no name, no ranks or a duplicate name, or if there are too many ranks.
Status check(const Mesh& mesh);

std::string print(const Mesh& mesh);  // node=2, gpu=3
Result<Mesh> read_mesh(std::string_view text);

// The layout along one mesh axis.
struct AxisLayout {
  enum class Kind : std::uint8_t { replicated, sliced, partial, varying };

  Kind kind = Kind::replicated;
  std::uint16_t before = 0;      // if sliced: the border before the block
  Symbol index;                  // if sliced
  Monoid monoid = Monoid::none;  // if partial
  std::uint16_t after = 0;       // if sliced: the border after the block

  static AxisLayout replicated() { return {}; }
  static AxisLayout sliced(Symbol index, std::uint16_t before = 0, std::uint16_t after = 0) {
    return {Kind::sliced, before, index, Monoid::none, after};
  }
  static AxisLayout partial(Monoid monoid) { return {Kind::partial, 0, {}, monoid, 0}; }
  static AxisLayout varying() { return {Kind::varying, 0, {}, Monoid::none, 0}; }

  bool is_replicated() const { return kind == Kind::replicated; }
  bool is_sliced() const { return kind == Kind::sliced; }
  bool slices(Symbol of) const { return is_sliced() && index == of; }  // with borders or without
  bool has_borders() const { return before > 0 || after > 0; }
  bool is_partial() const { return kind == Kind::partial; }
  bool is_varying() const { return kind == Kind::varying; }

  friend bool operator==(const AxisLayout&, const AxisLayout&) = default;
};

struct Layout {
  std::vector<AxisLayout> axes;  // one per mesh axis, in the mesh's order

  static Layout replicated(const Mesh& mesh) { return {std::vector<AxisLayout>(mesh.axes.size())}; }

  friend bool operator==(const Layout&, const Layout&) = default;
};

std::string print(const AxisLayout& layout, const Symbols& symbols);  // sliced(b)
// "sliced(b) on gpu, partial(sum) on node". Replicated axes are left out; if all are, "replicated".
std::string print(const Layout& layout, const Mesh& mesh, const Symbols& symbols);

// sum, max or min; Monoid::none for any other word.
Monoid find_monoid(std::string_view word);

// The layout of a value of `type`. Fails if check_layout does, or if the mesh lacks an axis.
Result<Layout> read_layout(std::string_view text, const Mesh& mesh, const Type& type, const Symbols& symbols);
// Checks a layout without a mesh. Fails if the text is malformed, slices an index that the type
// lacks, names an axis twice, or mixes two monoids (a sum of maxima is not a maximum of sums).
Status check_layout(std::string_view text, const Type& type, const Symbols& symbols);

// A block of an index: [begin, begin + size).
struct Share {
  std::int64_t begin = 0, size = 0;

  std::int64_t end() const { return begin + size; }

  friend bool operator==(const Share&, const Share&) = default;
};

// The widest border that a layout can state.
constexpr std::int64_t kMaxBorder = 0xffff;

// Block number `part` of `size` cut into `parts`: ceil(size / parts) elements each, the last ones
// fewer or none.
Share share_of(std::int64_t size, std::int32_t parts, std::int32_t part);

// A block with its borders, clipped to the index. It may be nonempty where the block is empty.
Share with_borders(Share block, std::int64_t before, std::int64_t after, std::int64_t size);

// The intersection; empty if they are disjoint.
Share overlap(Share a, Share b);

// The block that `rank` holds, with its borders: one share per dim of the type.
std::vector<Share> shares_of(const Type& type, const Layout& layout, const Mesh& mesh, std::int32_t rank);

}  // namespace weft::plan
