// weft/plan/ops/loops.h -- joining indices by name, and checks for shape inference.
#pragma once
#include <functional>
#include <initializer_list>
#include <span>
#include <string_view>
#include <vector>

#include "weft/base/inline_vector.h"
#include "weft/base/result.h"
#include "weft/plan/graph/graph.h"

namespace weft::ops {

using DimList = InlineVector<plan::Dim, 8>;

// The union of the inputs' indices in order of first appearance. Fails if two inputs give an index
// different sizes: "index d has size 784 in operand 0 but 512 in operand 1".
Result<DimList> join_inputs(const plan::NodeView& node);

// The same, beginning with the input that has the most indices, so that a pointwise node keeps the
// order of its largest operand: scores[b,h,s,t] masked by t <= s remain [b,h,s,t].
Result<DimList> join_inputs_widest_first(const plan::NodeView& node);

// Fails unless all inputs from `first` on have the same dtype: "operands differ in dtype: f32,
// bf16".
Status same_dtype(const plan::NodeView& node, std::size_t first = 0);

// Fails unless the inputs have the same type, including the order of indices.
Status same_type(const plan::NodeView& node, std::size_t a, std::size_t b);

enum class Elements : std::uint8_t { any, number, real, integer, boolean };

// Fails unless the elements are of that kind: "operand 1 must be integer, found f32".
Status expect(const plan::NodeView& node, std::size_t operand, Elements elements);

// Fails unless the operand is one integer, the number of a training step.
Status expect_step(const plan::NodeView& node, std::size_t operand);

// Fails unless the operand is one real number or missing: a schedule's factor on the learning rate.
Status expect_rate(const plan::NodeView& node, std::size_t operand);

// Fails unless low <= value <= high: "stride must be from 1 to 1099511627776, found 0".
Status expect_between(std::string_view what, std::int64_t value, std::int64_t low, std::int64_t high);

// More than any real stride, padding or count. Sums and products of one with a size still fit in 64
// bits.
constexpr std::int64_t kLargestStep = std::int64_t{1} << 40;

// The dims named by `wanted`, in that order, from `dims`. Fails if an index is missing or named
// twice, and lists the available indices: "index q is not among [b, d]".
Result<DimList> pick(std::span<const plan::Dim> dims, std::span<const Symbol> wanted,
                     const plan::NodeView& node);

// Fails unless `over` names at least one index, and only indices of that operand.
Status expect_over(const plan::NodeView& node, std::size_t operand, std::span<const Symbol> over);

// The dims not in `unwanted`, in their own order.
DimList without(std::span<const plan::Dim> dims, std::span<const Symbol> unwanted);

bool contains(std::span<const Symbol> indices, Symbol index);
std::vector<std::int64_t> sizes_of(std::span<const plan::Dim> dims);
std::vector<Symbol> indices_of(std::span<const plan::Dim> dims);
std::int64_t points_of(std::span<const plan::Dim> dims);

struct Behaviour {
  plan::Role role;
  plan::Monoid monoid = plan::Monoid::none;
  bool positional = false;
};
constexpr Behaviour kParallel = {plan::Role::parallel};
constexpr Behaviour kPlaced = {plan::Role::parallel, plan::Monoid::none, true};
constexpr Behaviour kSummed = {plan::Role::reduced, plan::Monoid::sum};
constexpr Behaviour kWhole = {plan::Role::whole};

// One loop per index name in the inputs and results. `decide` is passed the loop with its dims
// filled in and returns its behaviour.
plan::Signature loops_by_name(const plan::NodeView& node,
                              const std::function<Behaviour(const plan::Loop&)>& decide);
// Common cases: all loops parallel; or `over` whole and the rest parallel.
plan::Signature parallel_loops(const plan::NodeView& node);
plan::Signature parallel_loops_except(const plan::NodeView& node, std::span<const Symbol> over);

// One loop, dim by dim, for operators whose indices are positional or renamed.
plan::Loop loop_at(plan::Dim dim, Behaviour behaviour, std::initializer_list<int> operands,
                   std::initializer_list<int> results);

// Each operand is read once and each result written once.
plan::Work bytes_of(const plan::NodeView& node);
// The same, plus `flops` operations per element of result 0.
plan::Work flops_each(const plan::NodeView& node, double flops);

}  // namespace weft::ops
