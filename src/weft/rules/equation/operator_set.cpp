#include "weft/rules/equation/operator_set.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "weft/base/nearest.h"

namespace weft::equation {
namespace {

// The generator's terms have at most two operands and two results, and store inputs as a bit mask.
constexpr std::int32_t kMostOperands = 2, kMostResults = 2, kMostInputs = 64;
constexpr std::size_t kMostOperations = 1000, kMostRank = 8;
constexpr std::int64_t kMostSize = 16;  // enough for 16 ranks; graphs are run many times, so sizes are small

OperationKind unary(Verb verb, Details details = {}) { return {verb, std::move(details), 1, 1, false}; }
OperationKind binary(Verb verb, Details details = {}) { return {verb, std::move(details), 2, 1, false}; }
OperationKind commutative(Verb verb) { return {verb, {}, 2, 1, true}; }
OperationKind constant(Verb verb, std::vector<std::int64_t> sizes, Details details = {}) {
  return {verb, std::move(details), 0, 1, false, std::move(sizes)};
}

Details along(std::int32_t axis) {
  Details details;
  details.axis = axis;
  return details;
}
Details along_with_degree(std::int32_t axis, std::int32_t degree) {
  Details details = along(axis);
  details.parts = degree;
  return details;
}
Details window(std::int32_t height, std::int32_t width) {
  Details details;
  details.kernel = {height, width};
  return details;
}
Details with_relu() {
  Details details;
  details.then_relu = true;
  return details;
}
Details transposed() {
  Details details;
  details.order = {1, 0};
  return details;
}
Details reducing(ReduceKind kind) {
  Details details;
  details.kind = kind;
  return details;
}

InputKind weights(std::string letter, std::vector<std::int64_t> sizes, std::int32_t count) {
  return {std::move(letter), std::move(sizes), count, Holding::single, 0, true};
}

void add_concats_and_splits(OperatorSet& set, std::int32_t axes) {
  for (std::int32_t axis = 0; axis < axes; ++axis) {
    set.operations.push_back(binary(Verb::concat, along(axis)));
    set.operations.push_back({Verb::split, along(axis), 1, 2, false});
  }
}

// TASO's 26 operations and 20 inputs (SOSP'19, public code). A convolution's kernel follows from
// its weights, so one convolution here covers TASO's 3x3, 1x3 and 3x1. Likewise one transpose
// covers two that differ in when the data moves.
OperatorSet taso() {
  OperatorSet set;
  set.name = "taso";
  set.inputs = {{"a", {2, 3}, 4},
                {"b", {3, 3}, 3},
                {"x", {2, 2, 3, 4}, 3},
                weights("w", {2, 2, 3, 3}, 3),
                weights("u", {2, 2, 1, 3}, 3),
                weights("v", {2, 2, 3, 1}, 3),
                weights("d", {2, 1, 3, 3}, 1),
                weights("c", {}, 2)};
  OperationKind product = binary(Verb::matmul);
  product.least_rank = product.most_rank = 2;
  OperationKind convolution = binary(Verb::conv2d), convolution_relu = binary(Verb::conv2d, with_relu());
  convolution.second_is_weight = convolution_relu.second_is_weight = true;
  OperationKind enlarge = unary(Verb::enlarge, window(3, 3));
  enlarge.must_change_shape = true;
  OperationKind relu = unary(Verb::relu), scaled = binary(Verb::smul);
  relu.least_rank = scaled.least_rank = 1;
  set.operations = {commutative(Verb::ewadd),
                    commutative(Verb::ewmul),
                    scaled,
                    relu,
                    product,
                    unary(Verb::transpose, transposed()),
                    convolution,
                    convolution_relu,
                    unary(Verb::pool_avg, window(3, 3)),
                    unary(Verb::pool_max, window(3, 3)),
                    enlarge,
                    constant(Verb::const_eye, {3, 3}),
                    constant(Verb::const_conv_id, {2, 2, 3, 3}, window(3, 3)),
                    constant(Verb::const_pool, {2, 1, 3, 3}, window(3, 3)),
                    constant(Verb::const_one, {2, 3})};
  add_concats_and_splits(set, 2);
  return set;
}

// Unity's operations (OSDI'22, the published rule file): [replica, rows, columns], degree 2.
OperatorSet unity() {
  OperatorSet set;
  set.name = "unity";
  set.inputs = {{"x", {1, 2, 4}, 3}, {"w", {1, 4, 4}, 3}};
  set.operations = {commutative(Verb::ewadd), commutative(Verb::ewmul), unary(Verb::relu),
                    binary(Verb::linear), binary(Verb::linear, with_relu())};
  for (const Verb verb : {Verb::partition, Verb::combine, Verb::replicate, Verb::reduce})
    for (std::int32_t axis = 0; axis < 3; ++axis)
      set.operations.push_back(unary(verb, along_with_degree(axis, 2)));
  add_concats_and_splits(set, 3);
  return set;
}

// Collectives, with elementwise operations and products between them.
OperatorSet collectives() {
  OperatorSet set;
  set.name = "collectives";
  set.ranks = {2, 4};
  // Of equivalent rules, the one about earlier inputs is kept. Local arrays come first, since what
  // holds for them holds for all.
  set.inputs = {{"l", {4, 4}, 2, Holding::local},
                {"p", {4, 4}, 2, Holding::sharded, 0},
                {"q", {4, 4}, 2, Holding::sharded, 1},
                {"r", {4, 4}, 2, Holding::replicated}};
  Details one_over_ranks;
  one_over_ranks.factor_is_one_over_ranks = true;
  Details next;
  next.shift = 1;
  Details rows_to_columns = along(0), columns_to_rows = along(1);
  rows_to_columns.other_axis = 1;
  columns_to_rows.other_axis = 0;
  set.operations = {commutative(Verb::ewadd),
                    commutative(Verb::ewmul),
                    unary(Verb::relu),
                    unary(Verb::scale, one_over_ranks),
                    unary(Verb::transpose, transposed()),
                    binary(Verb::matmul),
                    unary(Verb::all_reduce, reducing(ReduceKind::sum)),
                    unary(Verb::all_reduce, reducing(ReduceKind::max)),
                    unary(Verb::all_reduce, reducing(ReduceKind::mean)),
                    unary(Verb::reduce_scatter, along(0)),
                    unary(Verb::reduce_scatter, along(1)),
                    unary(Verb::all_gather, along(0)),
                    unary(Verb::all_gather, along(1)),
                    unary(Verb::shard, along(0)),
                    unary(Verb::shard, along(1)),
                    unary(Verb::all_to_all, rows_to_columns),
                    unary(Verb::all_to_all, columns_to_rows),
                    unary(Verb::broadcast),
                    unary(Verb::permute, next)};
  add_concats_and_splits(set, 2);
  return set;
}

}  // namespace

Result<OperatorSet> preset(std::string_view name) {
  if (name == "taso") return taso();
  if (name == "unity") return unity();
  if (name == "collectives") return collectives();
  constexpr std::array<std::string_view, 3> kNames = {"taso", "unity", "collectives"};
  return user_error(fmt::format("expected an operator set taso, unity or collectives, found {}", name),
                    did_you_mean(name, kNames));
}

Status check(const OperatorSet& set) {
  std::int64_t inputs = 0;
  for (const InputKind& kind : set.inputs) {
    if (kind.count < 1 || kind.count > kMostInputs)
      return user_error(fmt::format("expected 1 to {} inputs of a kind, found {} of {}", kMostInputs,
                                    kind.count, kind.letter));
    inputs += kind.count;
    const auto too_large = [](std::int64_t size) { return size < 1 || size > kMostSize; };
    if (kind.sizes.size() > kMostRank || std::any_of(kind.sizes.begin(), kind.sizes.end(), too_large))
      return user_error(fmt::format("expected at most {} sizes from 1 to {} of input {}", kMostRank,
                                    kMostSize, kind.letter));
    if (kind.holding != Holding::sharded) continue;
    const auto dim = static_cast<std::size_t>(kind.sharded_dim);
    for (const std::int32_t ranks : set.ranks)
      if (dim >= kind.sizes.size() || ranks < 1 || kind.sizes[dim] % ranks != 0)
        return user_error(fmt::format("the ranks do not divide dim {} of input {}: {} ranks",
                                      kind.sharded_dim, kind.letter, ranks));
  }
  if (inputs == 0 || inputs > kMostInputs)
    return user_error(fmt::format("expected 1 to {} inputs in all, found {}", kMostInputs, inputs));
  if (set.operations.empty() || set.operations.size() > kMostOperations)
    return user_error(
        fmt::format("expected 1 to {} operations, found {}", kMostOperations, set.operations.size()));
  for (const OperationKind& kind : set.operations) {
    if (kind.operands < 0 || kind.operands > kMostOperands || kind.results < 1 || kind.results > kMostResults)
      return user_error(fmt::format("expected at most {} operands and {} results of {}, found {} and {}",
                                    kMostOperands, kMostResults, name(kind.verb), kind.operands,
                                    kind.results));
  }
  for (const std::int32_t ranks : set.ranks)
    if (ranks < 1 || ranks > 64) return user_error(fmt::format("expected 1 to 64 ranks, found {}", ranks));
  return {};
}

}  // namespace weft::equation
