// CUDA sources compile, and every unit of the shipped models has a kernel. Needs no GPU.
#include <set>

#include <gtest/gtest.h>

#include "execution_case.h"
#include "weft/device/cuda/compile.h"
#include "weft/device/cuda/kernels.h"

namespace weft::exec {
namespace {

using device::cuda::Handle;

// Compiles each source once, for the oldest supported architecture or for Hopper.
class CompiledOnly final : public device::cuda::Functions {
 public:
  explicit CompiledOnly(bool hopper = false) : hopper_(hopper) {}

  Result<Handle> function(const std::string& text, const std::string& name, std::int64_t) override {
    EXPECT_NE(text.find("void " + name + "("), std::string::npos) << name;
    if (texts_.insert(text).second) {
      WEFT_TRY(image, device::cuda::compile(text, hopper_ ? "sm_90a" : "sm_80"));
      if (name.ends_with("_hopper")) for_hopper_.insert(text);
      EXPECT_FALSE(image.empty());
    }
    return nullptr;
  }
  bool hopper() const override { return hopper_; }
  std::size_t texts() const { return texts_.size(); }
  std::size_t for_hopper() const { return for_hopper_.size(); }

 private:
  const bool hopper_;
  std::set<std::string> texts_, for_hopper_;
};

void compile_all(const plan::Graph& graph, CompiledOnly& functions) {
  const auto program =
      program::compile(std::make_shared<plan::Graph>(graph.clone()),
                       {.workers = 1, .any_float = true, .accelerated = true, .tiles = false});
  ASSERT_TRUE(program.ok()) << program.error().message;
  alignas(256) static std::byte nowhere[256];
  for (const program::Unit& unit : program->units) {
    const auto kernel = device::cuda::make_kernel(functions, *program, unit, device::Address(nowhere));
    EXPECT_TRUE(kernel.ok()) << program::describe(*program, unit) << ": " << kernel.error().message;
  }
}

TEST(GpuSources, OfWholeTrainingStepsCompile) {
  if (const auto found = device::cuda::compiler(); !found.ok()) GTEST_SKIP() << found.error().message;
  if (const auto found = device::cuda::blas(); !found.ok()) GTEST_SKIP() << found.error().message;
  CompiledOnly functions;
  compile_all(training_plan("char_gpt", {{"b", 2, {}}, {"s", 16, {}}, {"layers", 1, {}}}), functions);
  const std::size_t one_layer = functions.texts();
  compile_all(training_plan("char_gpt", {{"b", 2, {}}, {"s", 16, {}}, {"layers", 3, {}}}), functions);
  // Identical layers share their sources; the sums that gather their gradients differ.
  EXPECT_LT(functions.texts(), one_layer + one_layer / 2);
  compile_all(training_plan("digits_conv", {{"b", 4, {}}}), functions);
}

TEST(GpuSources, OfNarrowNumbersAndAttentionCompile) {
  if (const auto found = device::cuda::compiler(); !found.ok()) GTEST_SKIP() << found.error().message;
  if (const auto found = device::cuda::blas(); !found.ok()) GTEST_SKIP() << found.error().message;
  CompiledOnly functions;
  compile_all(narrow_training_plan("char_gpt", {{"b", 2, {}}, {"s", 16, {}}, {"layers", 1, {}}}, "bf16"),
              functions);
  compile_all(narrow_training_plan("digits_conv", {{"b", 4, {}}}, "f16"), functions);
  for (
      const ops::Case& c : ops::read_cases(
          R"(attention:2 | f16[b=2,s=130,h=2,e=32] | f16[b=2,t=75,h=2,e=32] | f16[b=2,t=75,h=2,f=48] | {over=t, along=s, inner=[e], window=9}
attention:2 | f32[h=2,s=33,e=20] | f32[h=2,t=50,e=20] | f32[h=2,t=50,f=13] | bool[s=33,t=50] | {over=t, along=s, inner=[e]}
attention-gradient:3 | bf16[h=2,g=3,s=65,e=64] | bf16[h=2,t=65,e=64] | bf16[h=2,t=65,e=64] | bf16[h=2,g=3,s=65,e=64] | f32[h=2,g=3,s=65] | bf16[h=2,g=3,s=65,e=64] | bool[s=65,t=65] | {over=t, along=s, inner=[e], causal=1}
attention-gradient:3 | f32[s=20,e=24] | f32[t=9,e=24] | f32[t=9,f=136] | f32[s=20,f=136] | f32[s=20] | f32[s=20,f=136] | {over=t, along=s, inner=[e], scale=-2}
max-pool | bf16[c=2,h=11,w=13] | {size=3, stride=2, padding=1}
max-pool-gradient | bf16[c=2,h=8,w=8] | bf16[c=2,h=16,w=16] | {size=3, stride=2, padding=1}
max-pool-gradient | f16[c=2,h=4,w=5] | f16[c=2,h=11,w=13] | {size=3, stride=3, padding=1}
max-pool-gradient | bf16[c=2,h=2,w=2] | bf16[c=2,h=20,w=20] | {size=4, stride=10}
)"))
    compile_all(ops::graph_of(c), functions);
}

// Tokens routed to experts and back: few elements and many, with and without lists, a few rows
// summed by a thread, very many experts.
TEST(GpuSources, OfRoutingCompile) {
  if (const auto found = device::cuda::compiler(); !found.ok()) GTEST_SKIP() << found.error().message;
  if (const auto found = device::cuda::blas(); !found.ok()) GTEST_SKIP() << found.error().message;
  CompiledOnly functions;
  compile_all(narrow_training_plan("mixtral_8x7b",
                                   {{"b", 2, {}},
                                    {"s", 64, {}},
                                    {"d", 64, {}},
                                    {"h", 2, {}},
                                    {"g", 1, {}},
                                    {"f", 32, {}},
                                    {"experts", 4, {}},
                                    {"layers", 1, {}},
                                    {"v", 100, {}}},
                                   "bf16"),
              functions);
  for (const ops::Case& c : ops::read_cases(
           R"(scatter-add | i32[b=16,s=200] < 90 | bf16[s=200,d=40,b=16,e=2] | {along=n, size=90, to=[b,e,n]}
scatter-add | i64[b=90,k=2] < 8 | f32[b=90,k=2,d=3] | {along=x, size=8, to=[b,x]}
scatter-add | i32[s=70] < 8 | f16[s=70,d=24] | {along=n, size=9, to=[n,d]}
gather | i32[b=6,s=33] < 90 | f16[b=6,v=50,d=16] | {along=v, begin=20}
gather | i64[] < 2 | bool[v=3,e=5] | {along=v}
slot | i32[b=30,s=40,k=2] < 8 | {experts=8, capacity=9, over=[k,s]}
slot | i64[s=50] < 9000 | {experts=8999, capacity=1, over=[s]}
reduce | bf16[b=1040,k=2,d=256] | {kind=sum, to=[b,d]}
reduce | f32[b=40,k=64,d=1028] | {kind=max, to=[b,d]}
)"))
    compile_all(ops::graph_of(c), functions);
}

// Attention kernels for Hopper: widths that do not fill a tile, heads that share keys, windows,
// masks, several tiles. Unsupported shapes (rows not aligned to 16 bytes, heads wider than 128) use
// the general kernels.
TEST(GpuSources, OfAttentionOnHopperCompile) {
  if (const auto found = device::cuda::compiler(); !found.ok()) GTEST_SKIP() << found.error().message;
  const auto texts_for_hopper = [](std::string_view table) {
    CompiledOnly functions(true);
    for (const ops::Case& c : ops::read_cases(table)) compile_all(ops::graph_of(c), functions);
    return functions.for_hopper();
  };
  EXPECT_EQ(
      texts_for_hopper(
          R"(attention:2 | bf16[b=2,s=1024,h=2,e=64] | bf16[b=2,t=1024,h=2,e=64] | bf16[b=2,t=1024,h=2,e=64] | {over=t, along=s, inner=[e], causal=1}
attention:2 | f16[b=2,s=130,h=2,e=32] | f16[b=2,t=75,h=2,e=32] | f16[b=2,t=75,h=2,f=48] | {over=t, along=s, inner=[e], window=9}
attention-gradient:3 | bf16[h=2,g=3,s=65,e=40] | bf16[h=2,t=65,e=40] | bf16[h=2,t=65,e=40] | bf16[h=2,g=3,s=65,e=40] | f32[h=2,g=3,s=65] | bf16[h=2,g=3,s=65,e=40] | {over=t, along=s, inner=[e], causal=1, window=20}
attention-gradient:3 | f16[s=140,e=128] | f16[t=140,e=128] | f16[t=140,f=72] | f16[s=140,f=72] | f32[s=140] | f16[s=140,f=72] | {over=t, along=s, inner=[e], scale=-2}
attention:2 | bf16[h=2,s=33,e=64] | bf16[h=2,t=50,e=64] | bf16[h=2,t=50,f=64] | bool[s=33,t=50] | {over=t, along=s, inner=[e]}
attention-gradient:3 | bf16[h=2,s=65,e=64] | bf16[h=2,t=65,e=64] | bf16[h=2,t=65,e=64] | bf16[h=2,s=65,e=64] | f32[h=2,s=65] | bf16[h=2,s=65,e=64] | bool[h=2,t=65] | {over=t, along=s, inner=[e]}
)"),
      6u);
  EXPECT_EQ(
      texts_for_hopper(
          R"(attention:2 | f16[s=33,e=20] | f16[t=50,e=20] | f16[t=50,f=13] | {over=t, along=s, inner=[e]}
attention:2 | bf16[s=33,e=192] | bf16[t=50,e=192] | bf16[t=50,f=64] | {over=t, along=s, inner=[e]}
attention:2 | f32[s=33,e=64] | f32[t=50,e=64] | f32[t=50,f=64] | {over=t, along=s, inner=[e]}
)"),
      0u);
}

// Casts fused into kernels of an accelerator leave nothing unwritten, and logits have padded rows.
TEST(GpuSources, EveryReadFollowsAWrite) {
  for (const std::string_view precision : {"bf16", "f16"}) {
    const plan::Graph graph = narrow_training_plan(
        "char_gpt",
        {{"b", 2, {}}, {"s", 16, {}}, {"d", 24, {}}, {"h", 2, {}}, {"layers", 1, {}}, {"v", 17, {}}},
        precision);
    const auto program =
        program::compile(std::make_shared<plan::Graph>(graph.clone()),
                         {.workers = 1, .any_float = true, .accelerated = true, .tiles = false});
    ASSERT_TRUE(program.ok()) << program.error().message;
    std::set<std::uint32_t> written;
    for (std::size_t b = 0; b < program->buffers.size(); ++b)
      if (is_persistent(program->buffers[b].role)) written.insert(static_cast<std::uint32_t>(b));
    bool even = false;
    for (const program::Task& task : program->tasks) {
      const program::Unit& unit = program->units[task.unit];
      for (const program::Place& place : unit.reads)
        EXPECT_TRUE(written.contains(place.buffer.value)) << program::describe(*program, unit);
      for (const program::Place& place : unit.writes) {
        written.insert(place.buffer.value);
        EXPECT_LE(extent(place).end, program->buffer(place.buffer).bytes)
            << program::describe(*program, unit);
      }
      if (const auto* product = std::get_if<program::MatrixProduct>(&unit.kernel))
        even |= product->n == 17 && product->c.row_stride == 24;
    }
    EXPECT_TRUE(even);
  }
}

// Strided heads are copied to be contiguous before they are summed over: one product, with the
// right result.
TEST(GpuSources, MakesStridedSumsContiguous) {
  for (const std::string_view text :
       {"contract | f32[b=2,h=3,g=2,s=5,e=4] | f32[h=3,g=2,e=4,d=7] | {to=[b,s,d]}",
        "contract | f32[b=2,x=3,c=4,d=5] | f32[b=2,x=3,c=4,f=6] | {to=[x,d,f]}"}) {
    const ops::Case one = ops::read_cases(text).front();
    const auto graph = std::make_shared<plan::Graph>(ops::graph_of(one));
    for (const bool accelerated : {false, true}) {
      const auto program = program::compile(graph, {.accelerated = accelerated, .tiles = false});
      ASSERT_TRUE(program.ok()) << program.error().message;
      std::int64_t terms = 0;
      for (const program::Unit& unit : program->units)
        if (const auto* product = std::get_if<program::MatrixProduct>(&unit.kernel)) {
          terms = 1;
          for (const program::ProductLoop& loop : product->summed) terms *= loop.size;
        }
      if (accelerated)
        EXPECT_EQ(terms, 1) << text;
      else
        EXPECT_GT(terms, 1) << text;
    }
  }
}

TEST(GpuSources, ReportsHeadsThatAreTooWide) {
  CompiledOnly functions;
  const plan::Graph graph = ops::graph_of(
      ops::read_cases(
          "attention:2 | bf16[s=2,e=300] | bf16[t=2,e=300] | bf16[t=2,e=4] | {over=t, along=s, inner=[e]}")
          .front());
  const auto program = program::compile(std::make_shared<plan::Graph>(graph.clone()),
                                        {.any_float = true, .accelerated = true, .tiles = false});
  ASSERT_TRUE(program.ok());
  alignas(256) static std::byte nowhere[256];
  const auto kernel =
      device::cuda::make_kernel(functions, *program, program->units.front(), device::Address(nowhere));
  ASSERT_FALSE(kernel.ok());
  EXPECT_EQ(kernel.error().message, "attention on the GPU supports heads up to 256 wide, found 300 and 4");
}

TEST(GpuSources, ReportsCompilerErrors) {
  if (const auto found = device::cuda::compiler(); !found.ok()) GTEST_SKIP() << found.error().message;
  const auto image = device::cuda::compile("extern \"C\" __global__ void f() { nonsense(); }", "sm_80");
  ASSERT_FALSE(image.ok());
  EXPECT_NE(image.error().message.find("nonsense"), std::string::npos);
}

TEST(GpuSources, ReportsWhatAMachineWithoutAGpuLacks) {
  if (device::cuda::driver().ok()) GTEST_SKIP() << "this machine has a driver";
  const auto opened = device::open_device("cuda:0");
  ASSERT_FALSE(opened.ok());
  EXPECT_EQ(opened.error().fault, Fault::world);
  EXPECT_NE(opened.error().message.find("driver"), std::string::npos) << opened.error().message;
  EXPECT_FALSE(device::open_device("cuda:x").ok());
}

}  // namespace
}  // namespace weft::exec
