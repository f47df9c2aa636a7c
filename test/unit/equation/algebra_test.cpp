// The meaning of published rewrite operations: shape, split points and values of each.
#include "weft/rules/equation/algebra.h"

#include <gtest/gtest.h>

#include "weft/rules/equation/lower_operation.h"

namespace weft::equation {
namespace {

using ops::Tensor;

Operation operation(Verb verb, Details details = {}) {
  return {.verb = verb, .operands = {}, .details = details};
}

Shape shape(std::vector<std::int64_t> sizes) { return shape_of(std::move(sizes)); }

// The first result, on operands whose values count up from 1.
Tensor<double> value(const Operation& op, const std::vector<Shape>& operands) {
  Algebra algebra;
  const auto prepared = algebra.prepare(op, operands);
  if (!prepared.ok()) throw std::runtime_error(prepared.error().message);
  std::vector<Tensor<double>> inputs;
  for (const Shape& operand : operands) {
    Tensor<double> tensor{operand.sizes, {}};
    for (std::int64_t k = 0; k < elements_of(operand); ++k) tensor.data.push_back(static_cast<double>(k + 1));
    inputs.push_back(std::move(tensor));
  }
  std::vector<const Tensor<double>*> pointers;
  for (const auto& input : inputs) pointers.push_back(&input);
  std::vector<Tensor<double>> results(algebra.results(**prepared).size());
  algebra.run<double>(**prepared, pointers, results, {});
  EXPECT_EQ(results[0].sizes, algebra.results(**prepared)[0].sizes);
  return results[0];
}

using Numbers = std::vector<double>;

TEST(Algebra, MultipliesRowsWithColumns) {
  EXPECT_EQ(value(operation(Verb::matmul), {shape({1, 2}), shape({2, 2})}).data, (Numbers{7, 10}));
  EXPECT_FALSE(infer(operation(Verb::matmul), std::vector{shape({2, 3}), shape({2, 3})}).ok());
  EXPECT_EQ(value(operation(Verb::matmul), {shape({2, 1, 1}), shape({2, 1, 1})}).data, (Numbers{1, 4}));
}

TEST(Algebra, AppliesTheActivationLast) {
  Operation relu = operation(Verb::sub, {.then_relu = true});
  EXPECT_EQ(value(relu, {shape({2}), shape({2})}).data, (Numbers{0, 0}));
}

TEST(Algebra, InfersGroupsFromTheSizes) {
  const Operation conv = operation(Verb::conv2d, {.kernel = {1, 1}});
  // Two groups of one channel: each output sees its own channel.
  EXPECT_EQ(value(conv, {shape({1, 2, 1, 1}), shape({2, 1, 1, 1})}).data, (Numbers{1, 4}));
  EXPECT_EQ(value(conv, {shape({1, 2, 1, 1}), shape({1, 2, 1, 1})}).data, (Numbers{5}));
  const auto bad = infer(conv, std::vector{shape({1, 4, 1, 1}), shape({3, 2, 1, 1})});
  ASSERT_FALSE(bad.ok());
  EXPECT_EQ(bad.error().message, "groups do not divide the outputs: 2 groups, 3 outputs");
}

TEST(Algebra, PadsNonSquareConvolutions) {
  // The window 1 2 3 over 1 2 3, with zeros at both ends.
  const Operation conv = operation(Verb::conv2d, {.kernel = {1, 3}});
  EXPECT_EQ(value(conv, {shape({1, 1, 1, 3}), shape({1, 1, 1, 3})}).data, (Numbers{8, 14, 8}));
  // An even window pads more behind: 1*1+2*2, 1*2+2*3, 1*3.
  const Operation even = operation(Verb::conv2d);
  EXPECT_EQ(value(even, {shape({1, 1, 1, 3}), shape({1, 1, 1, 2})}).data, (Numbers{5, 8, 3}));
  const Operation valid = operation(Verb::conv2d, {.stride = {1, 2}, .same_padding = false});
  EXPECT_EQ(value(valid, {shape({1, 1, 1, 5}), shape({1, 1, 1, 3})}).data, (Numbers{14, 26}));
}

TEST(Algebra, AveragesCountPaddingAndMaximaDoNot) {
  Operation pool = operation(Verb::pool_avg, {.kernel = {3, 3}});
  EXPECT_EQ(value(pool, {shape({1, 1, 1, 1})}).data, (Numbers{1.0 / 9}));
  pool.details.kernel = {1, 3};
  EXPECT_EQ(value(pool, {shape({1, 1, 1, 3})}).data, (Numbers{1, 2, 5.0 / 3}));
  pool.verb = Verb::pool_max;
  EXPECT_EQ(value(pool, {shape({1, 1, 1, 3})}).data, (Numbers{2, 3, 3}));
  pool.details.stride = {1, 2};
  EXPECT_EQ(value(pool, {shape({1, 1, 1, 3})}).data, (Numbers{2, 3}));
}

TEST(Algebra, EnlargesKernelsAroundTheirCentre) {
  const Operation enlarge = operation(Verb::enlarge, {.kernel = {1, 3}});
  EXPECT_EQ(value(enlarge, {shape({1, 1, 1, 1})}).data, (Numbers{0, 1, 0}));
  EXPECT_EQ(value(enlarge, {shape({1, 1, 1, 2})}).data, (Numbers{0, 1, 2}));
  EXPECT_FALSE(infer(operation(Verb::enlarge, {.kernel = {1, 1}}), std::vector{shape({1, 1, 1, 2})}).ok());
}

TEST(Algebra, SplitsWhereTheLatestConcatJoined) {
  const Operation concat = operation(Verb::concat, {.axis = 0}), split = operation(Verb::split, {.axis = 0});
  const Shape inner = (*infer(concat, std::vector{shape({2}), shape({3})}))[0];
  EXPECT_EQ(inner.joints[0], (std::vector<std::int64_t>{2}));
  const Shape outer = (*infer(concat, std::vector{inner, shape({1})}))[0];
  EXPECT_EQ(outer.joints[0], (std::vector<std::int64_t>{2, 5}));
  const auto parts = *infer(split, std::vector{outer});
  EXPECT_EQ(parts[0], inner);
  EXPECT_EQ(parts[1], shape({1}));
  EXPECT_FALSE(infer(split, std::vector{shape({4})}).ok());
  EXPECT_TRUE(infer(operation(Verb::split, {.axis = 0, .evenly = true}), std::vector{shape({4})}).ok());
  // Different split points cannot be used to split.
  const Shape other = (*infer(concat, std::vector{shape({3}), shape({2})}))[0];
  EXPECT_TRUE((*infer(operation(Verb::ewadd), std::vector{inner, other}))[0].joints[0].empty());
}

TEST(Algebra, SupportsUnityOperators) {
  EXPECT_EQ(value(operation(Verb::replicate, {.axis = 0, .parts = 2}), {shape({2})}).data,
            (Numbers{1, 1, 2, 2}));
  EXPECT_EQ(value(operation(Verb::reduce, {.axis = 0, .parts = 2}), {shape({4})}).data, (Numbers{3, 7}));
  EXPECT_FALSE(infer(operation(Verb::partition, {.axis = 0, .parts = 2}), std::vector{shape({3})}).ok());
  // Replica 0 of both operands: [1 2] . [1 2] and [1 2] . [3 4].
  EXPECT_EQ(value(operation(Verb::linear), {shape({2, 1, 2}), shape({1, 2, 2})}).data, (Numbers{5, 11}));
}

TEST(Algebra, SizesConstantsByTheInputsUpstream) {
  const Operation id = operation(Verb::const_conv_id, {.kernel = {3, 3}});
  Operation conv = operation(Verb::conv2d, {.kernel = {3, 3}});
  conv.operands = {{-1, 0}, {0, 0}};
  const auto side = *size_constants(std::vector{id, conv}, std::vector{shape({2, 5, 4, 4})});
  EXPECT_EQ(side[0].details.sizes, (std::vector<std::int64_t>{5, 5, 3, 3}));
  const Tensor<double> centre = value(operation(Verb::const_conv_id, {.sizes = {1, 1, 3, 3}}), {});
  EXPECT_EQ(centre.data, (Numbers{0, 0, 0, 0, 1, 0, 0, 0, 0}));
  EXPECT_EQ(value(operation(Verb::const_eye, {.sizes = {2, 2}}), {}).data, (Numbers{1, 0, 0, 1}));
  EXPECT_FALSE(infer(operation(Verb::const_eye), std::vector<Shape>()).ok());
}

TEST(Algebra, RejectsExcessiveSizes) {
  const Operation twice = operation(Verb::replicate, {.axis = 0, .parts = 16});
  Shape grown = shape({1});
  Result<std::vector<Shape>> next = std::vector{grown};
  int steps = 0;
  for (; next.ok() && steps < 100; ++steps) next = infer(twice, std::vector{(*next)[0]});
  EXPECT_FALSE(next.ok());
  EXPECT_LT(steps, 10);
}

std::vector<Tensor<double>> held(std::vector<std::vector<double>> ranks) {
  std::vector<Tensor<double>> tensors;
  for (auto& data : ranks) tensors.push_back({{static_cast<std::int64_t>(data.size())}, data});
  return tensors;
}

std::vector<Numbers> between(const Operation& op, const std::vector<Tensor<double>>& ranks) {
  std::vector<Numbers> results;
  const auto made = communicate<double>(op, ranks, {});
  if (!made.ok()) throw std::runtime_error(made.error().message);
  for (const auto& tensor : *made) results.push_back(tensor.data);
  return results;
}

TEST(Algebra, SplitsUnevenSizesConsistently) {
  const auto ranks = held({{1, 2, 3}, {10, 20, 30}});
  EXPECT_EQ(between(operation(Verb::all_reduce), ranks), (std::vector<Numbers>{{11, 22, 33}, {11, 22, 33}}));
  const auto scattered = between(operation(Verb::reduce_scatter), ranks);
  EXPECT_EQ(scattered, (std::vector<Numbers>{{11}, {22, 33}}));
  EXPECT_EQ(between(operation(Verb::all_gather), held(scattered))[0], (Numbers{11, 22, 33}));
  EXPECT_EQ(between(operation(Verb::shard), ranks), (std::vector<Numbers>{{1}, {20, 30}}));
  EXPECT_EQ(between(operation(Verb::permute, {.shift = 1}), ranks)[1], (Numbers{1, 2, 3}));
  EXPECT_EQ(between(operation(Verb::broadcast, {.root = 1}), ranks)[0], (Numbers{10, 20, 30}));
  EXPECT_EQ(between(operation(Verb::all_reduce, {.kind = ReduceKind::max}), ranks)[0], (Numbers{10, 20, 30}));
  EXPECT_FALSE(infer_ranks(operation(Verb::shard), std::vector(4, shape({3}))).ok());
  EXPECT_FALSE(
      infer_ranks(operation(Verb::all_reduce, {.groups = {{0, 0}}}), std::vector(2, shape({3}))).ok());
}

TEST(Algebra, ExchangesSlicesBetweenRanks) {
  const Operation trade = operation(Verb::all_to_all, {.axis = 1, .other_axis = 0});
  const std::vector<Tensor<double>> ranks = {{{1, 2}, {1, 2}}, {{1, 2}, {3, 4}}};
  EXPECT_EQ(between(trade, ranks), (std::vector<Numbers>{{1, 3}, {2, 4}}));
}

}  // namespace
}  // namespace weft::equation
