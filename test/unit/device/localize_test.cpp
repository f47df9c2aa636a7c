// The plan of one rank: exchanges stay, positions become explicit, and what a rank without data
// does.
#include "weft/plan/spmd/localize.h"

#include <array>

#include "lockstep_ranks.h"

namespace weft::ops {
namespace {

std::string local_text(std::string_view text, std::string_view mesh_text, std::int32_t rank) {
  const plan::Graph graph = read_plan(text);
  const plan::Mesh mesh = plan::read_mesh(mesh_text).value();
  const std::vector<plan::Layout> layouts = spmd::infer_layouts(graph, mesh).value();
  const Result<spmd::LocalPlan> local = spmd::localize(graph, mesh, layouts, rank, spmd::Exchanges::stay);
  return local.ok() ? print(local->graph) : local.error().message;
}

TEST(Localize, AnExchangeBecomesTheRanksSideOfIt) {
  EXPECT_EQ(local_text("plan p\n%0 = input {name=x, type=f32[b=8], layout=\"sliced(b) on gpu\"}\n"
                       "%1 = relu %0 @a.2.h\n%2 = all-gather %1 {axis=gpu, along=b}\nreturn y=%2\n",
                       "gpu=3", 2),
            "plan p\n%0 = input {name=x, type=f32[b=2]}\n%1 = relu %0 : f32[b=2] @a.2.h\n"
            "%2 = exchange %1 {kind=\"all-gather\", axis=gpu, ranks=3, type=f32[b=8], along=b} : f32[b=8]\n"
            "return y=%2\n");
}

// Rank 2 has no rows to sum and gets no block: it contributes zeros, receives nothing, and still
// joins the gather.
TEST(Localize, ARankWithoutDataTakesPart) {
  EXPECT_EQ(
      local_text("plan p\n%0 = input {name=x, type=f32[b=2,d=2], layout=\"sliced(b) on gpu\"}\n"
                 "%1 = reduce %0 {kind=sum, to=[d]}\n%2 = reduce-scatter %1 {axis=gpu, along=d}\n"
                 "%3 = relu %2\n%4 = all-gather %3 {axis=gpu, along=d}\nreturn y=%4\n",
                 "gpu=3", 2),
      "plan p\n%0 = constant {value=0, dtype=f32}\n%1 = broadcast %0 {type=f32[d=2]} : f32[d=2]\n"
      "%2 = exchange %1 {kind=\"reduce-scatter\", axis=gpu, ranks=3, type=f32[], along=d, takes=0} : f32[]\n"
      "%3 = exchange {kind=\"all-gather\", axis=gpu, ranks=3, type=f32[d=2], along=d}\nreturn y=%3\n");
}

// Values that no output needs are removed on every rank, so that no rank waits in vain.
TEST(Localize, RemovesUnusedValues) {
  EXPECT_EQ(local_text("plan p\n%0 = input {name=x, type=f32[b=4], layout=\"sliced(b) on gpu\"}\n"
                       "%1 = all-gather %0 {axis=gpu, along=b}\n%2 = relu %0\nreturn y=%2\n",
                       "gpu=2", 1),
            "plan p\n%0 = input {name=x, type=f32[b=2]}\n%1 = relu %0 : f32[b=2]\nreturn y=%1\n");
}

TEST(Localize, SlicesGetTheirOffset) {
  EXPECT_EQ(local_text("plan p\n%0 = input {name=ids, type=i32[b=3]}\n"
                       "%1 = parameter {name=t, type=f32[v=8,d=2], layout=\"sliced(v) on gpu\"}\n"
                       "%2 = gather %0, %1 {along=v}\n%3 = all-reduce %2 {axis=gpu}\nreturn y=%3\n",
                       "gpu=3", 1),
            "plan p\n%0 = input {name=ids, type=i32[b=3]}\n%1 = parameter {name=t, type=f32[v=3,d=2]}\n"
            "%2 = gather %0, %1 {along=v, begin=3} : f32[b=3,d=2]\n"
            "%3 = exchange %2 {kind=\"all-reduce\", axis=gpu, ranks=3, type=f32[b=3,d=2]} : f32[b=3,d=2]\n"
            "return y=%3\n");
}

// The rows of a table gradient that other ranks keep are not computed here.
TEST(Localize, ComputesOnlyTheRanksSlice) {
  const std::string text = local_text(
      "plan p\n%0 = input {name=ids, type=i32[b=6]}\n%1 = input {name=x, type=f32[b=6,d=3]}\n"
      "%2 = scatter-add %0, %1 {along=v, size=5, to=[v,d]}\n%3 = slice-across %2 {axis=gpu, along=v}\n"
      "return y=%3\n",
      "gpu=2", 1);
  EXPECT_NE(text.find("scatter-add %0, %1 {along=v, size=2, to=[v,d], begin=3} : f32[v=2,d=3]"),
            std::string::npos)
      << text;
  EXPECT_EQ(text.find("slice"), std::string::npos) << text;
}

// Every positional operator, sliced along the index whose position it needs. On the virtual mesh
// and as compiled programs, the slices are bitwise equal to those of the whole.
TEST(Localize, SlicesOfPositionalOperatorsEqualThoseOfTheWhole) {
  constexpr std::array<std::string_view, 6> kPlans = {
      "%0 = input {name=x, type=f32[b=5,d=6], layout=\"sliced(b) on gpu\"}\n%1 = input {name=s, type=i64[]}\n"
      "%2 = dropout %0, %1 {rate=0.4, stream=3}\nreturn y=%2\n",
      "%0 = input {name=x, type=f32[b=5,c=3,d=6], layout=\"sliced(d) on gpu, sliced(b) on node\"}\n"
      "%1 = input {name=s, type=i64[]}\n%2 = dropout %0, %1 {rate=0.4, stream=3}\nreturn y=%2\n",
      "%0 = input {name=x, type=f32[b=2,p=7,e=4], layout=\"sliced(p) on gpu\"}\n"
      "%1 = rotary %0 {along=p, pairs=e}\n%2 = rotary %1 {along=p, pairs=e, inverse=1}\nreturn y=%1, z=%2\n",
      "%0 = input {name=ids, type=i32[b=6]}\n"
      "%1 = parameter {name=t, type=f32[v=5,d=3], layout=\"sliced(v) on gpu\"}\n"
      "%2 = gather %0, %1 {along=v}\n%3 = all-reduce %2 {axis=gpu}\nreturn y=%3\n",
      "%0 = input {name=ids, type=i32[b=6]}\n%1 = input {name=x, type=f32[b=6,d=3]}\n"
      "%2 = input {name=w, type=f32[v=5,d=3], layout=\"sliced(v) on gpu\"}\n"
      "%3 = scatter-add %0, %1 {along=v, size=5, to=[v,d]}\n%4 = slice-across %3 {axis=gpu, along=v}\n"
      "%5 = add %4, %2\nreturn y=%5\n",
      "%0 = input {name=x, type=f32[b=3,p=7], layout=\"sliced(p) on gpu\"}\n"
      "%1 = position {along=p, size=7}\n%2 = slice-across %1 {axis=gpu, along=p}\n%3 = cast %2 {to=f32}\n"
      "%4 = add %0, %3\nreturn y=%4, at=%2\n"};
  for (const std::string_view lines : kPlans) {
    const plan::Graph graph = read_plan(fmt::format("plan p\n{}", lines));
    for (const std::string_view text : {"gpu=2, node=1", "gpu=3, node=2", "node=2, gpu=4", "gpu=8, node=1"}) {
      const plan::Mesh mesh = plan::read_mesh(text).value();
      EXPECT_EQ(difference<float>(graph, mesh), "") << text << "\n" << print(graph);
      EXPECT_EQ(difference<Field>(graph, mesh), "") << text << "\n" << print(graph);
      EXPECT_EQ(program::difference_in_lockstep(graph, mesh, {}, 1e-6f), "") << text << "\n" << print(graph);
    }
  }
}

// An offset outside the whole, or an invalid whole, is rejected.
TEST(Localize, RejectsInvalidOffsets) {
  for (const std::string_view bad :
       {"begin=-1", "begin=24", "whole=\"2\"", "whole=\"3,4,\"", "whole=\"x\"", "begin=10, whole=\"4,6\"",
        "whole=\"99999999999,99999999999\"", "whole=\"99999999999999999999,4\""}) {
    const auto graph = plan::read(
        fmt::format("plan p\n%0 = input {{name=x, type=f32[b=3,d=4]}}\n%1 = input {{name=s, type=i64[]}}\n"
                    "%2 = dropout %0, %1 {{rate=0.5, {}}}\nreturn y=%2\n",
                    bad),
        all());
    EXPECT_FALSE(graph.ok()) << bad;
  }
}

// Untrusted text: an exchange with inconsistent sides is rejected.
TEST(Localize, RejectsInvalidExchanges) {
  for (const std::string_view bad :
       {"{kind=gather, axis=gpu, ranks=2, type=f32[b=8]}",
        "{kind=\"all-gather\", axis=gpu, ranks=2, type=f32[b=8]}",
        "{kind=\"all-gather\", axis=gpu, ranks=2, type=f32[b=10], along=b}",
        "{kind=\"all-gather\", axis=gpu, ranks=0, type=f32[b=8], along=b}",
        "{kind=\"all-gather\", axis=gpu, ranks=2, type=i32[b=8], along=b}",
        "{kind=\"all-to-all\", axis=gpu, ranks=2, type=f32[b=8], along=b, to=b}",
        "{kind=\"all-to-all\", axis=gpu, ranks=2, type=f32[b=8], along=b}",
        "{kind=\"reduce-scatter\", axis=gpu, ranks=2, type=f32[], along=d, takes=0}",
        "{kind=\"all-reduce\", axis=gpu, ranks=2, type=f32[b=4], monoid=mean}",
        "{kind=\"all-reduce\", axis=\"\", ranks=2, type=f32[b=4]}",
        "{kind=\"broadcast-from\", axis=gpu, ranks=2, type=f32[b=4], by=2}",
        "{kind=\"all-reduce\", axis=gpu, ranks=2, type=f32[b=4], takes=0}"}) {
    const auto graph = plan::read(
        fmt::format("plan p\n%0 = input {{name=x, type=f32[b=4]}}\n%1 = exchange %0 {}\nreturn y=%1\n", bad),
        all());
    EXPECT_FALSE(graph.ok()) << bad;
  }
  const plan::Graph graph = read_plan(
      "plan p\n%0 = input {name=x, type=f32[b=4]}\n"
      "%1 = exchange %0 {kind=\"all-reduce\", axis=gpu, ranks=2, type=f32[b=4]}\nreturn y=%1\n");
  const Tensor<float> x{{4}, {1, 2, 3, 4}};
  EXPECT_FALSE(interpret<float>(graph, [&](std::string_view) { return &x; }).ok());
  EXPECT_FALSE(spmd::infer_layouts(graph, plan::read_mesh("gpu=2").value()).ok());
}

}  // namespace
}  // namespace weft::ops
