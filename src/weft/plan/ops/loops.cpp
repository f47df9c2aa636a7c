#include "weft/plan/ops/loops.h"

#include <algorithm>

#include <fmt/format.h>

namespace weft::ops {

using plan::Dim;
using plan::NodeView;

namespace {

// Adds the indices of input i. Fails if a size differs from that of an earlier input.
Status join(const NodeView& node, std::size_t i, DimList& joined) {
  for (const Dim& dim : node.input_type(i).dims) {
    const auto found = std::ranges::find(joined, dim.index, &Dim::index);
    if (found == joined.end()) {
      joined.push_back(dim);
    } else if (found->size != dim.size) {
      std::size_t earlier = 0;
      while (earlier == i || !node.input_type(earlier).has(dim.index)) ++earlier;
      const auto size_in = [&](std::size_t operand) { return node.input_type(operand).size_of(dim.index); };
      return user_error(fmt::format("index {} has size {} in operand {} but {} in operand {}",
                                    node.text(dim.index), size_in(std::min(earlier, i)), std::min(earlier, i),
                                    size_in(std::max(earlier, i)), std::max(earlier, i)),
                        "rename one of the two, or slice the longer");
    }
  }
  return {};
}

}  // namespace

Result<DimList> join_inputs(const NodeView& node) {
  DimList joined;
  for (std::size_t i = 0; i < node.input_count(); ++i) WEFT_TRY_STATUS(join(node, i, joined));
  return joined;
}

Result<DimList> join_inputs_widest_first(const NodeView& node) {
  std::size_t widest = 0;
  for (std::size_t i = 1; i < node.input_count(); ++i)
    if (node.input_type(i).rank() > node.input_type(widest).rank()) widest = i;
  DimList joined;
  WEFT_TRY_STATUS(join(node, widest, joined));
  for (std::size_t i = 0; i < node.input_count(); ++i)
    if (i != widest) WEFT_TRY_STATUS(join(node, i, joined));
  return joined;
}

Status same_dtype(const NodeView& node, std::size_t first) {
  for (std::size_t i = first + 1; i < node.input_count(); ++i) {
    const plan::DType a = node.input_type(first).dtype, b = node.input_type(i).dtype;
    if (a != b)
      return user_error(fmt::format("operands differ in dtype: {}, {}", name(a), name(b)),
                        "cast one of them");
  }
  return {};
}

Status same_type(const NodeView& node, std::size_t a, std::size_t b) {
  const plan::Type left = node.input_type(a), right = node.input_type(b);
  if (left.dtype == right.dtype && std::ranges::equal(left.dims, right.dims)) return {};
  const Symbols& symbols = node.graph().symbols();
  return user_error(fmt::format("operands {} and {} must have one type, found {} and {}", a, b,
                                print(left, symbols), print(right, symbols)));
}

Status expect(const NodeView& node, std::size_t operand, Elements elements) {
  const plan::DType dtype = node.input_type(operand).dtype;
  const auto complain = [&](std::string_view kind) -> Status {
    return user_error(fmt::format("operand {} must be {}, found {}", operand, kind, name(dtype)));
  };
  if (plan::is_f8(dtype) && elements != Elements::any)
    return user_error(fmt::format("operand {} is {}, which supports only storage and matrix products",
                                  operand, name(dtype)),
                      "cast it to bf16 or f32");
  switch (elements) {
    case Elements::any: return {};
    case Elements::number: return dtype == plan::DType::boolean ? complain("a number") : Status();
    case Elements::real: return is_real(dtype) ? Status() : complain("real");
    case Elements::integer: return is_integer(dtype) ? Status() : complain("integer");
    case Elements::boolean: return dtype == plan::DType::boolean ? Status() : complain("bool");
  }
  return {};
}

Status expect_step(const NodeView& node, std::size_t operand) {
  const plan::Type type = node.input_type(operand);
  if (is_integer(type.dtype) && type.rank() == 0) return {};
  return user_error(fmt::format("operand {} must be one integer, the step: expected i64[], found {}", operand,
                                print(type, node.graph().symbols())));
}

Status expect_rate(const NodeView& node, std::size_t operand) {
  if (operand >= node.input_count()) return {};
  const plan::Type type = node.input_type(operand);
  if (is_real(type.dtype) && type.rank() == 0) return {};
  return user_error(fmt::format("operand {} must be one real number, the rate: expected f32[], found {}",
                                operand, print(type, node.graph().symbols())));
}

Status expect_between(std::string_view what, std::int64_t value, std::int64_t low, std::int64_t high) {
  if (low <= value && value <= high) return {};
  return user_error(fmt::format("{} must be from {} to {}, found {}", what, low, high, value));
}

Result<DimList> pick(std::span<const Dim> dims, std::span<const Symbol> wanted, const NodeView& node) {
  DimList picked;
  for (const Symbol index : wanted) {
    const auto found = std::ranges::find(dims, index, &Dim::index);
    if (found == dims.end())
      return user_error(fmt::format("index {} is not among {}", node.text(index),
                                    print_indices(dims, node.graph().symbols())));
    if (std::ranges::find(picked, index, &Dim::index) != picked.end())
      return user_error(fmt::format("index {} is named twice", node.text(index)));
    picked.push_back(*found);
  }
  return picked;
}

Status expect_over(const NodeView& node, std::size_t operand, std::span<const Symbol> over) {
  if (over.empty())
    return user_error(fmt::format("{} needs at least one index to run over", node.op().name()));
  WEFT_TRY_STATUS(pick(node.input_type(operand).dims, over, node));
  return {};
}

DimList without(std::span<const Dim> dims, std::span<const Symbol> unwanted) {
  DimList kept;
  for (const Dim& dim : dims)
    if (!contains(unwanted, dim.index)) kept.push_back(dim);
  return kept;
}

bool contains(std::span<const Symbol> indices, Symbol index) {
  return std::ranges::find(indices, index) != indices.end();
}

std::vector<std::int64_t> sizes_of(std::span<const Dim> dims) {
  std::vector<std::int64_t> sizes;
  for (const Dim& dim : dims) sizes.push_back(dim.size);
  return sizes;
}

std::vector<Symbol> indices_of(std::span<const Dim> dims) {
  std::vector<Symbol> indices;
  for (const Dim& dim : dims) indices.push_back(dim.index);
  return indices;
}

std::int64_t points_of(std::span<const Dim> dims) {
  std::int64_t points = 1;
  for (const Dim& dim : dims) points *= dim.size;
  return points;
}

plan::Signature loops_by_name(const NodeView& node,
                              const std::function<Behaviour(const plan::Loop&)>& decide) {
  plan::Signature signature;
  const auto loop_of = [&](const Dim& dim) -> plan::Loop& {
    const auto found = std::ranges::find(signature.loops, dim.index, &plan::Loop::index);
    if (found != signature.loops.end()) return *found;
    return signature.loops.emplace_back(
        plan::Loop{.index = dim.index,
                   .size = dim.size,
                   .operands = std::vector<std::int8_t>(node.input_count(), -1),
                   .results = std::vector<std::int8_t>(node.result_count(), -1)});
  };
  for (std::size_t i = 0; i < node.input_count(); ++i) {
    const plan::Type type = node.input_type(i);
    for (std::size_t d = 0; d < type.rank(); ++d)
      loop_of(type.dims[d]).operands[i] = static_cast<std::int8_t>(d);
  }
  for (std::size_t k = 0; k < node.result_count(); ++k) {
    const plan::Type type = node.result_type(k);
    for (std::size_t d = 0; d < type.rank(); ++d)
      loop_of(type.dims[d]).results[k] = static_cast<std::int8_t>(d);
  }
  for (plan::Loop& loop : signature.loops) {
    const Behaviour behaviour = decide(loop);
    loop.role = behaviour.role;
    loop.monoid = behaviour.monoid;
    loop.positional = behaviour.positional;
  }
  return signature;
}

plan::Signature parallel_loops(const NodeView& node) {
  return loops_by_name(node, [](const plan::Loop&) { return kParallel; });
}

plan::Signature parallel_loops_except(const NodeView& node, std::span<const Symbol> over) {
  return loops_by_name(
      node, [&](const plan::Loop& loop) { return contains(over, loop.index) ? kWhole : kParallel; });
}

plan::Loop loop_at(Dim dim, Behaviour behaviour, std::initializer_list<int> operands,
                   std::initializer_list<int> results) {
  plan::Loop loop{.index = dim.index,
                  .size = dim.size,
                  .role = behaviour.role,
                  .monoid = behaviour.monoid,
                  .positional = behaviour.positional,
                  .operands = {},
                  .results = {}};
  for (const int at : operands) loop.operands.push_back(static_cast<std::int8_t>(at));
  for (const int at : results) loop.results.push_back(static_cast<std::int8_t>(at));
  return loop;
}

plan::Work bytes_of(const NodeView& node) {
  plan::Work work;
  for (std::size_t i = 0; i < node.input_count(); ++i)
    work.bytes_read += static_cast<double>(node.input_type(i).bytes());
  for (std::size_t k = 0; k < node.result_count(); ++k)
    work.bytes_written += static_cast<double>(node.result_type(k).bytes());
  return work;
}

plan::Work flops_each(const NodeView& node, double flops) {
  plan::Work work = bytes_of(node);
  work.flops = flops * static_cast<double>(node.result_type(0).elements());
  return work;
}

}  // namespace weft::ops
