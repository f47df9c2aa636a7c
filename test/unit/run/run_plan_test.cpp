// A plan run once, and two plans compared by their results.
#include <cmath>
#include <cstring>

#include <gtest/gtest.h>

#include "weft/formats/model_json.h"
#include "weft/plan/graph/text.h"
#include "weft/plan/ops/operators.h"
#include "weft/runtime/run/run_plan.h"

namespace weft::session {
namespace {

plan::Graph read(const std::string& text) {
  auto graph = plan::read("plan p\n" + text, ops::all());
  EXPECT_TRUE(graph.ok()) << graph.error().message;
  return std::move(*graph);
}

run::Tensor tensor(std::vector<std::int64_t> shape, const std::vector<float>& numbers) {
  run::Tensor made{plan::DType::f32, std::move(shape),
                   std::vector<std::byte>(numbers.size() * sizeof(float))};
  std::memcpy(made.bytes.data(), numbers.data(), made.bytes.size());
  return made;
}

std::vector<float> numbers(const run::Tensor& tensor) {
  std::vector<float> found(tensor.bytes.size() / sizeof(float));
  std::memcpy(found.data(), tensor.bytes.data(), tensor.bytes.size());
  return found;
}

const std::string kSources =
    "%0 = input {name=x, type=f32[b=2,d=3]}\n"
    "%1 = parameter {name=w, type=f32[d=3,f=2], init=normal, a=0, b=1}\n";

TEST(RunPlan, ComputesFromGivenInputs) {
  const plan::Graph graph = read(kSources + "%2 = contract %0, %1 {to=[b,f]}\nreturn y=%2\n");
  const auto run = run::run_plan(
      graph, {{"x", tensor({2, 3}, {1, 2, 3, 4, 5, 6})}, {"w", tensor({3, 2}, {1, 0, 0, 1, 1, 1})}});
  ASSERT_TRUE(run.ok()) << run.error().message;
  EXPECT_EQ(numbers(run->outputs.at("y")), (std::vector<float>{4, 5, 10, 11}));
}

// Sums of all elements, of rows and of columns: none may be less accurate than double.
TEST(RunPlan, LongSumsAreAccurate) {
  constexpr std::int64_t kRows = 1 << 16, kColumns = 48;
  std::vector<float> x(static_cast<std::size_t>(kRows * kColumns));
  std::vector<double> columns(kColumns);
  double all = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    x[i] = 1.0f + static_cast<float>(i * 2654435761u % 1000) * 1e-3f;
    all += static_cast<double>(x[i]);
    columns[i % kColumns] += static_cast<double>(x[i]);
  }
  const plan::Graph graph = read(
      "%0 = input {name=x, type=f32[b=65536,d=48]}\n%1 = reduce %0 {kind=sum, to=[]}\n"
      "%2 = reduce %0 {kind=sum, to=[d]}\n%3 = reduce %0 {kind=mean, to=[]}\n"
      "return sum=%1, columns=%2, mean=%3\n");
  const auto run = run::run_plan(graph, {{"x", tensor({kRows, kColumns}, x)}});
  ASSERT_TRUE(run.ok()) << run.error().message;
  EXPECT_NEAR(numbers(run->outputs.at("sum"))[0], all, 5e-7 * all);
  EXPECT_NEAR(numbers(run->outputs.at("mean"))[0], all / static_cast<double>(x.size()), 1e-6);
  const std::vector<float> found = numbers(run->outputs.at("columns"));
  for (std::size_t c = 0; c < found.size(); ++c) EXPECT_NEAR(found[c], columns[c], 5e-7 * columns[c]) << c;
}

TEST(RunPlan, SyntheticInputsAreDeterministic) {
  const plan::Graph graph = read(kSources + "%2 = contract %0, %1 {to=[b,f]}\nreturn y=%2\n");
  const auto first = run::run_plan(graph, {}, {.seed = 3}),
             again = run::run_plan(graph, {}, {.seed = 3, .workers = 2}),
             other = run::run_plan(graph, {}, {.seed = 4});
  ASSERT_TRUE(first.ok() && again.ok() && other.ok());
  EXPECT_EQ(first->outputs.at("y").bytes, again->outputs.at("y").bytes);
  EXPECT_NE(first->outputs.at("y").bytes, other->outputs.at("y").bytes);
}

TEST(RunPlan, RejectsInputsThatDoNotFit) {
  const plan::Graph graph = read(kSources + "%2 = contract %0, %1 {to=[b,f]}\nreturn y=%2\n");
  const auto shape = run::run_plan(graph, {{"x", tensor({3, 2}, {1, 2, 3, 4, 5, 6})}});
  ASSERT_FALSE(shape.ok());
  EXPECT_EQ(shape.error().message, "the value given for x does not match f32[b=2,d=3]");
  const auto name = run::run_plan(graph, {{"z", tensor({1}, {1})}});
  ASSERT_FALSE(name.ok());
  EXPECT_EQ(name.error().message, "p has no source named z");
}

TEST(CompareRuns, RecognizesEqualPlans) {
  const plan::Graph a = read(kSources + "%2 = contract %0, %1 {to=[b,f]}\nreturn y=%2\n");
  // Sources in another order, and the product transposed.
  const plan::Graph b = read(
      "%0 = parameter {name=w, type=f32[d=3,f=2], init=normal, a=0, b=1}\n"
      "%1 = input {name=x, type=f32[b=2,d=3]}\n"
      "%2 = contract %0, %1 {to=[f,b]}\n"
      "%3 = transpose %2 {to=[b,f]}\n"
      "return y=%3\n");
  const auto agreement = run::compare_runs(a, b, {.seed = 1});
  ASSERT_TRUE(agreement.ok()) << agreement.error().message;
  EXPECT_LE(agreement->largest(), 1e-6);
  EXPECT_GT(agreement->outputs.at(0).largest, 0);
}

TEST(CompareRuns, DetectsADifference) {
  const plan::Graph a = read(kSources + "%2 = contract %0, %1 {to=[b,f]}\nreturn y=%2\n");
  const plan::Graph b = read(kSources +
                             "%2 = contract %0, %1 {to=[b,f]}\n%3 = constant {value=1.5, dtype=f32}\n"
                             "%4 = mul %2, %3\nreturn y=%4\n");
  const auto agreement = run::compare_runs(a, b);
  ASSERT_TRUE(agreement.ok());
  EXPECT_NEAR(agreement->largest(), 0.5, 1e-6);
  const plan::Graph nothing = read(kSources +
                                   "%2 = contract %0, %1 {to=[b,f]}\n%3 = constant {value=0, dtype=f32}\n"
                                   "%4 = div %2, %3\nreturn y=%4\n");
  const auto infinite = run::compare_runs(a, nothing);
  ASSERT_TRUE(infinite.ok());
  EXPECT_TRUE(std::isinf(infinite->largest()));
}

TEST(CompareRuns, RejectsPlansThatCannotBeCompared) {
  const plan::Graph a = read("%0 = input {name=x, type=f32[b=2,d=3]}\n%1 = relu %0\nreturn y=%1\n");
  const auto source = run::compare_runs(a, read(kSources + "%2 = contract %0, %1 {to=[b,f]}\nreturn y=%2\n"));
  ASSERT_FALSE(source.ok());
  EXPECT_EQ(source.error().message, "p reads w of f32[d=3,f=2], p has none");
  const auto output =
      run::compare_runs(a, read("%0 = input {name=x, type=f32[b=2,d=3]}\n%1 = relu %0\nreturn z=%1\n"));
  ASSERT_FALSE(output.ok());
  EXPECT_EQ(output.error().message, "p gives y of f32[b=2,d=3], p gives none");
}

TEST(CompareRuns, RunsAPublishedModel) {
  const auto graph = formats::read_model_json(WEFT_SOURCE_DIR "/test/fuzz/corpus/model_json/attention.json");
  ASSERT_TRUE(graph.ok()) << graph.error().message;
  const auto agreement = run::compare_runs(*graph, *graph);
  ASSERT_TRUE(agreement.ok()) << agreement.error().message;
  EXPECT_EQ(agreement->largest(), 0);
  EXPECT_TRUE(std::isfinite(agreement->outputs.at(0).largest) && agreement->outputs.at(0).largest > 0);
}

}  // namespace
}  // namespace weft::session
