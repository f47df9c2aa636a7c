// Pooling and its gradients compared with their definition, on the CPU and on the device that
// WEFT_TEST_DEVICE names: windows that overlap, leave gaps or reach into padding, planes of odd
// sizes, ties within a window, and NaN.
#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "execution_case.h"

namespace weft::exec {
namespace {

// The gradient reads the gradient of y, and x.
constexpr std::string_view kPools = R"(max-pool | f32[b=3,c=5,h=12,w=16] | {size=3, stride=2, padding=1}
max-pool | f32[c=5,h=112,w=112] | {size=3, stride=2, padding=1}
max-pool | f32[h=7,w=9] | {size=2, stride=2}
max-pool | f32[c=3,h=11,w=13] | {size=9, stride=1, padding=4}
avg-pool | f32[c=3,h=11,w=13] | {size=3, stride=2, padding=1}
max-pool-gradient | f32[b=3,c=5,h=6,w=8] | f32[b=3,c=5,h=12,w=16] | {size=3, stride=2, padding=1}
max-pool-gradient | f32[c=5,h=56,w=56] | f32[c=5,h=112,w=112] | {size=3, stride=2, padding=1}
max-pool-gradient | f32[h=3,w=4] | f32[h=7,w=9] | {size=2, stride=2}
max-pool-gradient | f32[c=2,h=9,w=11] | f32[c=2,h=11,w=13] | {size=3, stride=1}
max-pool-gradient | f32[c=2,h=4,w=5] | f32[c=2,h=11,w=13] | {size=3, stride=3, padding=1}
max-pool-gradient | f32[c=2,h=3,w=3] | f32[c=2,h=11,w=12] | {size=2, stride=4}
max-pool-gradient | f32[c=2,h=2,w=3] | f32[c=2,h=11,w=14] | {size=5, stride=5, padding=1}
max-pool-gradient | f32[c=2,h=12,w=14] | f32[c=2,h=11,w=13] | {size=8, stride=1, padding=4}
max-pool-gradient | f32[c=2,h=11,w=13] | f32[c=2,h=11,w=13] | {size=9, stride=1, padding=4}
max-pool-gradient | f32[c=2,h=2,w=2] | f32[c=2,h=20,w=20] | {size=4, stride=10}
avg-pool-gradient | f32[c=2,h=6,w=7] | {size=3, stride=2, padding=1, type=f32[c=2,h=11,w=13]}
)";

TEST(OwnKernelsPools, MatchTheirDefinitionWithTies) {
  Random random(29);
  for (const ops::Case& c : ops::read_cases(kPools)) {
    const plan::Graph graph = ops::graph_of(c);
    for (const double grain : {0.0, 1.0, 4.0}) {
      SCOPED_TRACE(ops::text_of(c) + (grain > 0 ? ", of few numbers" : ""));
      Tensors inputs = ops::random_inputs<double>(c, graph, {}, random);
      for (auto& [name, tensor] : inputs)
        for (double& element : tensor.data)
          element =
              grain > 0 ? std::round(element * grain) : static_cast<double>(static_cast<float>(element));
      const auto rank = start(graph, 1);
      EXPECT_EQ(rank->reference_units(), 0u);
      fill(*rank, inputs);
      ASSERT_TRUE(rank->step().ok());
      const Tensors found = contents(*rank);
      expect_near(found, interpreted(graph, inputs), 1e-5, 1e-5, ops::text_of(c));
      ASSERT_TRUE(rank->step().ok());
      const Tensors again = contents(*rank);
      for (const auto& [name, tensor] : found) EXPECT_EQ(tensor.data, again.at(name).data) << name;
    }
  }
}

}  // namespace
}  // namespace weft::exec
