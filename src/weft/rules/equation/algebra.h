// weft/rules/equation/algebra.h -- what the field's operations mean, by way of Weft's operators.
//
//   conv2d{kernel 1x3, same}(x[2,4,5,5], w[4,4,1,3])   becomes the plan
//     %2 = conv2d %0, %1 {padding=0, padding_w=1}
//
// An operation at given shapes is a small plan; running it by the operators' reference semantics over
// the prime field is what the operation means. The plan of an operation at given shapes is made once
// and kept, so that a generator may run it millions of times on other values.
//
// What the rule files leave open is settled here once:
//   same padding    ceil(size / stride) windows; of an odd number of padded places the last side has one more
//   pool_avg        divides by the whole window, padding included; pool_max sees no padding
//   groups          of a convolution: its image's channels over its weight's
//   enlarge         keeps the place that "same" padding centres a window on
//   split           cuts at the latest joint along its axis (see Shape)
//   linear          x W^T of replica 0 of both, as Unity's generator has it
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "weft/base/result.h"
#include "weft/plan/ops/evaluation.h"
#include "weft/rules/equation/equation.h"

namespace weft::equation {

// A shape as operations see it: sizes, and along each dim the places where concats joined (a split
// cuts at the latest; two values equal in numbers but joined elsewhere are not interchangeable).
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

// The most elements a value may have here: rules are judged on small tensors.
constexpr std::int64_t kMostRuleElements = std::int64_t{1} << 18;

// The shapes of an operation's results, or what is wrong with its operands. `ranks` is 1 without a
// mesh; on one, all ranks have the same shapes and collectives cut them evenly.
Result<std::vector<Shape>> infer(const Operation& operation, std::span<const Shape> operands,
                                 std::int32_t ranks = 1);

// Operations at given shapes, made ready to run. Not thread-safe: one for each thread.
class Algebra {
 public:
  Algebra();
  ~Algebra();
  Algebra(Algebra&&) noexcept;
  Algebra& operator=(Algebra&&) noexcept;

  // A prepared operation; lives as long as the algebra, at one place.
  struct Prepared;
  // REQUIRES: not is_communication(operation.verb); where a factor is one over the ranks, `parts`
  // is the ranks
  Result<const Prepared*> prepare(const Operation& operation, std::span<const Shape> operands);

  std::size_t plan_count() const;  // prepared so far, and kept

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

// The sizes of a side's constants follow from the context: an identity matrix is as large as what it is
// multiplied with. Of a convolution's constant weight what counts is the image that the rule binds, the
// input upstream, not results on the way: when a rule is applied only inputs are at hand, and where the
// two readings differ the rule must hold for this one too. Returns the side with those sizes filled in.
Result<std::vector<Operation>> size_constants(std::span<const Operation> side, std::span<const Shape> inputs);

// Operations between ranks: one tensor a rank in, one a rank out, in rank order. Slices of a dim are
// balanced: rank r of n has [r * size / n, (r + 1) * size / n), so sizes need not divide.
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
