#include "weft/rules/equation/rule_from_equation.h"

#include <algorithm>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "weft/rules/equation/equation_indices.h"

namespace weft::equation {
namespace {

struct Value {
  std::string name;
  std::vector<int> dims;                         // index numbers
  std::vector<std::string> sizes;                // in rule syntax: "size(i1, a) + size(i2, a)"
  std::vector<std::vector<std::string>> joints;  // per dim, the size before each joint
};

std::string_view word(ReduceKind kind) {
  return kind == ReduceKind::max ? "max" : kind == ReduceKind::min ? "min" : "sum";
}

// The padding on each side of an image with which a window of this kernel keeps its size.
Result<int> padding_of(const Details& details, std::size_t dim) {
  const int kernel = details.kernel[dim];
  if (!details.same_padding) return 0;
  if (kernel % 2 == 0) return user_error("padding of an even kernel is not the same on both sides");
  if (details.stride[dim] != 1) return user_error("padding of a stride depends on the image");
  return (kernel - 1) / 2;
}

// The operand behind transposes and identities.
Operand root_of(std::span<const Operation> side, Operand operand) {
  const auto moves_nothing = [](Verb verb) { return verb == Verb::transpose || verb == Verb::identity; };
  while (operand.operation >= 0 && moves_nothing(side[operand.operation].verb))
    operand = side[operand.operation].operands[0];
  return operand;
}

// "x, y, z"
std::string names_of(std::span<const Value> values) {
  std::string text;
  for (const Value& value : values) text += (text.empty() ? "" : ", ") + value.name;
  return text;
}

class Translation {
 public:
  Translation(const Equation& equation, EquationIndices indices, LocalValues local)
      : equation_(equation), indices_(std::move(indices)), local_(local) {
    name_indices();
    for (std::size_t i = 0; i < equation.inputs.size(); ++i) {
      Value value{equation.inputs[i].name, indices_.input(i), {}, {}};
      for (const int dim : value.dims)
        value.sizes.push_back(fmt::format("size({}, {})", value.name, names_[dim]));
      value.joints.resize(value.dims.size());
      inputs_.push_back(std::move(value));
    }
  }

  Result<std::optional<std::string>> text(std::string_view name, std::string_view why,
                                          std::string_view cite) {
    WEFT_TRY(left, lines_of(equation_.source, 0, "step"));
    WEFT_TRY(right, lines_of(equation_.target, 1, "made"));
    WEFT_TRY(right_as_left, lines_of(equation_.target, 1, "step"));
    if (left == right_as_left) return std::optional<std::string>();
    std::string given;
    for (std::size_t i = 0; i < inputs_.size(); ++i)
      given += fmt::format("{}{}[{}]{}{}", i == 0 ? "" : ", ", inputs_[i].name, list(inputs_[i].dims),
                           order_of(i), layout_of(i));
    std::string result = fmt::format("rule {} explore\n", name);
    if (!why.empty()) result += fmt::format("  why   {}\n", why);
    if (!cite.empty()) result += fmt::format("  cite  {}\n", cite);
    result += fmt::format("  given {}\n", given);
    for (std::size_t i = 0; i < left.size(); ++i)
      result += fmt::format("  {} {}\n", i == 0 ? "left " : "     ", left[i]);
    for (std::size_t i = 0; i < right.size(); ++i)
      result += fmt::format("  {} {}\n", i == 0 ? "right" : "     ", right[i]);
    if (!when_.empty()) result += fmt::format("  when  {}\n", fmt::join(when_, " and "));
    return std::optional(std::move(result));
  }

 private:
  // Names indices by letters. Indices that always occur together and that nothing refers to
  // individually share a capital.
  void name_indices() {
    const auto letter = [](char first, int number) {
      return std::string(1, static_cast<char>(first + number % 26)) +
             (number < 26 ? "" : std::to_string(number / 26));
    };
    names_.resize(static_cast<std::size_t>(indices_.count()));
    int singles = 0, groups = 0;
    for (int index = 0; index < indices_.count(); ++index) {
      if (!indices_.exists(index)) continue;
      if (indices_.referred_to_alone(index)) {
        names_[index] = letter('a', singles++);
        continue;
      }
      bool covered = false;
      for (int earlier = 0; earlier < index && !covered; ++earlier)
        covered = indices_.exists(earlier) && !indices_.referred_to_alone(earlier) &&
                  indices_.always_together(earlier, index);
      if (!covered) names_[index] = letter('A', groups++);
    }
  }

  std::string list(std::span<const int> dims) const {
    std::string text;
    for (const int dim : dims)
      if (!names_[dim].empty()) text += (text.empty() ? "" : ", ") + names_[dim];
    return text;
  }

  // Windows are positional: an image's indices must be in the order written.
  std::string order_of(std::size_t input) const {
    const auto by_place = [](const Operation& operation) {
      return operation.verb == Verb::conv2d || operation.verb == Verb::pool_max ||
             operation.verb == Verb::pool_avg || operation.verb == Verb::enlarge;
    };
    const bool windows =
        std::ranges::any_of(equation_.source, by_place) || std::ranges::any_of(equation_.target, by_place);
    return windows && inputs_[input].dims.size() == 4 ? " in order" : "";
  }

  std::string layout_of(std::size_t input) const {
    switch (equation_.inputs[input].holding) {
      case Holding::single: return "";
      case Holding::local: return local_ == LocalValues::partial ? " partial(sum) on m" : " varying on m";
      case Holding::replicated: return " replicated on m";
      case Holding::sharded:
        return fmt::format(" sliced({}) on m",
                           names_[inputs_[input].dims[equation_.inputs[input].sharded_dim]]);
    }
    return "";
  }

  Result<std::vector<std::string>> lines_of(std::span<const Operation> side, std::size_t which,
                                            std::string_view prefix) {
    std::vector<std::string> lines;
    std::vector<std::vector<Value>> results;
    const auto value_of = [&](const Operand& operand) -> const Value& {
      return operand.operation < 0 ? inputs_[operand.result] : results[operand.operation][operand.result];
    };
    // Name results after the outputs they are.
    std::map<Operand, std::string> names;
    for (std::size_t k = 0; k < equation_.outputs.size(); ++k)
      names.try_emplace(root_of(side, equation_.outputs[k][which]), fmt::format("out{}", k));
    for (std::size_t k = 0; k < side.size(); ++k) {
      std::vector<Value> operands;
      for (const Operand& operand : side[k].operands) operands.push_back(value_of(operand));
      if (operands.empty())
        return user_error(fmt::format("plans have no operator for: {}", name(side[k].verb)));
      std::vector<std::string> called;
      for (std::int32_t result = 0; result < (side[k].verb == Verb::split ? side[k].details.parts : 1);
           ++result) {
        const auto known = names.find({static_cast<std::int32_t>(k), result});
        called.push_back(known != names.end() ? known->second
                                              : fmt::format("{}{}{}", prefix, k, result == 0 ? "" : "b"));
      }
      lines_ = &lines;
      WEFT_TRY(made, write(side[k], operands, called, fmt::format("{}{}", prefix, k)));
      results.push_back(std::move(made));
    }
    for (std::size_t k = 0; k < equation_.outputs.size(); ++k)
      if (const Value& value = value_of(equation_.outputs[k][which]); value.name != fmt::format("out{}", k))
        lines.push_back(fmt::format("out{} = {}", k, value.name));
    return lines;
  }

  void line(std::string_view name, std::string_view text) {
    lines_->push_back(fmt::format("{} = {}", name, text));
  }

  void require(std::string condition) {
    if (std::ranges::find(when_, condition) == when_.end()) when_.push_back(std::move(condition));
  }

  Result<std::vector<Value>> write(const Operation& operation, const std::vector<Value>& in,
                                   const std::vector<std::string>& names, const std::string& step) {
    const Details& details = operation.details;
    // The value before a fused relu is named as if the relu were a separate operation.
    const std::string called = !details.then_relu ? names[0] : names[0] != step ? step : step + "raw";
    Value out = in[0];
    out.name = called;
    switch (operation.verb) {
      case Verb::ewadd: line(called, fmt::format("add({})", names_of(in))); break;
      case Verb::ewmul:
      case Verb::smul: line(called, fmt::format("mul({})", names_of(in))); break;
      case Verb::sub: line(called, fmt::format("sub({})", names_of(in))); break;
      case Verb::square: line(called, fmt::format("mul({0}, {0})", in[0].name)); break;
      case Verb::relu: line(called, fmt::format("relu({})", in[0].name)); break;
      case Verb::identity: return std::vector{in[0]};
      case Verb::transpose:
        return std::vector{Value{in[0].name, transposed(in[0].dims, details),
                                 transposed(in[0].sizes, details), transposed(in[0].joints, details)}};
      case Verb::concat: write_concat(in, details.axis, out); break;
      case Verb::split: return write_split(in[0], details, names);
      case Verb::matmul:
        out.dims = {in[0].dims[0], in[1].dims[1]};
        out.sizes = {in[0].sizes[0], in[1].sizes[1]};
        out.joints = {in[0].joints[0], in[1].joints[1]};
        line(called, fmt::format("contract({}, to=[{}])", names_of(in), list(out.dims)));
        break;
      case Verb::conv2d: WEFT_TRY_STATUS(write_convolution(in, details, out)); break;
      case Verb::pool_max:
      case Verb::pool_avg: WEFT_TRY_STATUS(write_pool(operation, in[0], out)); break;
      case Verb::enlarge: return std::vector{write_enlarge(in[0], details, called)};
      default: WEFT_TRY_STATUS(write_communication(operation, in[0], called)); break;
    }
    if (!details.then_relu) return std::vector{out};
    Value active = out;
    active.name = names[0];
    line(active.name, fmt::format("relu({})", out.name));
    return std::vector{active};
  }

  void write_concat(std::span<const Value> in, int axis, Value& out) {
    line(out.name, fmt::format("concat({}, along={})", names_of(in), names_[in[0].dims[axis]]));
    // A split has two parts, so it can only undo a concat of two.
    if (in.size() == 2)
      out.joints[axis].push_back(in[0].sizes[axis]);
    else
      out.joints[axis].clear();
    for (const Value& other : in.subspan(1)) out.sizes[axis] += " + " + other.sizes[axis];
  }

  Result<std::vector<Value>> write_split(const Value& in, const Details& details,
                                         const std::vector<std::string>& names) {
    const int axis = details.axis;
    if (details.parts != 2 || in.joints[axis].empty()) return user_error("a split has no concat to undo");
    const std::string first = in.joints[axis].back(), whole = in.sizes[axis], along = names_[in.dims[axis]];
    Value head = in, tail = in;
    head.name = names[0];
    tail.name = names[1];
    line(head.name, fmt::format("slice({}, along={}, begin=0, end={})", in.name, along, first));
    line(tail.name, fmt::format("slice({}, along={}, begin={}, end={})", in.name, along, first, whole));
    head.sizes[axis] = first;
    tail.sizes[axis] = fmt::format("({}) - ({})", whole, first);
    head.joints[axis].pop_back();
    tail.joints[axis].clear();
    return std::vector{head, tail};
  }

  // Grouped convolutions need separate rules: here `groups` has its default.
  Status write_convolution(std::span<const Value> in, const Details& details, Value& out) {
    if (details.stride[0] != details.stride[1]) return user_error("strides differ down and across");
    WEFT_TRY(padding, padding_text(in[1], details));
    out.dims = {in[0].dims[0], in[1].dims[0], in[0].dims[2], in[0].dims[3]};
    out.sizes = {in[0].sizes[0], in[1].sizes[0], in[0].sizes[2], in[0].sizes[3]};
    out.joints = {in[0].joints[0], in[1].joints[0], {}, {}};
    std::string text = fmt::format("conv2d({}", names_of(in));
    if (details.stride[0] != 1) text += fmt::format(", stride={}", details.stride[0]);
    line(out.name, text + padding + ")");
    return {};
  }

  // If the equation leaves the kernel open, it must be square and odd, and the padding follows from
  // it.
  Result<std::string> padding_text(const Value& weights, const Details& details) {
    const std::string &rows = weights.sizes[2], &columns = weights.sizes[3];
    if (details.kernel[0] == 0) {
      if (!details.same_padding) return std::string();
      if (details.stride[0] != 1) return user_error("padding of a stride depends on the image");
      require(fmt::format("odd({})", rows));
      if (rows != columns) require(fmt::format("{} = {}", rows, columns));
      return fmt::format(", padding=({} - 1) / 2", rows);
    }
    for (const std::size_t d : {0, 1})
      if (weights.sizes[2 + d].starts_with("size("))
        require(fmt::format("{} = {}", weights.sizes[2 + d], details.kernel[d]));
    WEFT_TRY(down, padding_of(details, 0));
    WEFT_TRY(across, padding_of(details, 1));
    std::string text;
    if (down != 0) text += fmt::format(", padding={}", down);
    if (across != down) text += fmt::format(", padding_w={}", across);
    return text;
  }

  Status write_pool(const Operation& operation, const Value& in, Value& out) {
    const Details& details = operation.details;
    if (details.kernel[0] != details.kernel[1] || details.stride[0] != details.stride[1] ||
        details.kernel[0] == 0)
      return user_error("pools have square windows");
    WEFT_TRY(padding, padding_of(details, 0));
    line(out.name, fmt::format("{}({}, size={}, stride={}, padding={})",
                               operation.verb == Verb::pool_max ? "max-pool" : "avg-pool", in.name,
                               details.kernel[0], details.stride[0], padding));
    out.joints[2].clear();
    out.joints[3].clear();
    return {};
  }

  Value write_enlarge(const Value& in, const Details& details, const std::string& called) {
    Value out = in;
    for (const std::size_t d : {0, 1}) {
      const std::string size = in.sizes[2 + d], half = fmt::format("({} - {}) / 2", details.kernel[d], size);
      const std::string from = out.name;
      out.name = d == 0 ? called + "h" : called;
      line(out.name,
           fmt::format("pad({}, along={}, before={}, after={})", from, names_[in.dims[2 + d]], half, half));
      out.sizes[2 + d] = fmt::format("{}", details.kernel[d]);
      if (size.starts_with("size(")) {
        require(fmt::format("odd({})", size));
        require(fmt::format("{} <= {}", size, details.kernel[d]));
      }
    }
    return out;
  }

  Status write_communication(const Operation& operation, const Value& in, const std::string& called) {
    const Details& details = operation.details;
    const auto along = [&](int axis) { return names_[in.dims[axis]]; };
    if (!details.groups.empty()) return user_error("groups of ranks are mesh axes in a plan");
    switch (operation.verb) {
      case Verb::all_reduce:
        if (details.kind == ReduceKind::mean) return user_error("a mean over ranks is a sum and a factor");
        line(called, fmt::format("all-reduce({}, axis=m, kind={})", in.name, word(details.kind)));
        return {};
      case Verb::reduce_scatter:
        line(called, fmt::format("reduce-scatter({}, axis=m, along={})", in.name, along(details.axis)));
        return {};
      case Verb::all_gather:
        line(called, fmt::format("all-gather({}, axis=m, along={})", in.name, along(details.axis)));
        return {};
      case Verb::shard:
        line(called, fmt::format("slice-across({}, axis=m, along={})", in.name, along(details.axis)));
        return {};
      case Verb::all_to_all:
        line(called, fmt::format("all-to-all({}, axis=m, from={}, to={})", in.name, along(details.other_axis),
                                 along(details.axis)));
        return {};
      case Verb::broadcast:
        line(called, fmt::format("broadcast-from({}, axis=m, root={})", in.name, details.root));
        return {};
      case Verb::permute:
        line(called, fmt::format("permute-ranks({}, axis=m, by={})", in.name, details.shift));
        return {};
      default: return user_error(fmt::format("plans have no operator for: {}", name(operation.verb)));
    }
  }

  const Equation& equation_;
  EquationIndices indices_;
  LocalValues local_;
  std::vector<std::string> names_;  // by index; empty if another index's variable covers it
  std::vector<Value> inputs_;
  std::vector<std::string> when_;
  std::vector<std::string>* lines_ = nullptr;
};

}  // namespace

Result<std::optional<std::string>> rule_from_equation(const Equation& equation, std::string_view name,
                                                      std::string_view why, std::string_view cite,
                                                      LocalValues local) {
  WEFT_TRY(indices, EquationIndices::find(equation));
  return Translation(equation, std::move(indices), local).text(name, why, cite);
}

}  // namespace weft::equation
