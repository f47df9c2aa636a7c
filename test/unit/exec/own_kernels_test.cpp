// Operators with their own kernels: in every order of their indices, large enough to be split into
// tasks, with bitwise equal results for any number of workers. Also which operators run by their
// definition, and why.
#include <gtest/gtest.h>

#include "execution_case.h"
#include "weft/program/tasks/items.h"

namespace weft::exec {
namespace {

constexpr std::string_view kKernels = R"(softmax | f32[b=5,c=19,h=11,w=13] | {over=[c]}
softmax | f32[c=19,b=37] | {over=[c]}
softmax | f32[s=3,b=40,t=17] | {over=[t,s]}
softmax | f32[s=300,b=70] | {over=[s,b]}
layer-norm:2 | f32[d=64,b=300] | {over=[d]}
rms-norm:2 | f32[d=6,b=300,e=5] | {over=[d,e]}
cross-entropy | f32[b=60,c=19,h=7,w=9] | i32[b=60,h=7,w=9] < 19 | {over=c}
cross-entropy | f32[c=101,b=60,s=20] | i64[s=20,b=60] < 101 | {over=c}
cross-entropy | f32[b=1,c=1] | i64[b=1] < 1 | {over=c}
cross-entropy-gradient | f32[b=60,c=19,h=7,w=9] | i64[b=60,h=7,w=9] < 19 | f32[b=60,h=7,w=9] | {over=c}
cross-entropy-gradient | f32[b=700,c=65] | i64[b=700] < 65 | f32[b=700] | {over=c}
gather | i64[b=64,s=33] < 90 | f32[v=90,d=48] | {along=v}
gather | i32[b=64,s=33] < 90 | f32[b=64,v=90] | {along=v}
gather | i32[b=6,s=33] < 90 | f32[b=6,v=90,d=48] | {along=v}
gather | i32[b=6,s=33] < 90 | f32[d=48,v=90,b=6,e=3] | {along=v}
gather | i32[b=6,s=33] < 90 | f32[d=7,v=90] | {along=v, begin=4}
gather | i32[b=6,s=33] < 90 | i64[v=90,d=7] < 9 | {along=v}
gather | i64[] < 2 | bool[v=3,e=5] | {along=v}
gather | i32[b=6,s=33] < 90 | f32[b=6,v=50,d=16] | {along=v, begin=20}
gather | i32[b=6,s=33,k=2] < 90 | f32[b=6,v=90,d=20] | {along=v}
gather | i32[p=9] < 4 | f32[a=2,v=4,b=1,c=2,d=1,e=2,f=2,g=1,h=2,i=2,j=2] | {along=v}
scatter-add | i64[s=2000] < 90 | f32[s=2000,d=48] | {along=n, size=90, to=[n,d]}
scatter-add | i32[s=2000] < 90 | f32[s=2000,d=3] | {along=n, size=90, to=[n,d], begin=7}
scatter-add | i32[b=16,s=200] < 90 | f32[b=16,s=200,d=40] | {along=n, size=90, to=[b,n,d]}
scatter-add | i32[b=16,s=200] < 90 | f32[b=16,s=200,d=40] | {along=n, size=90, to=[d,n]}
scatter-add | i32[b=16,s=200] < 90 | f32[s=200,d=40,b=16,e=2] | {along=n, size=90, to=[b,e,n]}
scatter-add | i32[b=16,s=200] < 90 | f32[s=200,d=32] | {along=n, size=90, to=[n,b,d]}
scatter-add | i32[] < 3 | f32[d=32] | {along=n, size=3, to=[n]}
scatter-add | i32[s=700] < 2 | f32[s=700,d=72] | {along=n, size=3, to=[n,d]}
scatter-add | i32[s=700,k=2] < 60 | f32[s=700,d=13] | {along=n, size=50, to=[n,d]}
scatter-add | i32[b=3,s=70,k=2] < 90 | f32[b=3,s=70,d=16] | {along=n, size=40, to=[b,n,d], begin=30}
scatter-add | i64[b=90,k=2] < 8 | f32[b=90,k=2] | {along=x, size=8, to=[b,x]}
scatter-add | i32[b=90,k=5] < 8 | f32[k=5,b=90,d=8] | {along=x, size=7, to=[x,b,d], begin=1}
top-k:2 | f32[b=600,x=64] | {over=x, into=k, count=2}
top-k:2 | f32[x=64,b=600] | {over=x, into=k, count=8}
top-k:2 | f32[b=60,x=77,c=5] | {over=x, into=k, count=77}
top-k:2 | f32[b=6,x=1] | {over=x, into=k, count=1}
slot | i64[b=200,s=64] < 8 | {experts=8, capacity=5, over=[s]}
slot | i32[b=30,s=40,k=2] < 8 | {experts=8, capacity=9, over=[k,s]}
slot | i32[s=4000] < 8 | {experts=8, capacity=100, over=[s]}
slot | i32[b=2,s=1029] < 900 | {experts=600, capacity=2, over=[s]}
slot | i64[s=5000] < 9000 | {experts=8999, capacity=1, over=[s]}
slot | i32[b=5,s=1] < 3 | {experts=2, capacity=1, over=[s]}
rotary | f32[b=9,s=40,h=6,e=16] | {along=s, pairs=e}
rotary | f32[e=16,b=9,s=40] | {along=s, pairs=e}
rotary | f32[b=9,e=16,s=40] | {along=s, pairs=e, inverse=1}
batch-norm:4 | f32[b=60,c=33,h=7,w=7] | f32[c=33] | f32[c=33] > 0 | {over=[b,h,w]}
batch-norm:4 | f32[b=900,c=70] | f32[c=70] | f32[c=70] > 0 | {over=[b]}
batch-norm:4 | f32[c=33,b=600] | f32[c=33] | f32[c=33] > 0 | {over=[b]}
batch-norm:4 | f32[b=60,c=33,h=3] | f32[c=33] | f32[c=33] > 0 | {over=[b,h], mode=infer}
concat | f32[b=70,c=3,h=90] | f32[b=70,c=5,h=90] | f32[b=70,c=1,h=90] | {along=c}
concat | f32[b=7000,c=3] | f32[b=7000,c=2] | {along=c}
concat | i64[b=70000] < 9 | i64[b=3] < 9 | {along=b}
pad | f32[b=70,c=30,h=9] | {along=c, before=2, after=3}
pad | f32[b=5000,h=9] | {along=b, before=0, after=77}
conv2d-weight-gradient | f32[b=6,o=24,h=9,w=9] | f32[b=6,c=40,h=9,w=9] | {padding=1, type=f32[o=24,i=40,r=3,q=3]}
conv2d-weight-gradient | f32[b=6,o=24,h=9,w=9] | f32[b=6,c=48,h=9,w=9] | {padding=1, groups=12, type=f32[o=24,i=4,r=3,q=3]}
)";

TEST(OwnKernels, MatchTheirDefinitionInAnyOrderOfIndices) {
  Random random(22);
  for (const ops::Case& c : ops::read_cases(kKernels)) {
    SCOPED_TRACE(ops::text_of(c));
    const plan::Graph graph = ops::graph_of(c);
    Tensors inputs = ops::random_inputs<double>(c, graph, {}, random);
    for (auto& [name, tensor] : inputs)
      for (double& element : tensor.data) element = static_cast<float>(element);
    const Tensors expected = interpreted(graph, inputs);
    Tensors alone;
    for (const int workers : {1, 2, 4}) {
      const auto rank = start(graph, workers);
      EXPECT_EQ(rank->reference_units(), 0u);
      fill(*rank, inputs);
      ASSERT_TRUE(rank->step().ok());
      const Tensors found = contents(*rank);
      expect_near(found, expected, 1e-4, 2e-4, ops::text_of(c));
      if (workers == 1) alone = found;
      for (const auto& [name, tensor] : found) EXPECT_EQ(tensor.data, alone.at(name).data) << name;
    }
  }
}

// One row of a batch times a matrix in either layout, and a dot product without other indices.
TEST(OwnKernels, AProductOfOneRowUsesTheProductKernel) {
  Random random(24);
  for (const ops::Case& c : ops::read_cases(R"(contract | f32[b=1,k=37] | f32[k=37,n=53] | {to=[b,n]}
contract | f32[b=1,k=37] | f32[n=53,k=37] | {to=[b,n]}
contract | f32[m=41,k=37] | f32[n=1,k=37] | {to=[n,m]}
contract | f32[b=1,h=3,e=8] | f32[h=3,t=21,e=8] | {to=[b,h,t]}
contract | f32[b=1,k=37] | f32[k=37,n=1] | {to=[b,n]}
contract | f32[b=1,k=1] | f32[k=1,n=5] | {to=[b,n]}
)")) {
    SCOPED_TRACE(ops::text_of(c));
    const plan::Graph graph = ops::graph_of(c);
    const Tensors inputs = ops::random_inputs<double>(c, graph, {}, random);
    for (const int workers : {1, 2}) {
      const auto rank = start(graph, workers);
      EXPECT_EQ(rank->reference_units(), 0u);
      fill(*rank, inputs);
      ASSERT_TRUE(rank->step().ok());
      expect_near(contents(*rank), interpreted(graph, inputs), 1e-4, 1e-5, ops::text_of(c));
    }
  }
}

// Large enough that one worker has several tasks.
TEST(OwnKernels, AreSplitIntoTasks) {
  if (on_another_device()) GTEST_SKIP() << "it splits units itself";
  Random random(23);
  for (const ops::Case& c : ops::read_cases(
           R"(batch-norm:4 | f32[b=60,c=33,h=7,w=7] | f32[c=33] | f32[c=33] > 0 | {over=[b,h,w]}
rotary | f32[b=9,s=40,h=6,e=16] | {along=s, pairs=e}
scatter-add | i64[s=2000] < 90 | f32[s=2000,d=48] | {along=n, size=90, to=[n,d]}
concat | f32[b=70,c=3,h=90] | f32[b=70,c=5,h=90] | {along=c}
conv2d-weight-gradient | f32[b=6,o=24,h=9,w=9] | f32[b=6,c=40,h=9,w=9] | {padding=1, type=f32[o=24,i=40,r=3,q=3]}
)")) {
    const auto rank = start(ops::graph_of(c), 2);
    EXPECT_GT(rank->program().tasks.size(), rank->program().units.size()) << c.op;
  }
}

struct ReferenceOps {
  std::string_view row, why;
};

TEST(OwnKernels, ReportWhyTheDefinitionRuns) {
  if (on_another_device()) GTEST_SKIP() << "it has kernels of its own";
  const ReferenceOps rows[] = {
      {"contract | f32[b=2,d=3] | f32[d=3,f=2] | f32[f=2,c=2] | {to=[b,c]}",
       "it multiplies 3 factors at once"},
      {"contract | i32[b=2,d=3] < 4 | i32[d=3,f=2] < 4 | {to=[b,f]}", "its elements are i32"},
      {"top-k:2 | f64[b=3,x=5] | {over=x, into=k, count=2}", "its elements are f64"},
      {"softmax | f64[b=3,x=5] | {over=[x]}", "its elements are f64"},
      {"batch-norm:4 | f32[b=3,c=2,g=2] | f32[g=2,c=2] | f32[c=2,g=2] > 0 | {over=[b]}",
       "its statistics have 2 indices"},
  };
  for (const ReferenceOps& row : rows) {
    const ops::Case c = ops::read_cases(row.row)[0];
    const plan::Graph graph = ops::graph_of(c);
    EXPECT_EQ(start(graph, 1)->reference_units(), 1u) << row.row;
    EXPECT_EQ(program::why_reference_op(graph.view(plan::NodeId(graph.node_count() - 1))), row.why);
  }
}

}  // namespace
}  // namespace weft::exec
