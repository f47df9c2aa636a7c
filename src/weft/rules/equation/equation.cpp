#include "weft/rules/equation/equation.h"

#include <algorithm>
#include <span>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace weft::equation {
namespace {

struct VerbRow {
  Verb verb;
  std::string_view name;
  std::size_t operands;
};

constexpr std::array kVerbs = {
    VerbRow{Verb::matmul, "matmul", 2},
    VerbRow{Verb::conv2d, "conv2d", 2},
    VerbRow{Verb::ewadd, "ewadd", 2},
    VerbRow{Verb::ewmul, "ewmul", 2},
    VerbRow{Verb::smul, "smul", 2},
    VerbRow{Verb::relu, "relu", 1},
    VerbRow{Verb::concat, "concat", 1},
    VerbRow{Verb::split, "split", 1},
    VerbRow{Verb::transpose, "transpose", 1},
    VerbRow{Verb::pool_max, "pool_max", 1},
    VerbRow{Verb::pool_avg, "pool_avg", 1},
    VerbRow{Verb::enlarge, "enlarge", 1},
    VerbRow{Verb::identity, "identity", 1},
    VerbRow{Verb::const_eye, "const_eye", 0},
    VerbRow{Verb::const_conv_id, "const_conv_id", 0},
    VerbRow{Verb::const_pool, "const_pool", 0},
    VerbRow{Verb::const_one, "const_one", 0},
    VerbRow{Verb::linear, "linear", 2},
    VerbRow{Verb::partition, "partition", 1},
    VerbRow{Verb::combine, "combine", 1},
    VerbRow{Verb::replicate, "replicate", 1},
    VerbRow{Verb::reduce, "reduce", 1},
    VerbRow{Verb::all_reduce, "all_reduce", 1},
    VerbRow{Verb::reduce_scatter, "reduce_scatter", 1},
    VerbRow{Verb::all_gather, "all_gather", 1},
    VerbRow{Verb::all_to_all, "all_to_all", 1},
    VerbRow{Verb::broadcast, "broadcast", 1},
    VerbRow{Verb::permute, "permute", 1},
    VerbRow{Verb::shard, "shard", 1},
    VerbRow{Verb::sub, "sub", 2},
    VerbRow{Verb::scale, "scale", 1},
    VerbRow{Verb::square, "square", 1},
    VerbRow{Verb::sum, "sum", 1},
};

const VerbRow& row_of(Verb verb) {
  const VerbRow& row = kVerbs[static_cast<std::size_t>(verb)];
  WEFT_CHECK(row.verb == verb);
  return row;
}

std::string_view name(ReduceKind kind) {
  switch (kind) {
    case ReduceKind::sum: return "sum";
    case ReduceKind::mean: return "mean";
    case ReduceKind::max: return "max";
    case ReduceKind::min: return "min";
  }
  return "sum";
}

// The relevant attributes: kernels, axes, and anything that differs from its default.
std::string print_details(const Operation& operation) {
  const Details& d = operation.details;
  std::vector<std::string> words;
  const auto windows = [&] {
    if (d.kernel[0] > 0) words.push_back(fmt::format("kernel={}x{}", d.kernel[0], d.kernel[1]));
  };
  switch (operation.verb) {
    case Verb::conv2d:
    case Verb::pool_max:
    case Verb::pool_avg:
      windows();
      if (d.stride != std::array<std::int32_t, 2>{1, 1})
        words.push_back(fmt::format("stride={}x{}", d.stride[0], d.stride[1]));
      if (!d.same_padding) words.emplace_back("pad=valid");
      break;
    case Verb::enlarge:
    case Verb::const_conv_id:
    case Verb::const_pool: windows(); break;
    case Verb::concat:
    case Verb::split: words.push_back(fmt::format("axis={}", d.axis)); break;
    case Verb::transpose:
      if (!d.order.empty()) words.push_back(fmt::format("perm=[{}]", fmt::join(d.order, ",")));
      break;
    case Verb::partition:
    case Verb::combine:
    case Verb::replicate:
    case Verb::reduce: words.push_back(fmt::format("dim={}, degree={}", d.axis, d.parts)); break;
    case Verb::reduce_scatter:
    case Verb::all_gather:
    case Verb::shard: words.push_back(fmt::format("dim={}", d.axis)); break;
    case Verb::all_to_all: words.push_back(fmt::format("split={}, concat={}", d.axis, d.other_axis)); break;
    case Verb::broadcast: words.push_back(fmt::format("root={}", d.root)); break;
    case Verb::permute: words.push_back(fmt::format("shift={}", d.shift)); break;
    case Verb::scale:
      words.push_back(d.factor_is_one_over_ranks ? "factor=1/N" : fmt::format("factor={}", d.factor));
      break;
    case Verb::sum:
      if (d.axis >= 0) words.push_back(fmt::format("dim={}", d.axis));
      break;
    default: break;
  }
  if (d.kind != ReduceKind::sum) words.push_back(fmt::format("reduce={}", name(d.kind)));
  if (d.then_relu) words.emplace_back("act=relu");
  if (!d.groups.empty()) words.push_back(fmt::format("groups={}", d.groups));
  return words.empty() ? std::string() : fmt::format("{{{}}}", fmt::join(words, ", "));
}

// A graph that shares results may be far longer as a term; `room` is the number of operations that
// may still be written out.
std::string print_operand(const Equation& equation, std::span<const Operation> side, Operand operand,
                          int& room) {
  if (operand.operation < 0) return equation.inputs[static_cast<std::size_t>(operand.result)].name;
  if (room-- <= 0) return fmt::format("%{}.{}", operand.operation, operand.result);
  const Operation& operation = side[static_cast<std::size_t>(operand.operation)];
  std::vector<std::string> operands;
  for (const Operand inner : operation.operands)
    operands.push_back(print_operand(equation, side, inner, room));
  const std::string text =
      fmt::format("{}{}({})", name(operation.verb), print_details(operation), fmt::join(operands, ", "));
  return result_count(operation) > 1 ? fmt::format("{}.{}", text, operand.result) : text;
}

Status check_operand(const Equation& equation, std::span<const Operation> before, Operand operand) {
  if (operand.operation < 0) {
    if (operand.result >= 0 && static_cast<std::size_t>(operand.result) < equation.inputs.size()) return {};
    return user_error(
        fmt::format("no input has number {}: there are {}", operand.result, equation.inputs.size()));
  }
  if (static_cast<std::size_t>(operand.operation) >= before.size())
    return user_error(fmt::format("operation {} is used before it is made", operand.operation));
  const std::size_t results = result_count(before[static_cast<std::size_t>(operand.operation)]);
  if (operand.result >= 0 && static_cast<std::size_t>(operand.result) < results) return {};
  return user_error(
      fmt::format("operation {} has no result {}: it has {}", operand.operation, operand.result, results));
}

Status check_side(const Equation& equation, std::span<const Operation> side) {
  for (std::size_t k = 0; k < side.size(); ++k) {
    const std::size_t found = side[k].operands.size(), least = operand_count(side[k].verb);
    if (found < least || (found > least && side[k].verb != Verb::concat))
      return user_error(fmt::format("{} takes {} operand{}, found {}", name(side[k].verb), least,
                                    least == 1 ? "" : "s", found));
    for (const Operand operand : side[k].operands)
      WEFT_TRY_STATUS(check_operand(equation, side.first(k), operand));
  }
  return {};
}

}  // namespace

std::string_view name(Verb verb) { return row_of(verb).name; }

std::optional<Verb> find_verb(std::string_view name) {
  if (name == "add") return Verb::ewadd;
  if (name == "mul") return Verb::ewmul;
  const auto found = std::ranges::find(kVerbs, name, &VerbRow::name);
  return found == kVerbs.end() ? std::nullopt : std::optional(found->verb);
}

std::span<const std::string_view> verb_names() {
  static const auto names = [] {
    std::array<std::string_view, kVerbs.size()> all;
    std::ranges::transform(kVerbs, all.begin(), &VerbRow::name);
    return all;
  }();
  return names;
}

bool is_constant(Verb verb) { return operand_count(verb) == 0; }
std::size_t operand_count(Verb verb) { return row_of(verb).operands; }

std::size_t result_count(const Operation& operation) {
  return operation.verb == Verb::split ? static_cast<std::size_t>(std::max(operation.details.parts, 1)) : 1;
}

Status check_form(const Equation& equation) {
  WEFT_TRY_STATUS(check_side(equation, equation.source));
  WEFT_TRY_STATUS(check_side(equation, equation.target));
  if (equation.outputs.empty()) return user_error("an equation needs at least one output");
  for (const auto& [source, target] : equation.outputs) {
    WEFT_TRY_STATUS(check_operand(equation, equation.source, source));
    WEFT_TRY_STATUS(check_operand(equation, equation.target, target));
  }
  return {};
}

std::string print(const Equation& equation) {
  constexpr int kMostWritten = 64;
  std::vector<std::string> parts;
  for (const auto& [source, target] : equation.outputs) {
    int left = kMostWritten, right = kMostWritten;
    parts.push_back(fmt::format("{} = {}", print_operand(equation, equation.source, source, left),
                                print_operand(equation, equation.target, target, right)));
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

}  // namespace weft::equation
