// Attention in every shape, and narrow types in whole steps: on the CPU, and on the device that
// WEFT_TEST_DEVICE names (make test-gpu).
#include <cmath>

#include <gtest/gtest.h>

#include "execution_case.h"
#include "weft/device/element_access.h"
#include "weft/plan/ops/operators.h"

namespace weft::exec {
namespace {

// Rounds the numbers to what a source of this type can hold.
void round_to(plan::DType dtype, ops::Tensor<double>& tensor) {
  std::array<std::byte, 8> held = {};
  for (double& element : tensor.data) {
    device::store_element(dtype, held.data(), 0, element);
    element = device::load_element(dtype, held.data(), 0);
  }
}

void round_sources(const plan::Graph& graph, Tensors& sources) {
  for (std::size_t n = 0; n < graph.node_count(); ++n) {
    const plan::NodeView node = graph.view(plan::NodeId(n));
    if (&node.op() != &ops::input() && &node.op() != &ops::parameter() && &node.op() != &ops::state())
      continue;
    if (const auto found = sources.find(std::string(node.word(0))); found != sources.end())
      round_to(node.result_type(0).dtype, found->second);
  }
}

// Within a fraction of the largest element of each tensor: sums of narrow numbers lose that much by
// cancellation.
void expect_close(const Tensors& found, const Tensors& expected, double part) {
  for (const auto& [name, tensor] : expected) {
    double largest = 1e-3;
    for (const double x : tensor.data)
      if (std::isfinite(x)) largest = std::max(largest, std::fabs(x));
    const auto at = found.find(name);
    ASSERT_NE(at, found.end()) << name;
    ASSERT_EQ(at->second.data.size(), tensor.data.size()) << name;
    for (std::size_t i = 0; i < tensor.data.size(); ++i) {
      if (at->second.data[i] == tensor.data[i]) continue;
      ASSERT_LE(std::fabs(at->second.data[i] - tensor.data[i]), part * largest)
          << name << "[" << i << "] is " << at->second.data[i] << ", expected " << tensor.data[i];
    }
  }
}

// TYPE stands for each of the types. Covers heads that share keys, other key layouts, lengths and
// widths that are not multiples of a tile, windows, masks, and queries that see no key.
constexpr std::string_view kAttentions =
    R"(attention:2 | TYPE[b=2,h=3,s=70,e=64] | TYPE[b=2,h=3,t=70,e=64] | TYPE[b=2,h=3,t=70,e=64] | {over=t, along=s, inner=[e], causal=1, divisor=8}
attention:2 | TYPE[b=2,s=130,h=2,e=32] | TYPE[b=2,t=75,h=2,e=32] | TYPE[b=2,t=75,h=2,f=48] | {over=t, along=s, inner=[e], divisor=5}
attention:2 | TYPE[h=2,g=3,s=65,e=40] | TYPE[h=2,t=65,e=40] | TYPE[h=2,t=65,e=40] | {over=t, along=s, inner=[e], causal=1, window=20, scale=0.2}
attention:2 | TYPE[h=2,s=33,e=20] | TYPE[h=2,t=50,e=20] | TYPE[h=2,t=50,f=13] | bool[s=33,t=50] | {over=t, along=s, inner=[e], divisor=4}
attention:2 | TYPE[s=140,e=128] | TYPE[t=140,e=128] | TYPE[t=140,e=128] | {over=t, along=s, inner=[e], causal=1, begin=3, divisor=11}
attention:2 | TYPE[s=20,e=192] | TYPE[t=90,e=192] | TYPE[t=90,f=136] | {over=t, along=s, inner=[e], begin=4, causal=1, divisor=-14}
attention:2 | TYPE[s=20,e=16] | TYPE[t=20,e=16] | TYPE[t=20,f=16] | {over=t, along=s, inner=[e], causal=1, window=0}
attention-gradient:3 | TYPE[b=2,h=3,s=70,e=64] | TYPE[b=2,h=3,t=70,e=64] | TYPE[b=2,h=3,t=70,e=64] | TYPE[b=2,h=3,s=70,e=64] | f32[b=2,h=3,s=70] | TYPE[b=2,h=3,s=70,e=64] | {over=t, along=s, inner=[e], causal=1, divisor=8}
attention-gradient:3 | TYPE[b=2,s=130,h=2,e=32] | TYPE[b=2,t=75,h=2,e=32] | TYPE[b=2,t=75,h=2,f=48] | TYPE[b=2,s=130,h=2,f=48] | f32[b=2,s=130,h=2] | TYPE[b=2,s=130,h=2,f=48] | {over=t, along=s, inner=[e], divisor=5}
attention-gradient:3 | TYPE[h=2,g=3,s=65,e=40] | TYPE[h=2,t=65,e=40] | TYPE[h=2,t=65,e=40] | TYPE[h=2,g=3,s=65,e=40] | f32[h=2,g=3,s=65] | TYPE[h=2,g=3,s=65,e=40] | {over=t, along=s, inner=[e], causal=1, window=20, scale=0.2}
attention-gradient:3 | TYPE[h=2,s=33,e=20] | TYPE[h=2,t=50,e=20] | TYPE[h=2,t=50,f=13] | TYPE[h=2,s=33,f=13] | f32[h=2,s=33] | TYPE[h=2,s=33,f=13] | bool[s=33,t=50] | {over=t, along=s, inner=[e], divisor=4}
attention-gradient:3 | TYPE[s=140,e=128] | TYPE[t=140,e=128] | TYPE[t=140,e=128] | TYPE[s=140,e=128] | f32[s=140] | TYPE[s=140,e=128] | {over=t, along=s, inner=[e], causal=1, begin=3, divisor=11}
attention-gradient:3 | TYPE[s=20,e=192] | TYPE[t=90,e=192] | TYPE[t=90,f=136] | TYPE[s=20,f=136] | f32[s=20] | TYPE[s=20,f=136] | {over=t, along=s, inner=[e], begin=4, causal=1, divisor=-14}
)";

// Several tiles of queries and of keys, the last of each shorter.
constexpr std::string_view kLongAttentions =
    R"(attention:2 | TYPE[g=2,s=210,e=64] | TYPE[t=270,e=64] | TYPE[t=270,e=64] | {over=t, along=s, inner=[e], causal=1, begin=60, window=150, divisor=30}
attention:2 | TYPE[s=270,h=2,e=80] | TYPE[t=300,h=2,e=80] | TYPE[t=300,h=2,e=80] | {over=t, along=s, inner=[e], divisor=30}
attention:2 | TYPE[s=200,e=72] | TYPE[t=150,e=72] | TYPE[t=150,f=128] | {over=t, along=s, inner=[e], causal=1, divisor=-30}
attention:2 | TYPE[h=2,s=140,e=64] | TYPE[h=2,t=200,e=64] | TYPE[h=2,t=200,e=64] | bool[h=2,t=200] | {over=t, along=s, inner=[e], divisor=30}
attention:2 | TYPE[h=2,s=140,e=40] | TYPE[h=2,t=200,e=40] | TYPE[h=2,t=200,f=128] | bool[t=200,s=140] | {over=t, along=s, inner=[e], divisor=30}
attention-gradient:3 | TYPE[h=2,s=140,e=64] | TYPE[h=2,t=200,e=64] | TYPE[h=2,t=200,e=64] | TYPE[h=2,s=140,e=64] | f32[h=2,s=140] | TYPE[h=2,s=140,e=64] | bool[h=2,t=200] | {over=t, along=s, inner=[e], divisor=30}
attention-gradient:3 | TYPE[h=2,s=140,e=72] | TYPE[h=2,t=200,e=72] | TYPE[h=2,t=200,f=56] | TYPE[h=2,s=140,f=56] | f32[h=2,s=140] | TYPE[h=2,s=140,f=56] | bool[t=200,s=140] | {over=t, along=s, inner=[e], divisor=30}
attention-gradient:3 | TYPE[g=2,s=210,e=64] | TYPE[t=270,e=64] | TYPE[t=270,e=64] | TYPE[g=2,s=210,e=64] | f32[g=2,s=210] | TYPE[g=2,s=210,e=64] | {over=t, along=s, inner=[e], causal=1, begin=60, window=150, divisor=30}
attention-gradient:3 | TYPE[s=270,h=2,e=80] | TYPE[t=300,h=2,e=80] | TYPE[t=300,h=2,e=80] | TYPE[s=270,h=2,e=80] | f32[s=270,h=2] | TYPE[s=270,h=2,e=80] | {over=t, along=s, inner=[e], divisor=30}
attention-gradient:3 | TYPE[g=2,s=200,e=128] | TYPE[t=290,e=128] | TYPE[t=290,f=72] | TYPE[g=2,s=200,f=72] | f32[g=2,s=200] | TYPE[g=2,s=200,f=72] | {over=t, along=s, inner=[e], begin=90, causal=1, divisor=30}
attention-gradient:3 | TYPE[s=200,e=72] | TYPE[t=150,e=72] | TYPE[t=150,f=64] | TYPE[s=200,f=64] | f32[s=200] | TYPE[s=200,f=64] | {over=t, along=s, inner=[e], causal=1, divisor=-30}
)";

void expect_attention_as_defined(std::string_view cases, std::uint64_t seed) {
  Random random(seed);
  for (const std::string_view type : {"f32", "bf16", "f16"}) {
    std::string table(cases);
    for (std::size_t at = table.find("TYPE"); at != std::string::npos; at = table.find("TYPE", at))
      table.replace(at, 4, type);
    for (const ops::Case& c : ops::read_cases(table)) {
      SCOPED_TRACE(ops::text_of(c));
      const plan::Graph graph = ops::graph_of(c);
      Tensors inputs = ops::random_inputs<double>(c, graph, {}, random);
      round_sources(graph, inputs);
      const auto rank = start(graph, 2);
      fill(*rank, inputs);
      ASSERT_TRUE(rank->step().ok());
      expect_close(contents(*rank), interpreted(graph, inputs), type == "f32" ? 1e-4 : 2e-2);
    }
  }
}

TEST(OwnKernels, AttentionOfEveryWidthMatchesItsDefinition) { expect_attention_as_defined(kAttentions, 31); }
TEST(OwnKernels, AttentionOverSeveralTilesMatchesItsDefinition) {
  expect_attention_as_defined(kLongAttentions, 33);
}

// With its own kernels, on one worker and on three.
void expect_as_defined(const ops::Case& c, Random& random, double part) {
  SCOPED_TRACE(ops::text_of(c));
  const plan::Graph graph = ops::graph_of(c);
  Tensors inputs = ops::random_inputs<double>(c, graph, {}, random);
  round_sources(graph, inputs);
  const Tensors expected = interpreted(graph, inputs);
  for (const int workers : {1, 3}) {
    const auto rank = start(graph, workers);
    EXPECT_EQ(rank->reference_units(), 0u);
    fill(*rank, inputs);
    ASSERT_TRUE(rank->step().ok());
    expect_close(contents(*rank), expected, part);
  }
}

// Several tiles of rows with a shorter last one, ranges of classes of odd sizes, and rows without a
// label.
TEST(OwnKernels, TiledLossMatchesItsDefinition) {
  if (on_another_device()) GTEST_SKIP() << "only for the CPU";
  Random random(32);
  for (const std::string_view type : {"f32", "bf16", "f16"}) {
    std::string table(
        "linear-cross-entropy:3 | TYPE[b=3,s=201,d=17] | TYPE[v=70,d=17] | i32[b=3,s=201] < 71 | {over=v, "
        "inner=[d]}\n"
        "linear-cross-entropy:3 | TYPE[b=1100,d=5] | TYPE[d=5,v=33] | i64[b=1100] < 34 | {over=v, inner=[d], "
        "smoothing=0.1}\n"
        "linear-cross-entropy:4 | TYPE[b=3,s=201,d=17] | TYPE[v=70,d=17] | i32[b=3,s=201] < 71 | TYPE[v=70] "
        "| "
        "{over=v, inner=[d]}\n"
        "linear-cross-entropy:4 | TYPE[b=1100,d=2] | TYPE[d=2,v=33] | i64[b=1100] < 34 | TYPE[v=33] | "
        "{over=v, "
        "inner=[d], smoothing=0.1}\n"
        "linear-cross-entropy | TYPE[b=600,d=5] | TYPE[v=33,d=5] | i32[b=600] < 34 | TYPE[v=33] | {over=v, "
        "inner=[d], slopes=0}\n"
        "linear-cross-entropy | TYPE[b=1100,d=5] | TYPE[d=5,v=33] | i64[b=1100] < 34 | {over=v, inner=[d], "
        "smoothing=0.1, slopes=0}\n"
        "linear-cross-entropy:3 | TYPE[b=2,d=3,e=2] | TYPE[v=1,d=3,e=2] | i32[b=2] < 2 | {over=v, "
        "inner=[d,e]}\n");
    for (std::size_t at = table.find("TYPE"); at != std::string::npos; at = table.find("TYPE", at))
      table.replace(at, 4, type);
    for (const ops::Case& c : ops::read_cases(table))
      expect_as_defined(c, random, type == "f32" ? 1e-5 : 1e-2);
  }
}

// Both kinds, either operand transposed, batches, and sums longer than what is widened at a time.
TEST(OwnKernels, EightBitProductsMatchTheirDefinition) {
  if (on_another_device()) GTEST_SKIP() << "only for the CPU";
  Random random(33);
  for (const ops::Case& c :
       ops::read_cases("contract | f8e4m3[m=7,k=1300] | f8e4m3[k=1300,n=19] | {to=[m,n]}\n"
                       "contract | f8e5m2[k=40,m=530] | f8e4m3[n=3,k=40] | {to=[m,n]}\n"
                       "contract | f8e5m2[k=40,m=5] | f8e4m3[n=800,k=40] | {to=[n,m]}\n"
                       "contract | f8e4m3[b=3,m=4,k=9] | f8e5m2[b=3,n=5,k=9] | {to=[b,m,n]}\n"
                       "contract | f8e4m3[m=4,j=3,k=9] | f8e5m2[j=3,n=5,k=9] | {to=[m,n]}\n"
                       "contract | f8e4m3[k=1] | f8e4m3[k=1] | {to=[]}\n"))
    expect_as_defined(c, random, 1e-2);
}

// Three steps: a device that records a step replays the recording for the second and third.
TEST(Execution, StepsInNarrowTypesAreNearTheirDefinition) {
  for (const std::string_view name : {"bf16", "f16"}) {
    SCOPED_TRACE(name);
    const plan::Graph graph = narrow_training_plan(
        "char_gpt",
        {{"b", 2, {}}, {"s", 12, {}}, {"d", 24, {}}, {"h", 2, {}}, {"layers", 2, {}}, {"v", 17, {}}}, name);
    Random random(7);
    Tensors sources = random_sources(graph, 17, random);
    for (auto& [source, tensor] : sources)
      if (source.find("scale") != std::string::npos)
        tensor.data = {64.0};  // the loss scale; a step counter is zero
    round_sources(graph, sources);
    const auto rank = start(graph, 1);
    EXPECT_EQ(rank->reference_units(), 0u);
    for (int step = 0; step < 3; ++step) {
      const Tensors expected = interpreted(graph, sources);
      fill(*rank, sources);
      ASSERT_TRUE(rank->step().ok());
      expect_close(contents(*rank), expected, 4e-2);
      for (auto& [source, tensor] : sources)
        if (const auto next = expected.find(source); next != expected.end()) tensor = next->second;
      round_sources(graph, sources);
    }
  }
}

}  // namespace
}  // namespace weft::exec
