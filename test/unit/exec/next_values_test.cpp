// The next value of a parameter or state is written in place where that is safe, and copied where
// it is not.
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "execution_case.h"
#include "weft/plan/graph/text.h"
#include "weft/plan/ops/operators.h"
#include "weft/program/tasks/program.h"

namespace weft::exec {
namespace {

struct Held {
  std::size_t copies = 0;
  std::vector<double> weight, master;
};

// Two steps, from a weight and a master weight of ones.
Held after_two_steps(std::string_view text, int workers, double master = 1) {
  const auto graph = std::make_shared<plan::Graph>(plan::read(text, ops::all()).value());
  program::Program program = program::compile(graph, {.workers = workers, .any_float = true}).value();
  Held held;
  for (const program::Unit& unit : program.units)
    held.copies += std::holds_alternative<program::Copy>(unit.kernel);
  const auto rank = Rank::start(std::move(program), {.workers = workers}).value();
  const std::vector<double> ones(40'000, 1.0);
  Tensors sources;
  sources["w"] = {{40'000}, ones};
  sources["m"] = {{40'000}, std::vector<double>(40'000, master)};
  fill(*rank, sources);
  for (int step = 0; step < 2; ++step) EXPECT_TRUE(rank->step().ok());
  Tensors found = contents(*rank);
  held.weight = found.at("w").data;
  held.master = found.at("m").data;
  return held;
}

constexpr std::string_view kSources =
    "plan step\n%0 = parameter {name=w, type=bf16[n=40000]}\n%1 = state {name=m, type=f32[n=40000], "
    "init=zeros}\n"
    "%2 = cast %0 {to=f32}\n";

// The weight is its rounded master weight; the gradient is the weight.
TEST(NextValues, UpdatesMasterAndWeightInPlace) {
  for (const int workers : {1, 3}) {
    const Held held =
        after_two_steps(std::string(kSources) +
                            "%3 = sgd %1, %2 {lr=0.5} in update\n%4 = cast %3 {to=bf16} in update\n"
                            "return \"next w\"=%4, \"next m\"=%3\n",
                        workers);
    EXPECT_EQ(held.copies, 0u);
    EXPECT_EQ(held.master, std::vector<double>(40'000, 0.25));
    EXPECT_EQ(held.weight, std::vector<double>(40'000, 0.25));
  }
}

TEST(NextValues, DoesNotOverwriteValuesThatAreReadLater) {
  for (const int workers : {1, 3}) {
    const Held held = after_two_steps(std::string(kSources) +
                                          "%3 = sgd %1, %2 {lr=0.5} in update\n%4 = mul %1, %3 in update\n"
                                          "%5 = cast %4 {to=bf16} in update\n"
                                          "return \"next w\"=%5, \"next m\"=%3\n",
                                      workers);
    // m: 1 - 0.5 = 0.5, then 0.5 - 0.5 * 0.5 = 0.25; w: 1 * 0.5, then 0.5 * 0.25.
    EXPECT_EQ(held.master, std::vector<double>(40'000, 0.25));
    EXPECT_EQ(held.weight, std::vector<double>(40'000, 0.125));
    EXPECT_GT(held.copies, 0u);
  }
}

// As when a step is undone: an element-wise select between the old and the new value.
TEST(NextValues, SelectsBetweenOldAndNewInPlace) {
  for (const int workers : {1, 3}) {
    const Held held = after_two_steps(std::string(kSources) +
                                          "%3 = mul %1, %2 in update\n%4 = add %3, %3 in update\n"
                                          "%5 = greater %4, %1 in update\n%6 = select %5, %4, %1 in update\n"
                                          "%7 = cast %6 {to=bf16} in update\n"
                                          "return \"next w\"=%7, \"next m\"=%6\n",
                                      workers);
    EXPECT_EQ(held.copies, 0u);
    // 1 -> 2 * 1 * 1 = 2, then 2 * 2 * 2 = 8.
    EXPECT_EQ(held.master, std::vector<double>(40'000, 8));
    EXPECT_EQ(held.weight, std::vector<double>(40'000, 8));
  }
}

// Each gets three times the value of the other: neither may be overwritten before both are read.
TEST(NextValues, SwapsTwoValues) {
  for (const int workers : {1, 3}) {
    const Held held = after_two_steps(std::string(kSources) +
                                          "%3 = add %1, %1 in update\n%4 = add %3, %1 in update\n"
                                          "%5 = cast %4 {to=bf16} in update\n%6 = add %2, %2 in update\n"
                                          "%7 = add %6, %2 in update\nreturn \"next w\"=%5, \"next m\"=%7\n",
                                      workers, 5);
    EXPECT_EQ(held.master, std::vector<double>(40'000, 45));
    EXPECT_EQ(held.weight, std::vector<double>(40'000, 9));
  }
}

}  // namespace
}  // namespace weft::exec
