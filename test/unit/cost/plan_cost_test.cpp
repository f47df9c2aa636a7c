// Cost of a plan: which nodes run, which are free, and when operands are copied.
#include <memory>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "weft/plan/graph/text.h"
#include "weft/plan/ops/operators.h"
#include "weft/predict/cost/plan_cost.h"
#include "weft/predict/cost/roofline.h"
#include "weft/program/tasks/program.h"

namespace weft::cost {
namespace {

plan::Graph read(const std::string& text) {
  auto graph = plan::read("plan p\n" + text, ops::all());
  EXPECT_TRUE(graph.ok()) << graph.error().message;
  return std::move(*graph);
}

// A launch takes one second and everything else almost nothing: seconds count kernels.
cluster::Device counting_device() {
  cluster::Device device{.name = "counting"};
  device.flops_per_second.fill(1e30);
  device.memory_bytes_per_second = 1e30;
  device.launch_seconds = 1;
  return device;
}

double plan_seconds(const plan::Graph& graph, const cluster::Device& device) {
  const std::vector<bool> runs = nodes_that_run(graph);
  double seconds = 0;
  for (std::size_t n = 0; n < graph.node_count(); ++n)
    if (runs[n]) seconds += node_seconds(graph.view(plan::NodeId(n)), device);
  return seconds;
}

double kernels(const std::string& text) { return plan_seconds(read(text), counting_device()); }

std::size_t compiled_copies(const plan::Graph& graph) {
  const auto program = program::compile(std::make_shared<plan::Graph>(graph.clone()));
  EXPECT_TRUE(program.ok());
  std::size_t copies = 0;
  for (const program::Unit& unit : program->units)
    copies += std::holds_alternative<program::Copy>(unit.kernel);
  return copies;
}

constexpr std::string_view kImage =
    "%0 = input {name=x, type=f32[b=2,c=4,h=5,w=6]}\n"
    "%1 = parameter {name=k, type=f32[o=3,i=4,r=3,q=3]}\n";

TEST(PlanCost, IsTheSumOfTheRooflines) {
  const plan::Graph graph = read(
      "%0 = input {name=x, type=f32[b=8,d=16]}\n"
      "%1 = parameter {name=w, type=f32[d=16,f=4]}\n"
      "%2 = contract %0, %1 {to=[b,f]}\n"
      "%3 = relu %2\n"
      "return y=%3\n");
  cluster::Device device{.name = "round"};
  device.flops_per_second.fill(1e9);
  device.memory_bytes_per_second = 1e9;
  device.launch_seconds = 1e-6;
  const double flops = 2 * 8 * 16 * 4, bytes = 2 * 4 * 8 * 4;
  EXPECT_DOUBLE_EQ(plan_seconds(graph, device), (1e-6 + flops / 1e9) + (1e-6 + bytes / 1e9));
  EXPECT_DOUBLE_EQ(node_seconds(graph.view(plan::NodeId(2)), device),
                   roofline(graph.view(plan::NodeId(2)), device).seconds);
}

TEST(PlanCost, CountsOnlyNodesBetweenInputsAndOutputs) {
  EXPECT_EQ(kernels("%0 = input {name=x, type=f32[d=4]}\n"
                    "%1 = parameter {name=w, type=f32[d=4]}\n"
                    "%2 = state {name=s, type=f32[d=4]}\n"
                    "%3 = mul %1, %2\n"  // known in advance
                    "%4 = relu %3\n"     // known in advance
                    "%5 = add %0, %4\n"  // runs
                    "%6 = relu %0\n"     // not an output
                    "return y=%5, w=%4\n"),
            1);
}

TEST(PlanCost, ViewsAreFree) {
  EXPECT_EQ(kernels("%0 = input {name=x, type=f32[b=2,c=4,h=6]}\n"
                    "%1 = slice %0 {along=c, begin=1, end=3}\n"
                    "%2 = transpose %1 {to=[c,b,h]}\n"
                    "%3 = rename %2 {from=[b], to=[a]}\n"
                    "%4 = split %3 {along=h, into=f32[m=2,n=3]}\n"
                    "%5 = relu %4\n"
                    "return y=%5\n"),
            1);
}

TEST(PlanCost, ChargesACopyForOperandsInAnotherLayout) {
  struct Case {
    std::string view;
    double expected;
  };
  const Case cases[] = {
      {"%2 = transpose %0 {to=[b,c,h,w]}\n%3 = relu %2\n", 2},  // a relu and the convolution
      {"%2 = slice %0 {along=b, begin=1, end=2}\n%3 = rename %2 {from=[b], to=[b]}\n", 1},
      {"%2 = slice %0 {along=h, begin=0, end=4}\n%3 = rename %2 {from=[b], to=[b]}\n", 2},
      {"%2 = transpose %0 {to=[b,c,w,h]}\n%3 = rename %2 {from=[b], to=[a]}\n", 2},
      {"%2 = transpose %0 {to=[b,c,w,h]}\n%3 = transpose %2 {to=[b,c,w,h]}\n", 2},
  };
  for (const Case& each : cases) {
    const std::string text = std::string(kImage) + each.view + "%4 = conv2d %3, %1\nreturn y=%4\n";
    SCOPED_TRACE(text);
    EXPECT_EQ(kernels(text), each.expected);
  }
  // The copy reads and writes the whole tensor.
  const plan::Graph graph = read(
      std::string(kImage) + "%2 = slice %0 {along=h, begin=0, end=4}\n%3 = conv2d %2, %1\nreturn y=%3\n");
  cluster::Device slow = counting_device();
  slow.memory_bytes_per_second = 1;
  const double copy = 1 + 2 * 4 * (2 * 4 * 4 * 6);
  EXPECT_DOUBLE_EQ(node_seconds(graph.view(plan::NodeId(3)), slow),
                   copy + roofline(graph.view(plan::NodeId(3)), slow).seconds);
}

TEST(PlanCost, ChargesAMergeOfNonContiguousIndices) {
  const std::string x = "%0 = input {name=x, type=f32[b=2,h=3,s=4,e=5]}\n";
  EXPECT_EQ(kernels(x + "%1 = merge %0 {along=[s,e], into=d}\n%2 = relu %1\nreturn y=%2\n"), 1);
  EXPECT_EQ(kernels(x + "%1 = transpose %0 {to=[b,s,h,e]}\n%2 = merge %1 {along=[h,e], into=d}\n"
                        "%3 = relu %2\nreturn y=%3\n"),
            2);
}

// Estimates match the compiled program.
TEST(PlanCost, CountsTheCopiesOfTheProgram) {
  const std::string end = "%4 = conv2d %3, %1\n%5 = relu %4\nreturn y=%5\n";
  for (const std::string view :
       {"%2 = slice %0 {along=b, begin=1, end=2}\n%3 = rename %2 {from=[b], to=[a]}\n",
        "%2 = slice %0 {along=h, begin=0, end=4}\n%3 = rename %2 {from=[b], to=[a]}\n",
        "%2 = transpose %0 {to=[b,c,w,h]}\n%3 = rename %2 {from=[b], to=[a]}\n",
        "%2 = relu %0\n%3 = relu %2\n"}) {
    SCOPED_TRACE(view);
    const plan::Graph graph = read(std::string(kImage) + view + end);
    double computed = 0;
    for (std::size_t n = 0; n < graph.node_count(); ++n)
      computed +=
          graph.node(plan::NodeId(n)).op == &ops::relu() || graph.node(plan::NodeId(n)).op == &ops::conv2d();
    EXPECT_EQ(plan_seconds(graph, counting_device()) - computed, static_cast<double>(compiled_copies(graph)));
  }
}

}  // namespace
}  // namespace weft::cost
