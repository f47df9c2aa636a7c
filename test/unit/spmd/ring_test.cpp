// Ring attention compared with one device: exactly over the field, and in f64.
#include <array>

#include "mesh_case.h"
#include "weft/plan/ops/local_exchange.h"
#include "weft/plan/spmd/localize.h"

namespace weft::ops {
namespace {

// The context of attention: its operands' types and layouts, and its attributes.
struct RingCase {
  std::string_view q, k, v, mask, how;
};

constexpr std::array<RingCase, 6> kRingCases = {{
    {"f32[b=2,s=S,e=2]", "f32[b=2,t=T,e=2]", "f32[b=2,t=T,f=3]", "", "divisor=1.5"},
    {"f32[h=2,g=2,s=S,e=2]", "f32[t=T,h=2,e=2]", "f32[h=2,t=T,f=3]", "", "causal=1"},
    {"f32[s=S,e=2]", "f32[t=T,e=2]", "f32[t=T]", "", "causal=1, window=3, scale=0.5"},
    {"f32[b=2,s=S,e=2]", "f32[b=2,t=T,e=2]", "f32[b=2,t=T,e=2]", "bool[b=2,t=T]", "divisor=3"},
    {"f32[s=S,e=2]", "f32[t=T,e=2]", "f32[t=T,f=2]", "", "causal=1, begin=2, keys=1"},
    {"f32[b=2,s=S,e=2]", "f32[b=2,t=T,e=2]", "f32[b=2,t=T,e=2]", "bool[b=2]", "causal=1"},
}};

std::string sized(std::string_view text, int s, int t) {
  std::string made(text);
  for (const auto& [mark, size] : {std::pair{std::string("=S"), s}, std::pair{std::string("=T"), t}})
    for (std::size_t at = 0; (at = made.find(mark, at)) != std::string::npos;)
      made.replace(at, mark.size(), fmt::format("={}", size));
  return made;
}

// Attention and its gradient, for a given gradient of the result. `more`: appended to "sliced(..)
// on gpu".
plan::Graph attending_plan(const RingCase& c, int s, int t, std::string_view more = "") {
  const auto source = [&](int number, std::string_view name, std::string_view type) {
    const bool keys = type.find("t=T") != std::string_view::npos,
               queries = type.find("s=S") != std::string_view::npos;
    return fmt::format("%{} = input {{name={}, type={}, layout=\"{}{}\"}}\n", number, name, sized(type, s, t),
                       keys      ? "sliced(t) on gpu"
                       : queries ? "sliced(s) on gpu"
                                 : "",
                       keys || queries ? more : "");
  };
  const bool masked = !c.mask.empty();
  // dy has the rows of q and the value index of v.
  plan::Graph graph = read_plan(
      "plan p\n" + source(0, "q", c.q) + source(1, "k", c.k) + source(2, "v", c.v) +
      source(3, "mask", masked ? c.mask : "bool[]") +
      fmt::format(
          "%4, %5 = attention %0, %1, %2{} {{over=t, along=s, inner=[e], {}}}\n%6 = tanh %4\n"
          "%7, %8, %9 = attention-gradient %0, %1, %2, %4, %5, %6{} {{over=t, along=s, inner=[e], {}}}\n"
          "return y=%4, dq=%7, dk=%8, dv=%9\n",
          masked ? ", %3" : "", c.how, masked ? ", %3" : "", c.how));
  return graph;
}

TEST(Ring, ComputesAttention) {
  for (const RingCase& c : kRingCases)
    // Even, uneven, different numbers of keys and queries, and too few for every rank to have one.
    for (const auto& [s, t] : {std::pair{6, 6}, {7, 7}, {5, 8}, {4, 4}, {2, 2}, {1, 5}})
      for (const std::string_view mesh : {"gpu=1", "gpu=2", "gpu=3", "gpu=4"}) {
        const plan::Graph graph = attending_plan(c, s, t);
        EXPECT_EQ(difference<Field>(graph, plan::read_mesh(mesh).value()), "") << mesh << "\n"
                                                                               << print(graph);
        EXPECT_EQ(difference<double>(graph, plan::read_mesh(mesh).value()), "") << mesh << "\n"
                                                                                << print(graph);
      }
}

TEST(Ring, CombinesWithOtherSlices) {
  const RingCase& c = kRingCases[0];
  for (const std::string_view mesh : {"node=2, gpu=2", "gpu=3, node=2", "gpu=2, node=3"}) {
    const plan::Graph graph = attending_plan(c, 5, 5, ", sliced(b) on node");
    EXPECT_EQ(difference<Field>(graph, plan::read_mesh(mesh).value()), "") << mesh;
  }
}

TEST(Ring, HoldsNoMoreThanABlockOfKeys) {
  const plan::Graph graph = attending_plan(kRingCases[1], 8, 8);
  const plan::Mesh mesh = plan::read_mesh("gpu=4").value();
  const auto layouts = spmd::infer_layouts(graph, mesh).value();
  for (std::int32_t rank = 0; rank < 4; ++rank) {
    const spmd::LocalPlan local = spmd::localize(graph, mesh, layouts, rank, spmd::Exchanges::stay).value();
    int passed = 0;
    for (std::size_t n = 0; n < local.graph.node_count(); ++n) {
      const plan::NodeView node = local.graph.view(plan::NodeId(n));
      if (&node.op() == &local_exchange()) {
        EXPECT_EQ(exchange_kind(node), ExchangeKind::permute_ranks);
        ++passed;
      }
      for (std::size_t k = 0; k < node.result_count(); ++k)
        for (const plan::Dim& dim : node.result_type(k).dims) EXPECT_LE(dim.size, 3) << print(local.graph);
    }
    // k and v three times in each pass, their gradients once more to return.
    EXPECT_EQ(passed, 3 * 2 + 3 * 2 + 4 * 2);
  }
}

TEST(Ring, RejectsTwoAxesAndPairwiseMasks) {
  const plan::Graph twice = read_plan(
      "plan p\n%0 = input {name=q, type=f32[s=8,e=2], layout=\"sliced(s) on node, sliced(s) on gpu\"}\n"
      "%1 = input {name=k, type=f32[t=8,e=2], layout=\"sliced(t) on node, sliced(t) on gpu\"}\n"
      "%2, %3 = attention %0, %1, %1 {over=t, along=s, inner=[e]}\nreturn y=%2\n");
  const auto refused = spmd::infer_layouts(twice, plan::read_mesh("node=2, gpu=2").value());
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().message.find(
                "ring attention needs keys sliced along one mesh axis, found node and gpu"),
            std::string::npos)
      << refused.error().message;
  const plan::Graph masked = read_plan(
      "plan p\n%0 = input {name=q, type=f32[s=8,e=2], layout=\"sliced(s) on gpu\"}\n"
      "%1 = input {name=k, type=f32[t=8,e=2], layout=\"sliced(t) on gpu\"}\n"
      "%2 = input {name=m, type=bool[s=8,t=8], layout=\"sliced(t) on gpu\"}\n"
      "%3, %4 = attention %0, %1, %1, %2 {over=t, along=s, inner=[e]}\nreturn y=%3\n");
  EXPECT_FALSE(spmd::infer_layouts(masked, plan::read_mesh("gpu=2").value()).ok());
}

}  // namespace
}  // namespace weft::ops
