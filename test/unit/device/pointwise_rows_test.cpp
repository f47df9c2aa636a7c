// Every row of ops/pointwise_rows.h on every device: a missing form shows without a GPU.
#include <regex>
#include <set>

#include <gtest/gtest.h>

#include "lanes_reference.h"
#include "weft/device/cuda/expression.h"
#include "weft/plan/ops/operators.h"

namespace weft::device {
namespace {

std::set<std::string> words_of(std::string_view text, const char* pattern) {
  const std::string all(text);
  const std::regex word(pattern);
  std::set<std::string> found;
  for (std::sregex_iterator at(all.begin(), all.end(), word), end; at != end; ++at) found.insert((*at)[1]);
  return found;
}

TEST(PointwiseRows, EveryOperatorHasItsRow) {
  for (std::size_t i = 0; i < ops::pointwise_rows().size(); ++i) {
    const ops::Operator& op = ops::pointwise_operator(i);
    EXPECT_EQ(ops::pointwise_place(op), i);
    EXPECT_EQ(ops::all().find(ops::pointwise_rows()[i].name), &op);
  }
}

// LanesTest checks that lanes compute the right function. Here: that each row has its own lane.
TEST(PointwiseRows, EveryRowHasALane) {
  const float x[] = {0.25f, 0.5f, 0.75f};
  const cpu::LaneOperand operands[] = {{&x[0]}, {&x[1]}, {&x[2]}};
  for (const ops::Pointwise& row : ops::pointwise_rows()) {
    float y = -77;
    cpu::run_lane(cpu::lane(row.name), 1, operands, &y);
    EXPECT_NEAR(y, row.meaning.in_float({}, x), 1e-6) << row.name;
  }
}

// The expression reads each operand and calls only functions of CUDA and of the prelude.
TEST(PointwiseRows, EveryRowHasAnExpressionOnAGpu) {
  const std::set<std::string> known = words_of(cuda::prelude(), R"(float (weft_\w+)\()");
  const std::string operands[] = {"first", "second", "third"};
  for (const ops::Pointwise& row : ops::pointwise_rows()) {
    const auto text = cuda::expression(*ops::all().find(row.name), std::span(operands).first(row.arity));
    ASSERT_TRUE(text.has_value() && !text->empty()) << row.name;
    EXPECT_EQ(text->find_first_of("{}"), std::string::npos) << *text;
    for (std::size_t i = 0; i < row.arity; ++i)
      EXPECT_NE(text->find(operands[i]), std::string::npos) << row.name << ": " << *text;
    for (const std::string& called : words_of(*text, R"((weft_\w+)\()"))
      EXPECT_TRUE(known.contains(called)) << row.name << " calls " << called;
  }
}

// A GPU runs a row without a CUDA expression as the steps of its definition; here they run one
// after the other.
TEST(PointwiseRows, StepsComputeTheRow) {
  for (const ops::Pointwise& row : ops::pointwise_rows()) {
    ASSERT_EQ(row.terms == nullptr, !row.cuda.empty()) << row.name;
    if (row.terms == nullptr) continue;
    ops::Terms n;
    const std::vector<ops::Terms::Step> steps = n.steps(row.terms(n));
    for (const double x : {-30.0, -2.5, -1.0, 0.0, 0.75, 3.0, 30.0}) {
      const double operands[] = {x, 0.5 - x, 1.0};
      std::vector<double> values;
      for (const ops::Terms::Step& step : steps) {
        if (step.operand != ops::Terms::kNone || step.function.empty()) {
          values.push_back(step.operand != ops::Terms::kNone ? operands[step.operand] : step.number);
          continue;
        }
        std::vector<double> taken;
        for (const std::uint32_t operand : step.operands)
          if (operand != ops::Terms::kNone) taken.push_back(values[operand]);
        values.push_back(
            ops::find_pointwise(*ops::all().find(step.function))->meaning.in_double({}, taken.data()));
      }
      EXPECT_NEAR(values.back(), row.meaning.in_double({}, operands), 1e-12 * (1 + std::fabs(x))) << row.name;
    }
  }
}

}  // namespace
}  // namespace weft::device
