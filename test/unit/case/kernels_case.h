// test/unit/case/kernels_case.h -- reference results for kernels: the operators of ops/, in double.
//
//   const auto expected = reference("max-pool", {{"f32[c=3,h=5,w=4]", x}}, "{size=2, stride=2}");
//   EXPECT_TRUE(near(y, expected[0]));
#pragma once
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "ops_case.h"
#include "weft/base/random.h"

namespace weft::device::cpu {

struct Operand {
  std::string type;
  std::vector<double> data;

  template <class T>
  Operand(std::string of_type, const std::vector<T>& elements)
      : type(std::move(of_type)), data(elements.begin(), elements.end()) {}
};

// Results of one operator by its reference semantics.
inline std::vector<std::vector<double>> reference(const std::string& op, const std::vector<Operand>& operands,
                                                  const std::string& attributes, int results = 1) {
  ops::Case c{op, {}, attributes, results};
  for (const Operand& operand : operands) c.operands.push_back(operand.type);
  const plan::Graph graph = ops::graph_of(c);
  Random random(1);
  ops::Tensors<double> inputs = ops::random_inputs<double>(c, graph, {}, random);
  for (std::size_t i = 0; i < operands.size(); ++i) inputs.at(fmt::format("x{}", i)).data = operands[i].data;
  std::vector<std::vector<double>> values;
  for (ops::Tensor<double>& tensor : ops::outputs_of<double>(graph, inputs))
    values.push_back(std::move(tensor.data));
  return values;
}

inline std::vector<float> random_floats(std::int64_t n, Random& random) {
  std::vector<float> values(static_cast<std::size_t>(n));
  for (float& value : values) value = static_cast<float>(random.uniform() * 2 - 1);
  return values;
}

// From -1 to `limit`, so that some are out of range.
inline std::vector<std::int32_t> random_positions(std::int64_t n, std::int64_t limit, Random& random) {
  std::vector<std::int32_t> values(static_cast<std::size_t>(n));
  for (std::int32_t& value : values) value = static_cast<std::int32_t>(random.between(-1, limit));
  return values;
}

// Contents of memory that no kernel has written.
inline std::vector<float> unwritten(std::int64_t n) {
  return std::vector<float>(static_cast<std::size_t>(n), std::numeric_limits<float>::quiet_NaN());
}

// Equal up to `tolerance`: relative for large elements, absolute for small ones.
inline ::testing::AssertionResult near(std::span<const float> found, std::span<const double> expected,
                                       double tolerance = 1e-5) {
  if (found.size() != expected.size())
    return ::testing::AssertionFailure() << found.size() << " elements, expected " << expected.size();
  for (std::size_t i = 0; i < found.size(); ++i)
    if (!(std::abs(found[i] - expected[i]) <= tolerance * std::max(1.0, std::abs(expected[i]))))
      return ::testing::AssertionFailure()
             << "element " << i << " is " << found[i] << ", expected " << expected[i];
  return ::testing::AssertionSuccess();
}

inline bool same_bits(std::span<const float> a, std::span<const float> b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size_bytes()) == 0);
}

// Runs a kernel on [0, n) in several ranges: run(begin, end) for each, including an empty one.
template <class Run>
void in_pieces(std::int64_t n, Random& random, Run run) {
  run(std::int64_t{0}, std::int64_t{0});
  for (std::int64_t begin = 0; begin < n;) {
    const std::int64_t end = random.between(begin + 1, n);
    run(begin, end);
    begin = end;
  }
}

}  // namespace weft::device::cpu
