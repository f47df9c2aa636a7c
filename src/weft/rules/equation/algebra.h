// weft/rules/equation/algebra.h -- semantics of the operations in published rule files.
//
//   conv2d{kernel 1x3, same}(x[2,4,5,5], w[4,4,1,3])   becomes the plan
//     %2 = conv2d %0, %1 {padding=0, padding_w=1}
//
// An operation at given shapes is a small plan. Its meaning is the result of running that plan by
// the operators' reference semantics over the prime field. The plan is built once per operation and
// shapes and cached, so that a generator can run it millions of times on different values.
//
// Choices that the rule files leave open are made once, here:
//   same padding    ceil(size / stride) windows; an odd amount of padding has one more at the end
//   pool_avg        divides by the whole window, including padding; pool_max ignores padding
//   groups          of a convolution: its image's channels over its weight's
//   enlarge         keeps the position on which "same" padding centres a window
//   split           cuts at the latest joint along its axis (see Shape)
//   linear          x W^T of replica 0 of both, as in Unity's generator
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "weft/base/result.h"
#include "weft/plan/ops/evaluation.h"
#include "weft/rules/equation/equation.h"

namespace weft::equation {

// A shape as operations see it: sizes, and per dim the positions where concats joined their
// operands. A split cuts at the latest joint. Two numerically equal values with different joints
// are not interchangeable.
//
//   concat(concat(a[2], b[3]), c[1])   has size 6 and joints 2, 5: a split gives [5] with joint 2, and [1]
template <class Size>
struct ShapeOf {
  std::vector<Size> sizes;
  std::vector<std::vector<Size>> joints = {};  // joints[dim]: a stack, the latest join last; may be empty

  std::size_t rank() const { return sizes.size(); }
  friend bool operator==(const ShapeOf&, const ShapeOf&) = default;
};
using Shape = ShapeOf<std::int64_t>;

Shape shape_of(std::vector<std::int64_t> sizes);  // without joints
std::int64_t elements_of(const Shape& shape);

// The most elements of a value: rules are judged on small tensors.
constexpr std::int64_t kMaxRuleElements = std::int64_t{1} << 18;

// The shapes of an operation's results; fails if its operands do not match. `ranks` is 1 without a
// mesh. On a mesh all ranks have the same shapes, and collectives must slice them evenly.
Result<std::vector<Shape>> infer(const Operation& operation, std::span<const Shape> operands,
                                 std::int32_t ranks = 1);

// Operations prepared to run at given shapes. Not thread-safe: use one per thread.
class Algebra {
 public:
  Algebra();
  ~Algebra();
  Algebra(Algebra&&) noexcept;
  Algebra& operator=(Algebra&&) noexcept;

  // A prepared operation; has a stable address for the life of the algebra.
  struct Prepared;
  // REQUIRES: not is_communication(operation.verb); if a factor is one over the ranks, `parts` is
  // the number of ranks
  Result<const Prepared*> prepare(const Operation& operation, std::span<const Shape> operands);

  std::size_t plan_count() const;  // number of cached plans

  const std::vector<Shape>& results(const Prepared& prepared) const;
  const plan::Graph& plan(const Prepared& prepared) const;
  double flops(const Prepared& prepared) const;
  // `results[k]` is resized and filled. T: Field, Rounded or double.
  template <class T>
  void run(const Prepared& prepared, std::span<const ops::Tensor<T>* const> operands,
           std::span<ops::Tensor<T>> results, const ops::Numbers<T>& numbers) const;

 private:
  struct Kept;
  std::unique_ptr<Kept> kept_;
};

// The sizes of a side's constants follow from the context: an identity matrix is as large as the
// matrix it multiplies. The size of a convolution's constant weight follows from the image that the
// rule binds, the input upstream, not from intermediate results: when a rule is applied only inputs
// are known. If the two interpretations differ, the rule must hold for this one too. Returns the
// side with those sizes filled in.
Result<std::vector<Operation>> size_constants(std::span<const Operation> side, std::span<const Shape> inputs);

// Operations between ranks: one tensor per rank in and out, in rank order. Slices of a dim are
// balanced: rank r of n has [r * size / n, (r + 1) * size / n), so sizes need not be divisible.
bool is_communication(Verb verb);
Result<std::vector<Shape>> infer_ranks(const Operation& operation, std::span<const Shape> operands);
template <class T>
Result<std::vector<ops::Tensor<T>>> communicate(const Operation& operation,
                                                std::span<const ops::Tensor<T>> operands,
                                                const ops::Numbers<T>& numbers);

struct SliceOf {
  std::int64_t begin, end;
};
SliceOf slice_of(std::int64_t size, std::int32_t rank, std::int32_t ranks);

}  // namespace weft::equation
