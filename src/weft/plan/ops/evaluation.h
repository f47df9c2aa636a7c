// weft/plan/ops/evaluation.h -- the tensors on which reference semantics compute.
//
// Every element, including integers and booleans, is a T: a float, a double, or an element of the
// prime field in which rules are proven (see number.h). Dims are in the type's order, last fastest.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "weft/plan/graph/graph.h"
#include "weft/plan/ops/number.h"
#include "weft/plan/ops/rounded.h"

namespace weft::ops {

template <class T>
struct Tensor {
  std::vector<std::int64_t> sizes;
  std::vector<T> data;

  std::int64_t elements() const { return static_cast<std::int64_t>(data.size()); }
};

template <class T>
class Evaluation {
 public:
  Evaluation(plan::NodeView node, std::span<const Tensor<T>* const> inputs, std::span<Tensor<T>> results,
             const Numbers<T>& arithmetic)
      : numbers(arithmetic), node_(node), inputs_(inputs), results_(results) {}

  const Numbers<T>& numbers;  // operations beyond + - *: division, exp, comparison, conversion

  const plan::NodeView& node() const { return node_; }
  const Tensor<T>& input(std::size_t i) const { return *inputs_[i]; }
  std::size_t input_count() const { return inputs_.size(); }
  Tensor<T>& result(std::size_t k) { return results_[k]; }  // sized, zero-filled

 private:
  plan::NodeView node_;
  std::span<const Tensor<T>* const> inputs_;
  std::span<Tensor<T>> results_;
};

// Iterates over all points of a box in order, last coordinate fastest. `strides[k][i]` is the
// change of offset k per step along coordinate i, so that a loop nest over named indices reads
// several tensors at once:
//
//   Walk walk(sizes); walk.track(strides_of_x); walk.track(strides_of_y);
//   do { y[walk.offset(1)] += x[walk.offset(0)]; } while (walk.next());
//
// Check first for an empty box (a size of zero): walk.empty().
class Walk {
 public:
  explicit Walk(std::vector<std::int64_t> sizes);

  void track(std::vector<std::int64_t> strides);  // strides.size() == sizes.size()
  bool empty() const { return empty_; }
  std::int64_t offset(std::size_t tracked) const { return offsets_[tracked]; }
  std::int64_t at(std::size_t coordinate) const { return at_[coordinate]; }
  bool next();  // false after the last point

 private:
  std::vector<std::int64_t> sizes_, at_, offsets_;
  std::vector<std::vector<std::int64_t>> strides_;
  bool empty_ = false;
};

// Strides of a value of `type` along each index of `loops`; 0 where the type lacks the index.
std::vector<std::int64_t> strides_along(const plan::Type& type, std::span<const plan::Dim> loops);

// Offsets in a value of `type` of the points of the box `loops`, in the box's order, with all other
// coordinates zero. With x's dims divided into rows and columns,
//
//   for (auto row : offsets_along(x, rows)) for (auto column : offsets_along(x, columns)) ... x[row + column]
//
// visits x row by row, whatever the order of its dims.
std::vector<std::int64_t> offsets_along(const plan::Type& type, std::span<const plan::Dim> loops);

// A value as rows, one per point of the indices not in `over`. Each row has a column per point of
// `over`, in that list's order. The element's offset is starts[row] + columns[column].
struct Rows {
  Rows(const plan::Type& type, std::span<const Symbol> over);  // REQUIRES: type has all of `over`

  std::vector<std::int64_t> starts, columns;
};

// A value as outer x size x inner around one of its dims, for block copies along it.
struct Blocks {
  Blocks(const plan::Type& type, Symbol along);  // REQUIRES: type.has(along)

  std::int64_t outer = 1, size = 1, inner = 1;
};

}  // namespace weft::ops
