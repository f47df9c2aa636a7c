#include "weft/rules/equation/lower_operation.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "weft/plan/ops/build.h"
#include "weft/plan/ops/loops.h"

namespace weft::equation {
namespace {

using plan::Dim;
using plan::ValueId;

class Lowering {
 public:
  Lowering(const Operation& operation, std::span<const Shape> operands, std::span<const Shape> results)
      : operation_(operation), details_(operation.details), operands_(operands), results_(results) {}

  Result<Lowered> lower() && {
    if (operation_.verb == Verb::split) {
      WEFT_TRY_STATUS(split());
    } else {
      WEFT_TRY(value, single());
      if (details_.then_relu) {
        WEFT_TRY(positive, ops::add_pointwise(graph_, ops::relu(), {value}));
        value = positive;
      }
      made_.results.push_back(value);
    }
    made_.graph = std::move(graph_);
    return std::move(made_);
  }

 private:
  Symbol index(std::string_view text) { return graph_.symbol(text); }
  Symbol index(std::size_t dim) { return graph_.symbol(fmt::format("d{}", dim)); }

  // Operand `k` with the given names for its dims; request operands in order.
  Result<ValueId> operand(std::size_t k, std::span<const Symbol> names) {
    std::vector<Dim> dims;
    for (std::size_t d = 0; d < operands_[k].rank(); ++d) dims.push_back({names[d], operands_[k].sizes[d]});
    WEFT_TRY(type, graph_.intern_type(plan::DType::f64, dims));
    WEFT_TRY(value, ops::add_input(graph_, fmt::format("{}", k), type));
    made_.operands.push_back(value);
    return value;
  }

  Result<ValueId> operand(std::size_t k, std::initializer_list<std::string_view> names) {
    std::vector<Symbol> symbols;
    for (const std::string_view name : names) symbols.push_back(index(name));
    return operand(k, symbols);
  }

  // Operand `k` with dims named by position, for elementwise operations.
  Result<ValueId> operand(std::size_t k) {
    std::vector<Symbol> names;
    for (std::size_t d = 0; d < operands_[k].rank(); ++d) names.push_back(index(d));
    return operand(k, names);
  }

  Result<ValueId> number(double value) { return ops::add_constant(graph_, value, plan::DType::f64); }

  // Divides in the plan, since 1/9 as a double is not a ninth in the field.
  Result<ValueId> quotient(double above, double below) {
    WEFT_TRY(dividend, number(above));
    WEFT_TRY(divisor, number(below));
    return ops::add_pointwise(graph_, ops::div(), {dividend, divisor});
  }

  Result<ValueId> single() {
    switch (operation_.verb) {
      case Verb::matmul: return matmul();
      case Verb::linear: return linear();
      case Verb::conv2d: return conv2d();
      case Verb::pool_max:
      case Verb::pool_avg: return pool();
      case Verb::ewadd: return pointwise(ops::add());
      case Verb::ewmul:
      case Verb::smul: return pointwise(ops::mul());
      case Verb::sub: return pointwise(ops::sub());
      case Verb::relu: return pointwise(ops::relu());
      case Verb::square: {
        WEFT_TRY(x, operand(0));
        return ops::add_pointwise(graph_, ops::mul(), {x, x});
      }
      case Verb::scale: {
        WEFT_TRY(x, operand(0));
        WEFT_TRY(factor,
                 details_.factor_is_one_over_ranks ? quotient(1, details_.parts) : number(details_.factor));
        return ops::add_pointwise(graph_, ops::mul(), {x, factor});
      }
      case Verb::identity:
      case Verb::partition:
      case Verb::combine: return operand(0);
      case Verb::concat: return concat();
      case Verb::transpose: return transpose();
      case Verb::enlarge: return enlarge();
      case Verb::replicate: return replicate();
      case Verb::reduce: return reduce();
      case Verb::sum: return sum();
      case Verb::const_eye: return eye(index("i"), index("j"), details_.sizes[0]);
      case Verb::const_conv_id: return identity_convolution();
      case Verb::const_pool: return one_over(details_.sizes[2] * details_.sizes[3]);
      case Verb::const_one: return one_over(1);
      default: return user_error(fmt::format("{} needs a mesh", name(operation_.verb)));
    }
  }

  Result<ValueId> pointwise(const ops::Operator& op) {
    std::vector<ValueId> values;
    for (std::size_t k = 0; k < operands_.size(); ++k) {
      WEFT_TRY(value, operand(k));
      values.push_back(value);
    }
    return ops::add_pointwise(graph_, op, values);
  }

  Result<ValueId> matmul() {
    const std::size_t rank = operands_[0].rank();
    std::vector<Symbol> left, right, to;
    for (std::size_t d = 0; d + 2 < rank; ++d) left.push_back(index(d));
    right = to = left;
    for (const char* name : {"i", "k"}) left.push_back(index(name));
    for (const char* name : {"k", "j"}) right.push_back(index(name));
    for (const char* name : {"i", "j"}) to.push_back(index(name));
    WEFT_TRY(x, operand(0, left));
    WEFT_TRY(w, operand(1, right));
    return ops::add_contract(graph_, {x, w}, to);
  }

  Result<ValueId> linear() {
    WEFT_TRY(x, operand(0, {"p", "i", "k"}));
    WEFT_TRY(w, operand(1, {"q", "j", "k"}));
    WEFT_TRY(first_x, ops::add_slice(graph_, x, index("p"), 0, 1));
    WEFT_TRY(first_w, ops::add_slice(graph_, w, index("q"), 0, 1));
    const std::array to = {index("p"), index("i"), index("j")};
    return ops::add_contract(graph_, {first_x, first_w}, to);
  }

  Windows windows(std::size_t side, std::int64_t window) const {
    return windows_along(operands_[0].sizes[2 + side], window, details_.stride[side], details_.same_padding);
  }

  Result<ValueId> conv2d() {
    WEFT_TRY(x, operand(0, {"b", "c", "h", "w"}));
    WEFT_TRY(weight, operand(1, {"o", "i", "r", "q"}));
    const Shape &image = operands_[0], &kernel = operands_[1];
    const Windows high = windows(0, kernel.sizes[2]), wide = windows(1, kernel.sizes[3]);
    ops::ConvWindow window{.groups = image.sizes[1] / kernel.sizes[1]};
    if (high.before == high.after && wide.before == wide.after) {
      window.padding = high.before;
      window.padding_w = wide.before;
    } else {
      WEFT_TRY(tall, ops::add_pad(graph_, x, index("h"), high.before, high.after));
      WEFT_TRY(full, ops::add_pad(graph_, tall, index("w"), wide.before, wide.after));
      x = full;
    }
    const bool square = details_.stride[0] == details_.stride[1];
    if (square) window.stride = details_.stride[0];
    WEFT_TRY(y, ops::add_conv2d(graph_, x, weight, window));
    if (square) return y;
    WEFT_TRY(rows, every(y, index("h"), details_.stride[0], results_[0].sizes[2]));
    return every(rows, index("w"), details_.stride[1], results_[0].sizes[3]);
  }

  // Every stride-th position along an index, `count` of them.
  Result<ValueId> every(ValueId x, Symbol along, std::int64_t stride, std::int64_t count) {
    if (stride == 1) return x;
    std::vector<ValueId> places;
    for (std::int64_t k = 0; k < count; ++k) {
      WEFT_TRY(place, ops::add_slice(graph_, x, along, k * stride, k * stride + 1));
      places.push_back(place);
    }
    return ops::add_concat(graph_, places, along);
  }

  Result<ValueId> pool() {
    WEFT_TRY(x, operand(0, {"b", "c", "h", "w"}));
    const bool max = operation_.verb == Verb::pool_max;
    const auto [rows, columns] = details_.kernel;
    const Windows high = windows(0, rows), wide = windows(1, columns);
    const bool plain = rows == columns && details_.stride[0] == details_.stride[1] &&
                       high.before == high.after && wide.before == wide.after && high.before == wide.before;
    if (plain) {
      const ops::PoolWindow window{.size = rows, .stride = details_.stride[0], .padding = high.before};
      return max ? ops::add_max_pool(graph_, x, window) : ops::add_avg_pool(graph_, x, window);
    }
    WEFT_TRY(tall, pooled(x, index("h"), high, rows, details_.stride[0], max));
    WEFT_TRY(y, pooled(tall, index("w"), wide, columns, details_.stride[1], max));
    if (max) return y;
    WEFT_TRY(points, number(static_cast<double>(rows) * columns));
    return ops::add_pointwise(graph_, ops::div(), {y, points});
  }

  // Sums or maxima of windows along one index, window by window, without the padding.
  Result<ValueId> pooled(ValueId x, Symbol along, const Windows& windows, std::int64_t window,
                         std::int64_t stride, bool max) {
    const plan::Type type = graph_.type(x);
    const std::vector<Dim> dims(type.dims.begin(), type.dims.end());
    std::vector<Dim> one = dims;
    one[static_cast<std::size_t>(type.position(along))].size = 1;
    const std::vector<Symbol> kept = ops::indices_of(ops::without(dims, std::array{along}));
    const std::int64_t size = type.size_of(along);
    std::vector<ValueId> places;
    for (std::int64_t k = 0; k < windows.count; ++k) {
      const std::int64_t begin = k * stride - windows.before;
      WEFT_TRY(part, ops::add_slice(graph_, x, along, std::max<std::int64_t>(begin, 0),
                                    std::min(begin + window, size)));
      WEFT_TRY(pooled, ops::add_reduce(graph_, max ? "max" : "sum", part, kept));
      WEFT_TRY(place, ops::add_broadcast(graph_, pooled, one));
      places.push_back(place);
    }
    return ops::add_concat(graph_, places, along);
  }

  Result<ValueId> concat() {
    std::vector<ValueId> values;
    for (std::size_t k = 0; k < operands_.size(); ++k) {
      WEFT_TRY(value, operand(k));
      values.push_back(value);
    }
    return ops::add_concat(graph_, values, index(static_cast<std::size_t>(details_.axis)));
  }

  Status split() {
    WEFT_TRY(x, operand(0));
    const std::size_t axis = static_cast<std::size_t>(details_.axis);
    std::int64_t begin = 0;
    for (const Shape& part : results_) {
      const std::int64_t end = begin + part.sizes[axis];
      WEFT_TRY(value, ops::add_slice(graph_, x, index(axis), begin, end));
      made_.results.push_back(value);
      begin = end;
    }
    return {};
  }

  Result<ValueId> transpose() {
    WEFT_TRY(x, operand(0));
    const std::size_t rank = operands_[0].rank();
    std::vector<Symbol> to;
    for (std::size_t d = 0; d < rank; ++d)
      to.push_back(
          index(details_.order.empty() ? rank - 1 - d : static_cast<std::size_t>(details_.order[d])));
    return ops::add_transpose(graph_, x, to);
  }

  // Pads a kernel so that "same" windows of both sizes are centred on the same positions.
  Result<ValueId> enlarge() {
    WEFT_TRY(x, operand(0));
    for (const std::size_t side : {0u, 1u}) {
      const std::int64_t from = operands_[0].sizes[2 + side], to = details_.kernel[side];
      const std::int64_t before = (to - 1) / 2 - (from - 1) / 2;
      WEFT_TRY(larger, ops::add_pad(graph_, x, index(2 + side), before, to - from - before));
      x = larger;
    }
    return x;
  }

  Result<ValueId> replicate() {
    WEFT_TRY(x, operand(0));
    const std::size_t axis = static_cast<std::size_t>(details_.axis);
    const plan::Type type = graph_.type(x);
    std::vector<Dim> dims(type.dims.begin(), type.dims.end());
    dims.insert(dims.begin() + details_.axis + 1, {index("copy"), details_.parts});
    WEFT_TRY(copies, ops::add_broadcast(graph_, x, dims));
    const std::array along = {index(axis), index("copy")};
    return ops::add_merge(graph_, copies, along, index(axis));
  }

  Result<ValueId> reduce() {
    WEFT_TRY(x, operand(0));
    const std::size_t axis = static_cast<std::size_t>(details_.axis);
    const std::array into = {Dim{index("group"), results_[0].sizes[axis]},
                             Dim{index("addend"), details_.parts}};
    WEFT_TRY(groups, ops::add_split(graph_, x, index(axis), into));
    const std::array addends = {index("addend")};
    const plan::Type type = graph_.type(groups);
    return ops::add_reduce(graph_, "sum", groups, ops::indices_of(ops::without(type.dims, addends)));
  }

  Result<ValueId> sum() {
    WEFT_TRY(x, operand(0));
    std::vector<Symbol> to;
    for (std::size_t d = 0; details_.axis >= 0 && d < operands_[0].rank(); ++d)
      if (d != static_cast<std::size_t>(details_.axis)) to.push_back(index(d));
    return ops::add_reduce(graph_, "sum", x, to);
  }

  // 1 where row and column are equal, else 0.
  Result<ValueId> eye(Symbol row, Symbol column, std::int64_t size) {
    WEFT_TRY(rows, ops::add_position(graph_, {row, size}));
    WEFT_TRY(columns, ops::add_position(graph_, {column, size}));
    WEFT_TRY(same, ops::add_pointwise(graph_, ops::equal(), {rows, columns}));
    return ops::add_cast(graph_, same, plan::DType::f64);
  }

  // A 1 x 1 identity kernel, enlarged.
  Result<ValueId> identity_convolution() {
    WEFT_TRY(x, eye(index("o"), index("i"), details_.sizes[0]));
    const std::array dims = {Dim{index("o"), details_.sizes[0]}, Dim{index("i"), details_.sizes[0]},
                             Dim{index("r"), 1}, Dim{index("q"), 1}};
    WEFT_TRY(point, ops::add_broadcast(graph_, x, dims));
    x = point;
    for (const std::size_t side : {0u, 1u}) {
      const std::int64_t size = details_.sizes[2 + side], before = (size - 1) / 2;
      WEFT_TRY(larger, ops::add_pad(graph_, x, dims[2 + side].index, before, size - 1 - before));
      x = larger;
    }
    return x;
  }

  Result<ValueId> one_over(std::int64_t divisor) {
    WEFT_TRY(value, quotient(1, static_cast<double>(divisor)));
    std::vector<Dim> dims;
    for (std::size_t d = 0; d < details_.sizes.size(); ++d) dims.push_back({index(d), details_.sizes[d]});
    return ops::add_broadcast(graph_, value, dims);
  }

  const Operation& operation_;
  const Details& details_;
  std::span<const Shape> operands_, results_;
  plan::Graph graph_;
  Lowered made_;
};

}  // namespace

Result<Lowered> lower(const Operation& operation, std::span<const Shape> operands,
                      std::span<const Shape> results) {
  return Lowering(operation, operands, results).lower();
}

Windows windows_along(std::int64_t size, std::int64_t window, std::int64_t stride, bool same_padding) {
  Windows windows;
  if (!same_padding) {
    windows.count = size < window ? 0 : (size - window) / stride + 1;
    return windows;
  }
  windows.count = (size + stride - 1) / stride;
  const std::int64_t padding = std::max<std::int64_t>((windows.count - 1) * stride + window - size, 0);
  windows.before = padding / 2;
  windows.after = padding - windows.before;
  return windows;
}

}  // namespace weft::equation
