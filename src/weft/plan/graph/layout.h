// weft/plan/graph/layout.h -- where the ranks of a mesh hold a value.
//
//   mesh node=2, gpu=3     x[b=8,d=4]  "sliced(b) on gpu, partial(sum) on node"
//
//          gpu 0     gpu 1     gpu 2
//   node 0 rows 0-2  rows 3-5  rows 6-7     each rank holds three rows, the last one two;
//   node 1 rows 0-2  rows 3-5  rows 6-7     what the two nodes hold of a row sums up to it
//
// Types stay global: a value on a mesh has the type it would have on one device. Beside it stands a
// layout, which says for each mesh axis what the ranks along it hold:
//
//   replicated    all of the value, each the same
//   sliced(b)     ceil(size / ranks) of index b each, in order: the last ones hold less, or nothing
//                 sliced(y, 1, 2): and around its block one element before and two after, where there are
//                 any, as windows that slide along y see them (ops/sliding.h)
//   partial(sum)  an addend each, of the value's full size; or partial(max), partial(min)
//   varying       a value of its own each, of the full type: no one global value
//
// Where two axes slice one index, the outer axis cuts first and the inner one cuts its blocks.
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

// Ranks are numbered with the last axis fastest: on node=2, gpu=3 rank 4 is node 1, gpu 1.
struct Mesh {
  std::vector<MeshAxis> axes;  // outermost first

  std::int32_t ranks() const;
  int find(std::string_view axis) const;  // -1 when there is none
  std::int32_t coordinate(std::int32_t rank, std::size_t axis) const;
  // The ranks that differ from `rank` along that axis alone, itself included, in order.
  std::vector<std::int32_t> group(std::int32_t rank, std::size_t axis) const;

  friend bool operator==(const Mesh&, const Mesh&) = default;
};

// The most ranks a mesh may have.
constexpr std::int32_t kMostRanks = 1 << 20;

// Fails when an axis has no name, no ranks or another's name, or the ranks are too many.
Status check(const Mesh& mesh);

std::string print(const Mesh& mesh);  // node=2, gpu=3
Result<Mesh> read_mesh(std::string_view text);

// What the ranks along one mesh axis hold.
struct AxisLayout {
  enum class Kind : std::uint8_t { replicated, sliced, partial, varying };

  Kind kind = Kind::replicated;
  std::uint16_t before = 0;      // of sliced: the border before the block
  Symbol index;                  // of sliced
  Monoid monoid = Monoid::none;  // of partial
  std::uint16_t after = 0;       // of sliced: the border after the block

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
  std::vector<AxisLayout> axes;  // one for each axis of the mesh, in its order

  static Layout replicated(const Mesh& mesh) { return {std::vector<AxisLayout>(mesh.axes.size())}; }

  friend bool operator==(const Layout&, const Layout&) = default;
};

std::string print(const AxisLayout& layout, const Symbols& symbols);  // sliced(b)
// "sliced(b) on gpu, partial(sum) on node"; axes that replicate go unsaid, and all of them are "replicated".
std::string print(const Layout& layout, const Mesh& mesh, const Symbols& symbols);

// sum, max or min; Monoid::none for another word.
Monoid find_monoid(std::string_view word);

// The layout of a value of `type`. Fails on what check_layout fails on, and on an axis that the mesh lacks.
Result<Layout> read_layout(std::string_view text, const Mesh& mesh, const Type& type, const Symbols& symbols);
// The same without a mesh: fails when the text is no layout, slices an index that the type lacks, says two
// things of one axis, or combines addends of two kinds (a sum of maxima is no maximum of sums).
Status check_layout(std::string_view text, const Type& type, const Symbols& symbols);

// A block of an index: [begin, begin + size).
struct Share {
  std::int64_t begin = 0, size = 0;

  std::int64_t end() const { return begin + size; }

  friend bool operator==(const Share&, const Share&) = default;
};

// The widest border there is.
constexpr std::int64_t kWidestBorder = 0xffff;

// The block of part `part` when `size` is cut in `parts`: ceil(size / parts) each, while there is any.
Share share_of(std::int64_t size, std::int32_t parts, std::int32_t part);

// A block with its borders, as far as there are elements. It may be of some where the block is of none.
Share with_borders(Share block, std::int64_t before, std::int64_t after, std::int64_t size);

// The elements of both; of none where they do not meet.
Share overlap(Share a, Share b);

// The block that `rank` holds, with its borders, one share for each dim of the type.
std::vector<Share> shares_of(const Type& type, const Layout& layout, const Mesh& mesh, std::int32_t rank);

}  // namespace weft::plan
