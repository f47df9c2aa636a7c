// weft/rules/equation/typing.h -- shape inference: what operations require of operands.
//
// Written once and used twice. Over integers it infers shapes (infer() in algebra.h). Over unknowns
// it collects the conditions that legal sizes must meet (legal_sizes.h). The `Sizes` argument must
// provide:
//
//   number(4)             a size as such
//   same(a, b, what)      fails unless a = b
//   at_least(a, b, what)  fails unless a >= b
//   plus, minus, times    a + b, a - b, a * 4
//   over(a, 2, what)      a / 2; fails unless it is an integer
//   windows(..)           how many windows fit along a size
//   grouped(c, i, o)      fails unless i divides c, and c / i divides o
//   agree(a, b)           whether joints are known to be at the same positions
#pragma once
#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "weft/base/result.h"
#include "weft/rules/equation/algebra.h"
#include "weft/rules/equation/equation.h"

namespace weft::equation {

template <class Sizes>
class Typing {
 public:
  using Size = typename Sizes::Size;
  using Shape = ShapeOf<Size>;

  Typing(const Operation& operation, std::span<const Shape> operands, Sizes& sizes)
      : operation_(operation), details_(operation.details), operands_(operands), sizes_(sizes) {}

  // REQUIRES: not is_communication(verb)
  Result<std::vector<Shape>> type() {
    const std::size_t least = operand_count(operation_.verb);
    if (operands_.size() < least || (operands_.size() > least && operation_.verb != Verb::concat))
      return wrong(fmt::format("expected {} operands, found {}", least, operands_.size()));
    if (operation_.verb == Verb::split) return split();
    WEFT_TRY(shape, single());
    return std::vector<Shape>{std::move(shape)};
  }

 private:
  static constexpr std::size_t kMostJoints = 1024;  // concat of a value with itself doubles the number

  Error wrong(std::string_view what) const {
    return user_error(fmt::format("{}: {}", name(operation_.verb), what));
  }

  Status expect_rank(std::size_t operand, std::size_t rank) const {
    if (operands_[operand].rank() == rank) return {};
    return wrong(
        fmt::format("operand {} must have rank {}, found {}", operand, rank, operands_[operand].rank()));
  }

  Result<std::size_t> axis(std::int32_t axis) const {
    const std::size_t rank = operands_[0].rank();
    if (axis >= 0 && static_cast<std::size_t>(axis) < rank) return static_cast<std::size_t>(axis);
    return wrong(fmt::format("axis {} is not among the {} of its operand", axis, rank));
  }

  static Shape unjoined(std::vector<Size> sizes) {
    Shape shape{std::move(sizes), {}};
    shape.joints.resize(shape.sizes.size());
    return shape;
  }

  Result<Shape> single() {
    switch (operation_.verb) {
      case Verb::matmul: return matmul();
      case Verb::conv2d: return conv2d();
      case Verb::ewadd:
      case Verb::ewmul:
      case Verb::sub: return elementwise();
      case Verb::smul: {
        WEFT_TRY_STATUS(expect_rank(1, 0));
        return operands_[0];
      }
      case Verb::relu:
      case Verb::identity:
      case Verb::scale:
      case Verb::square: return operands_[0];
      case Verb::concat: return concat();
      case Verb::transpose: return transpose();
      case Verb::pool_max:
      case Verb::pool_avg: return pool();
      case Verb::enlarge: return enlarge();
      case Verb::const_eye:
      case Verb::const_conv_id:
      case Verb::const_pool:
      case Verb::const_one: return constant();
      case Verb::linear: return linear();
      case Verb::partition:
      case Verb::combine: {
        WEFT_TRY(along, axis(details_.axis));
        WEFT_TRY_STATUS(sizes_.over(operands_[0].sizes[along], details_.parts, "degree"));
        return operands_[0];
      }
      case Verb::replicate: {
        WEFT_TRY(along, axis(details_.axis));
        Shape shape = operands_[0];
        shape.sizes[along] = sizes_.times(shape.sizes[along], details_.parts);
        for (Size& joint : shape.joints[along]) joint = sizes_.times(joint, details_.parts);
        return shape;
      }
      case Verb::reduce: {
        WEFT_TRY(along, axis(details_.axis));
        Shape shape = operands_[0];
        WEFT_TRY(size, sizes_.over(shape.sizes[along], details_.parts, "degree"));
        shape.sizes[along] = size;
        shape.joints[along].clear();  // a group of slices may straddle a joint
        return shape;
      }
      case Verb::sum: return sum();
      default: return wrong("needs a mesh");
    }
  }

  Result<Shape> matmul() {
    const std::size_t rank = operands_[0].rank();
    if (rank < 2) return wrong(fmt::format("operand 0 must have rank 2 or more, found {}", rank));
    WEFT_TRY_STATUS(expect_rank(1, rank));
    const Shape &x = operands_[0], &w = operands_[1];
    for (std::size_t d = 0; d + 2 < rank; ++d) WEFT_TRY_STATUS(sizes_.same(x.sizes[d], w.sizes[d], "batch"));
    WEFT_TRY_STATUS(sizes_.same(x.sizes[rank - 1], w.sizes[rank - 2], "inner size"));
    Shape shape = x;
    shape.sizes[rank - 1] = w.sizes[rank - 1];
    shape.joints[rank - 1] = w.joints[rank - 1];
    return shape;
  }

  Result<Shape> linear() {
    WEFT_TRY_STATUS(expect_rank(0, 3));
    WEFT_TRY_STATUS(expect_rank(1, 3));
    const Shape &x = operands_[0], &w = operands_[1];
    WEFT_TRY_STATUS(sizes_.same(x.sizes[2], w.sizes[2], "inner size"));
    Shape shape = unjoined({sizes_.number(1), x.sizes[1], w.sizes[1]});
    shape.joints[1] = x.joints[1];
    shape.joints[2] = w.joints[1];
    return shape;
  }

  // A dim along which a window slides: joints stay valid if no position is lost.
  Status slide(Shape& shape, std::size_t dim, Size window, std::int32_t stride) {
    WEFT_TRY(count, sizes_.windows(shape.sizes[dim], window, stride, details_.same_padding));
    if (stride != 1 || !details_.same_padding) shape.joints[dim].clear();
    shape.sizes[dim] = count;
    return {};
  }

  Result<Shape> conv2d() {
    WEFT_TRY_STATUS(expect_rank(0, 4));
    WEFT_TRY_STATUS(expect_rank(1, 4));
    const Shape &x = operands_[0], &w = operands_[1];
    WEFT_TRY_STATUS(sizes_.grouped(x.sizes[1], w.sizes[1], w.sizes[0]));
    Shape shape = x;
    shape.sizes[1] = w.sizes[0];
    shape.joints[1] = w.joints[0];
    for (const std::size_t side : {0u, 1u}) {
      if (details_.kernel[side] > 0)
        WEFT_TRY_STATUS(sizes_.same(w.sizes[2 + side], sizes_.number(details_.kernel[side]), "kernel"));
      WEFT_TRY_STATUS(slide(shape, 2 + side, w.sizes[2 + side], details_.stride[side]));
    }
    return shape;
  }

  Result<Shape> pool() {
    WEFT_TRY_STATUS(expect_rank(0, 4));
    Shape shape = operands_[0];
    for (const std::size_t side : {0u, 1u}) {
      if (details_.kernel[side] < 1) return wrong("needs a kernel");
      WEFT_TRY_STATUS(slide(shape, 2 + side, sizes_.number(details_.kernel[side]), details_.stride[side]));
    }
    return shape;
  }

  Result<Shape> enlarge() {
    WEFT_TRY_STATUS(expect_rank(0, 4));
    Shape shape = operands_[0];
    for (const std::size_t side : {0u, 1u}) {
      if (details_.kernel[side] < 1) return wrong("needs a kernel");
      const Size size = sizes_.number(details_.kernel[side]);
      WEFT_TRY_STATUS(sizes_.at_least(size, shape.sizes[2 + side], "kernel"));
      shape.sizes[2 + side] = size;
      shape.joints[2 + side].clear();
    }
    return shape;
  }

  Result<Shape> elementwise() {
    if (details_.spreads && operands_[0].rank() == 0) return operands_[1];
    if (details_.spreads && operands_[1].rank() == 0) return operands_[0];
    WEFT_TRY_STATUS(expect_rank(1, operands_[0].rank()));
    Shape shape = operands_[0];
    for (std::size_t d = 0; d < shape.rank(); ++d) {
      WEFT_TRY_STATUS(sizes_.same(shape.sizes[d], operands_[1].sizes[d], "size"));
      if (!sizes_.agree(shape.joints[d], operands_[1].joints[d])) shape.joints[d].clear();
    }
    return shape;
  }

  Result<Shape> concat() {
    WEFT_TRY(along, axis(details_.axis));
    Shape shape = operands_[0];
    for (std::size_t k = 1; k < operands_.size(); ++k) {
      const Shape& next = operands_[k];
      WEFT_TRY_STATUS(expect_rank(k, shape.rank()));
      for (std::size_t d = 0; d < shape.rank(); ++d) {
        if (d == along) continue;
        WEFT_TRY_STATUS(sizes_.same(shape.sizes[d], next.sizes[d], "size"));
        if (!sizes_.agree(shape.joints[d], next.joints[d])) shape.joints[d].clear();
      }
    }
    // Joints inside the operands come first, so that the new ones are cut first.
    std::vector<Size> made;
    for (std::size_t k = 1; k < operands_.size(); ++k) {
      const Size place = shape.sizes[along];
      for (const Size& joint : operands_[k].joints[along])
        shape.joints[along].push_back(sizes_.plus(place, joint));
      if (shape.joints[along].size() > kMostJoints) return wrong("too many joints");
      made.push_back(place);
      shape.sizes[along] = sizes_.plus(place, operands_[k].sizes[along]);
    }
    shape.joints[along].insert(shape.joints[along].end(), made.begin(), made.end());
    return shape;
  }

  Result<std::vector<Shape>> split() {
    WEFT_TRY(along, axis(details_.axis));
    const Shape& whole = operands_[0];
    const std::size_t parts = result_count(operation_);
    if (parts < 2) return wrong(fmt::format("must have 2 parts or more, found {}", parts));
    const std::vector<Size>& joints = whole.joints[along];
    std::vector<Size> cuts;
    if (joints.size() >= parts - 1) {
      cuts.assign(joints.end() - static_cast<std::ptrdiff_t>(parts - 1), joints.end());
    } else if (details_.evenly) {
      WEFT_TRY(part, sizes_.over(whole.sizes[along], details_.parts, "parts"));
      for (std::size_t k = 1; k < parts; ++k)
        cuts.push_back(sizes_.times(part, static_cast<std::int32_t>(k)));
    } else {
      return wrong(fmt::format("no concat along axis {} to cut at", along));
    }
    cuts.insert(cuts.begin(), sizes_.number(0));
    cuts.push_back(whole.sizes[along]);
    std::vector<Shape> shapes;
    for (std::size_t k = 0; k + 1 < cuts.size(); ++k) {
      Shape part = whole;
      WEFT_TRY_STATUS(sizes_.at_least(cuts[k + 1], sizes_.plus(cuts[k], sizes_.number(1)), "cut"));
      part.sizes[along] = sizes_.minus(cuts[k + 1], cuts[k]);
      part.joints[along].clear();
      if (joints.size() >= parts - 1)
        for (std::size_t j = 0; j + (parts - 1) < joints.size(); ++j)
          if (sizes_.inside(cuts[k], joints[j], cuts[k + 1]))
            part.joints[along].push_back(sizes_.minus(joints[j], cuts[k]));
      shapes.push_back(std::move(part));
    }
    return shapes;
  }

  Result<Shape> transpose() {
    const std::size_t rank = operands_[0].rank();
    std::vector<std::int32_t> order = details_.order;
    if (order.empty())
      for (std::size_t d = 0; d < rank; ++d) order.push_back(static_cast<std::int32_t>(rank - 1 - d));
    std::vector<std::int32_t> sorted = order;
    std::ranges::sort(sorted);
    bool whole = sorted.size() == rank;
    for (std::size_t d = 0; whole && d < rank; ++d) whole = sorted[d] == static_cast<std::int32_t>(d);
    if (!whole) return wrong(fmt::format("the order must name each of the {} dims once", rank));
    Shape shape;
    for (const std::int32_t d : order) {
      shape.sizes.push_back(operands_[0].sizes[static_cast<std::size_t>(d)]);
      shape.joints.push_back(operands_[0].joints[static_cast<std::size_t>(d)]);
    }
    return shape;
  }

  Result<Shape> constant() {
    if (details_.sizes.empty()) return wrong("its size does not follow from the context");
    return unjoined(sizes_.constant(operation_));
  }

  Result<Shape> sum() {
    if (details_.axis < 0) return Shape{};
    WEFT_TRY(along, axis(details_.axis));
    Shape shape = operands_[0];
    shape.sizes.erase(shape.sizes.begin() + static_cast<std::ptrdiff_t>(along));
    shape.joints.erase(shape.joints.begin() + static_cast<std::ptrdiff_t>(along));
    return shape;
  }

  const Operation& operation_;
  const Details& details_;
  std::span<const Shape> operands_;
  Sizes& sizes_;
};

}  // namespace weft::equation
