// Plans on a virtual mesh: slices, partial values and replicas must give the results of one device.
#include <array>

#include "mesh_case.h"
#include "weft/plan/ops/exchange.h"
#include "weft/plan/spmd/localize.h"

namespace weft::ops {
namespace {

constexpr std::array<std::string_view, 4> kMeshes = {"gpu=1, node=1", "gpu=4, node=1", "node=2, gpu=3",
                                                     "gpu=2, node=2"};

// Even, uneven, and too few for every rank to have one.
constexpr std::array<std::array<int, 3>, 4> kSizes = {{{4, 8, 6}, {5, 7, 3}, {1, 2, 5}, {3, 1, 1}}};

void expect_same(std::string_view x, std::string_view w, std::string_view lines) {
  for (const std::array<int, 3> sizes : kSizes) {
    const plan::Graph graph = read_plan(with_operands(sizes, x, w, lines));
    for (const std::string_view mesh_text : kMeshes) {
      const plan::Mesh mesh = plan::read_mesh(mesh_text).value();
      EXPECT_EQ(difference<Field>(graph, mesh), "") << mesh_text << "\n" << print(graph);
      const std::string rounded = sizes == kSizes[1] ? difference<double>(graph, mesh) : "";
      EXPECT_EQ(rounded, "") << mesh_text << "\n" << print(graph);
    }
  }
}

TEST(OnMesh, ProductSlicedOnAParallelIndex) {
  expect_same("sliced(b) on gpu", "", "%2 = contract %0, %1 {to=[b,f]}\nreturn y=%2\n");
  expect_same("", "sliced(f) on gpu",
              "%2 = contract %0, %1 {to=[b,f]}\n%3 = all-gather %2 {axis=gpu, along=f}\nreturn y=%3, s=%2\n");
}

TEST(OnMesh, ProductSlicedOnTheReducedIndex) {
  expect_same("sliced(d) on gpu", "sliced(d) on gpu",
              "%2 = contract %0, %1 {to=[b,f]}\n%3 = all-reduce %2 {axis=gpu}\n"
              "%4 = reduce-scatter %2 {axis=gpu, along=b}\n%5 = all-gather %4 {axis=gpu, along=b}\n"
              "%6 = relu %4\nreturn partial=%2, y=%3, scattered=%4, gathered=%5, relu=%6\n");
}

TEST(OnMesh, SlicesMoveFromOneIndexToAnother) {
  expect_same("sliced(b) on gpu", "",
              "%2 = contract %0, %1 {to=[b,f]}\n%3 = all-to-all %2 {axis=gpu, from=b, to=f}\n"
              "%4 = relu %3\n%5 = all-gather %4 {axis=gpu, along=f}\nreturn z=%3, y=%5\n");
  expect_same("", "",
              "%2 = slice-across %0 {axis=gpu, along=d}\n%3 = slice-across %1 {axis=gpu, along=d}\n"
              "%4 = contract %2, %3 {to=[f,b]}\n%5 = all-reduce %4 {axis=gpu}\nreturn y=%5\n");
}

TEST(OnMesh, TwoAxesAtOnce) {
  expect_same("sliced(b) on node, sliced(d) on gpu", "sliced(d) on gpu",
              "%2 = contract %0, %1 {to=[b,f]}\n%3 = reduce-scatter %2 {axis=gpu, along=f}\n"
              "%4 = all-gather %3 {axis=gpu, along=f}\n%5 = all-gather %4 {axis=node, along=b}\n"
              "return p=%2, s=%3, y=%5\n");
  expect_same(
      "sliced(d) on node, sliced(d) on gpu", "sliced(d) on node, sliced(d) on gpu",
      "%2 = contract %0, %1 {to=[b,f]}\n%3 = all-reduce %2 {axis=gpu}\n%4 = all-reduce %3 {axis=node}\n"
      "return p=%2, q=%3, y=%4\n");
  expect_same("sliced(b) on node", "sliced(f) on gpu", "%2 = contract %0, %1 {to=[b,f]}\nreturn y=%2\n");
}

// One index sliced twice: the outer slice first, undone last.
TEST(OnMesh, NestedSlices) {
  for (const std::array<int, 3> sizes : kSizes) {
    const plan::Mesh mesh = plan::read_mesh("node=2, gpu=3").value();
    const plan::Graph graph =
        read_plan(with_operands(sizes, "sliced(b) on node", "",
                                "%2 = slice-across %0 {axis=gpu, along=b}\n%3 = contract %2, %1 {to=[b,f]}\n"
                                "%4 = all-gather %3 {axis=gpu, along=b}\n%5 = all-gather %4 {axis=node, "
                                "along=b}\nreturn y=%5, z=%3\n"));
    EXPECT_EQ(difference<Field>(graph, mesh), "");
  }
}

TEST(OnMesh, CarriesPartialValuesThroughLinearOperators) {
  expect_same("partial(sum) on gpu", "",
              "%2 = contract %0, %1 {to=[b,f]}\n%3 = neg %2\n%4 = add %2, %3\n%5 = transpose %4 {to=[f,b]}\n"
              "%6 = all-reduce %5 {axis=gpu}\n%7 = pad %3 {along=b, before=1}\nreturn y=%6, p=%7\n");
  expect_same(
      "partial(max) on gpu, partial(max) on node", "",
      "%2 = reduce %0 {kind=max, to=[b]}\n%3 = all-reduce %2 {axis=gpu, kind=max}\n"
      "%4 = all-reduce %3 {axis=node, kind=max}\n%5 = reduce-scatter %0 {axis=gpu, along=d, kind=max}\n"
      "return y=%4, s=%5\n");
}

// A rank without rows contributes the neutral element, of a maximum too.
TEST(OnMesh, ExtremesOfEmptyShards) {
  expect_same("sliced(d) on gpu", "sliced(f) on node",
              "%2 = reduce %0 {kind=max, to=[b]}\n%3 = all-reduce %2 {axis=gpu, kind=max}\n"
              "%4 = reduce %1 {kind=min, to=[d]}\n%5 = reduce-scatter %4 {axis=node, along=d, kind=min}\n"
              "return m=%2, y=%3, n=%4, z=%5\n");
  const Numbers<Field> numbers{.key = 5};
  Random random(3);
  for (int i = 0; i < 100; ++i) {
    const Field x(random.next());
    EXPECT_EQ(numbers.max(x, numbers.least()), x);
    EXPECT_EQ(numbers.min(x, numbers.greatest()), x);
  }
}

Tensor<double> row(std::vector<double> elements) {
  return {{static_cast<std::int64_t>(elements.size())}, std::move(elements)};
}

// Ranks with different values, on numbers small enough to check by hand.
TEST(OnMesh, VaryingValues) {
  const plan::Mesh mesh = plan::read_mesh("gpu=3").value();
  const plan::Graph graph = read_plan(
      "plan p\n%0 = input {name=x, type=f32[b=2], layout=\"varying on gpu\"}\n"
      "%1 = all-reduce %0 {axis=gpu}\n%2 = reduce-scatter %0 {axis=gpu, along=b, kind=max}\n"
      "%3 = broadcast-from %0 {axis=gpu, root=1}\n%4 = permute-ranks %0 {axis=gpu}\n"
      "%5 = permute-ranks %0 {axis=gpu, by=-1}\n%6 = slice-across %0 {axis=gpu, along=b}\n%7 = neg %0\n"
      "return a=%1, b=%2, c=%3, d=%4, e=%5, f=%6, g=%7\n");
  spmd::MeshTensor<double> x{spmd::infer_layouts(graph, mesh).value()[0],
                             {row({1, 20}), row({3, 10}), row({2, 30})}};
  const auto outputs =
      spmd::interpret_on_mesh<double>(graph, mesh, [&](std::string_view) { return &x; }).value();
  const auto ranks = [&](std::size_t output) {
    std::vector<std::vector<double>> all;
    for (const Tensor<double>& tensor : outputs[output].ranks) all.push_back(tensor.data);
    return all;
  };
  using Ranks = std::vector<std::vector<double>>;
  EXPECT_EQ(ranks(0), (Ranks{{6, 60}, {6, 60}, {6, 60}}));
  EXPECT_EQ(ranks(1), (Ranks{{3}, {30}, {}}));
  EXPECT_EQ(ranks(2), (Ranks{{3, 10}, {3, 10}, {3, 10}}));
  EXPECT_EQ(ranks(3), (Ranks{{2, 30}, {1, 20}, {3, 10}}));
  EXPECT_EQ(ranks(4), (Ranks{{3, 10}, {2, 30}, {1, 20}}));
  EXPECT_EQ(ranks(5), (Ranks{{1}, {10}, {}}));
  EXPECT_EQ(ranks(6), (Ranks{{-1, -20}, {-3, -10}, {-2, -30}}));
  EXPECT_TRUE(outputs[6].layout.axes[0].is_varying());
  EXPECT_EQ(spmd::join_from_mesh(outputs[6], graph.type(plan::ValueId(7)), mesh).error().message,
            "the value varies along mesh axis gpu");
}

TEST(OnMesh, ReplicasMustBeBitwiseEqual) {
  const plan::Mesh mesh = plan::read_mesh("gpu=2").value();
  plan::Graph graph = read_plan("plan p\n%0 = input {name=x, type=f32[b=2]}\nreturn y=%0\n");
  const spmd::MeshTensor<double> held{plan::Layout::replicated(mesh), {row({1, 0.0}), row({1, -0.0})}};
  EXPECT_EQ(spmd::join_from_mesh(held, graph.type(plan::ValueId(0)), mesh).error().message,
            "replicas differ along mesh axis gpu: ranks 0 and 1");
}

TEST(OnMesh, SourcesMustMatchThePlan) {
  const plan::Mesh mesh = plan::read_mesh("gpu=2").value();
  const plan::Graph graph =
      read_plan("plan p\n%0 = input {name=x, type=f32[b=3], layout=\"sliced(b) on gpu\"}\nreturn y=%0\n");
  const auto message = [&](const spmd::MeshTensor<double>* x) {
    const auto outputs = spmd::interpret_on_mesh<double>(graph, mesh, [&](std::string_view) { return x; });
    return outputs.ok() ? std::string("fine") : outputs.error().message;
  };
  const plan::Layout sliced = spmd::infer_layouts(graph, mesh).value()[0];
  const spmd::MeshTensor<double> good{sliced, {row({1, 2}), row({3})}},
      uneven{sliced, {row({1}), row({2, 3})}}, few{sliced, {row({1, 2})}},
      whole{plan::Layout::replicated(mesh), {row({1, 2, 3}), row({1, 2, 3})}};
  EXPECT_EQ(message(&good), "fine");
  EXPECT_EQ(message(nullptr), "no value given for input x");
  EXPECT_EQ(message(&uneven), "input x has sizes [1] on rank 0 but the plan expects [2]");
  EXPECT_EQ(message(&few), "input x must be given sliced(b) on gpu, one tensor for each of 2 ranks");
  EXPECT_EQ(message(&whole), "input x must be given sliced(b) on gpu, one tensor for each of 2 ranks");
  EXPECT_FALSE(spmd::interpret_on_mesh<double>(graph, plan::read_mesh("gpu=2000").value(), {}).ok());
}

// A rank's own plan parses as plan text; what it sends and receives has names.
TEST(Localize, SlicesTypesAndNamesCommunication) {
  const plan::Mesh mesh = plan::read_mesh("gpu=3").value();
  const plan::Graph graph = read_plan(
      "plan p\n%0 = input {name=x, type=f32[b=8,d=4], layout=\"sliced(b) on gpu\"}\n"
      "%1 = split %0 {along=d, into=f32[h=2,e=2]}\n%2 = all-gather %1 {axis=gpu, along=b}\n%3 = relu %2\n"
      "return y=%3\n");
  const auto layouts = spmd::infer_layouts(graph, mesh).value();
  EXPECT_EQ(print(spmd::localize(graph, mesh, layouts, 2).value().graph),
            "plan p\n%0 = input {name=x, type=f32[b=2,d=4]}\n"
            "%1 = split %0 {along=d, into=f32[h=2,e=2]} : f32[b=2,h=2,e=2]\n"
            "%2 = input {name=\"take 2\", type=f32[b=8,h=2,e=2]}\n%3 = relu %2 : f32[b=8,h=2,e=2]\n"
            "return \"give 2\"=%1, y=%3\n");
}

struct Refusal {
  std::string_view lines, message;
};

// Sources: x[b=4,d=6] sliced(b) on gpu, w[d=6] whole, p[b=4,d=6] partial(sum), m[d=6] partial(max),
// v[d=6] varying.
constexpr std::array kRefusals = {
    Refusal{"%5 = reduce %0 {kind=mean, to=[d]}",
            "node %5 (reduce) on mesh axis gpu: reduce needs index b whole; operands are sliced(b)"},
    Refusal{"%5 = softmax %0 {over=[b]}",
            "node %5 (softmax) on mesh axis gpu: softmax needs index b whole; operands are sliced(b)"},
    Refusal{"%5 = relu %2",
            "node %5 (relu) on mesh axis gpu: relu cannot be applied before partial(sum) is reduced; "
            "operands are "
            "partial(sum)"},
    Refusal{"%5 = relu %3",
            "node %5 (relu) on mesh axis gpu: relu cannot be applied before partial(max) is reduced; "
            "operands are "
            "partial(max)"},
    Refusal{
        "%5 = add %2, %1",
        "node %5 (add) on mesh axis gpu: add cannot be applied before partial(sum) is reduced; operands are "
        "partial(sum), replicated"},
    Refusal{
        "%5 = mul %2, %2",
        "node %5 (mul) on mesh axis gpu: mul cannot be applied before partial(sum) is reduced; operands are "
        "partial(sum), partial(sum)"},
    Refusal{"%5 = add %2, %3",
            "node %5 (add) on mesh axis gpu: partial operands can only be combined with partial operands of "
            "the same kind and replicated ones; "
            "operands are partial(sum), partial(max)"},
    Refusal{"%5 = mul %0, %4",
            "node %5 (mul) on mesh axis gpu: varying operands can only be combined with varying and "
            "replicated ones; "
            "operands are "
            "sliced(b), varying"},
    Refusal{"%5 = slice-across %1 {axis=gpu, along=d}\n%6 = mul %0, %5",
            "node %6 (mul) on mesh axis gpu: with operand 0 sliced(b), operand 1 must be replicated; "
            "operands are "
            "sliced(b), sliced(d)"},
    Refusal{
        "%5 = slice-across %1 {axis=gpu, along=d}\n%6 = mul %1, %5",
        "node %6 (mul) on mesh axis gpu: with operand 1 sliced(d), operand 0 must be sliced(d); operands are "
        "replicated, sliced(d)"},
    Refusal{"%5 = all-reduce %0 {axis=gpu}",
            "node %5 (all-reduce) on mesh axis gpu: all-reduce needs partial(sum) or varying; operands are "
            "sliced(b)"},
    Refusal{"%5 = all-reduce %1 {axis=gpu}",
            "node %5 (all-reduce) on mesh axis gpu: all-reduce needs partial(sum) or varying; operands are "
            "replicated"},
    Refusal{"%5 = all-reduce %2 {axis=gpu, kind=max}",
            "node %5 (all-reduce) on mesh axis gpu: all-reduce needs partial(max) or varying; operands are "
            "partial(sum)"},
    Refusal{"%5 = all-gather %0 {axis=gpu, along=d}",
            "node %5 (all-gather) on mesh axis gpu: all-gather needs sliced(d); operands are sliced(b)"},
    Refusal{"%5 = slice-across %0 {axis=gpu, along=b}",
            "node %5 (slice-across) on mesh axis gpu: slice-across needs replicated or varying; operands are "
            "sliced(b)"},
    Refusal{"%5 = permute-ranks %0 {axis=gpu}",
            "node %5 (permute-ranks) on mesh axis gpu: permute-ranks would put the slices out of order; "
            "operands are "
            "sliced(b)"},
    Refusal{"%5 = broadcast-from %4 {axis=gpu, root=2}",
            "node %5 (broadcast-from) on mesh axis gpu: root must be below 2, found 2; operands are varying"},
    Refusal{"%5 = all-gather %0 {axis=rack, along=b}",
            "node %5 (all-gather): the mesh has no axis rack: it is node=2, gpu=2"},
    Refusal{"%5 = slice-across %0 {axis=node, along=b}",
            "node %5 (slice-across) on mesh axis node: b is also sliced on the inner axis gpu; operands are "
            "replicated"},
    Refusal{"%5 = slice-across %1 {axis=gpu, along=d}\n%6 = split %5 {along=d, into=f32[h=3,e=2]}",
            "node %6 (split): blocks of d do not match blocks of h: 6 and 3 over node=2, gpu=2"},
    Refusal{"%5 = input {name=q, type=f32[d=6], layout=\"varying on gpu, partial(sum) on node\"}\n"
            "%6 = all-reduce %5 {axis=gpu, kind=max}",
            "node %6 (all-reduce) on mesh axis gpu: the addends on node are partial(sum) and must be "
            "combined first; "
            "operands are varying"},
    Refusal{"%5 = input {name=q, type=f32[b=2], layout=\"varying on rack\"}",
            "node %5 (input): the mesh has no axis rack: it is node=2, gpu=2"},
};

TEST(Layouts, RejectsWithReasons) {
  for (const Refusal& refusal : kRefusals) {
    const plan::Graph graph = read_plan(
        fmt::format("plan p\n%0 = input {{name=x, type=f32[b=4,d=6], layout=\"sliced(b) on gpu\"}}\n"
                    "%1 = input {{name=w, type=f32[d=6]}}\n"
                    "%2 = input {{name=p, type=f32[b=4,d=6], layout=\"partial(sum) on gpu\"}}\n"
                    "%3 = input {{name=m, type=f32[d=6], layout=\"partial(max) on gpu\"}}\n"
                    "%4 = input {{name=v, type=f32[d=6], layout=\"varying on gpu\"}}\n{}\nreturn x=%0\n",
                    refusal.lines));
    const auto layouts = spmd::infer_layouts(graph, plan::read_mesh("node=2, gpu=2").value());
    ASSERT_FALSE(layouts.ok()) << refusal.lines;
    EXPECT_EQ(layouts.error().message, refusal.message);
  }
}

TEST(Layouts, RejectsBadLayoutsWhenParsing) {
  const auto message = [](std::string_view layout) {
    const auto graph = plan::read(
        fmt::format("plan p\n%0 = state {{name=x, type=f32[b=4], layout=\"{}\"}}\nreturn x=%0\n", layout),
        all());
    return graph.ok() ? std::string("fine") : graph.error().message;
  };
  EXPECT_EQ(message("sliced(b) on gpu"), "fine");
  EXPECT_NE(message("sliced(c) on gpu").find("layout slices index c, which is not among [b]"),
            std::string::npos);
  EXPECT_NE(message("cut").find("expected replicated, sliced, partial or varying"), std::string::npos);
}

}  // namespace
}  // namespace weft::ops
