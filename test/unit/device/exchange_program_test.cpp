// Programs of communicating ranks: run side by side, they compute the same as the virtual mesh.
#include <array>

#include "lockstep_ranks.h"

namespace weft::program {
namespace {

constexpr std::array<std::string_view, 7> kMeshes = {"gpu=1", "gpu=2",         "gpu=3",        "gpu=4",
                                                     "gpu=8", "node=2, gpu=3", "gpu=2, node=2"};

// Even, uneven, and too few for every rank to have one.
constexpr std::array<std::array<int, 3>, 4> kSizes = {{{8, 16, 24}, {5, 7, 3}, {1, 2, 5}, {3, 1, 1}}};

void expect_same(std::string_view x, std::string_view w, std::string_view lines) {
  for (const std::array<int, 3> sizes : kSizes) {
    const plan::Graph graph = ops::read_plan(ops::with_operands(sizes, x, w, lines));
    for (const std::string_view mesh_text : kMeshes) {
      const plan::Mesh mesh = plan::read_mesh(mesh_text).value();
      EXPECT_EQ(difference_in_lockstep(graph, mesh), "") << mesh_text << "\n" << print(graph);
    }
  }
}

// Every rank has rows of the batch; the gradient is all-reduced before the update.
TEST(ExchangeProgram, DataParallel) {
  expect_same("sliced(b) on gpu", "",
              "%2 = contract %0, %1 {to=[b,f]}\n%3 = relu %2\n%4 = contract %0, %3 {to=[d,f]}\n"
              "%5 = all-reduce %4 {axis=gpu}\n%6 = sgd %1, %5 {lr=0.1}\nreturn y=%3, \"next w\"=%6\n");
}

// First columns, then rows: one all-reduce after the pair.
TEST(ExchangeProgram, TensorParallel) {
  expect_same("", "sliced(f) on gpu",
              "%2 = contract %0, %1 {to=[b,f]}\n%3 = relu %2\n%4 = contract %3, %1 {to=[b,d]}\n"
              "%5 = all-reduce %4 {axis=gpu}\n%6 = add %5, %0\nreturn y=%6\n");
}

TEST(ExchangeProgram, ReduceScatterThenAllGather) {
  expect_same("sliced(d) on gpu", "sliced(d) on gpu",
              "%2 = contract %0, %1 {to=[b,f]}\n%3 = all-reduce %2 {axis=gpu}\n"
              "%4 = reduce-scatter %2 {axis=gpu, along=b}\n%5 = all-gather %4 {axis=gpu, along=b}\n"
              "%6 = relu %4\n%7 = reduce-scatter %2 {axis=gpu, along=f}\n%8 = neg %7\n"
              "%9 = all-gather %8 {axis=gpu, along=f}\nreturn y=%3, s=%4, g=%5, r=%6, t=%7, u=%9\n");
}

TEST(ExchangeProgram, AllToAll) {
  expect_same("sliced(b) on gpu", "",
              "%2 = contract %0, %1 {to=[b,f]}\n%3 = all-to-all %2 {axis=gpu, from=b, to=f}\n"
              "%4 = relu %3\n%5 = all-to-all %4 {axis=gpu, from=f, to=b}\n"
              "%6 = all-gather %5 {axis=gpu, along=b}\nreturn z=%3, y=%5, g=%6\n");
}

// Nothing is sent if a rank keeps a slice of what it has.
TEST(ExchangeProgram, SliceAcross) {
  expect_same("", "",
              "%2 = slice-across %0 {axis=gpu, along=d}\n%3 = slice-across %1 {axis=gpu, along=d}\n"
              "%4 = contract %2, %3 {to=[f,b]}\n%5 = all-reduce %4 {axis=gpu}\n"
              "%6 = reduce %2 {kind=max, to=[b]}\n%7 = all-reduce %6 {axis=gpu, kind=max}\n"
              "return y=%5, m=%7\n");
}

// The parameter is sharded and gathered before use; its gradient is reduce-scattered.
TEST(ExchangeProgram, ShardedParameter) {
  for (const std::string_view index : {"d", "f"})
    expect_same("sliced(b) on gpu", fmt::format("sliced({}) on gpu", index),
                fmt::format("%2 = all-gather %1 {{axis=gpu, along={0}}}\n%3 = contract %0, %2 {{to=[b,f]}}\n"
                            "%4 = relu %3\n%5 = contract %0, %4 {{to=[d,f]}}\n"
                            "%6 = reduce-scatter %5 {{axis=gpu, along={0}}}\n%7 = sgd %1, %6 {{lr=0.1}}\n"
                            "return y=%4, \"next w\"=%7\n",
                            index));
}

// The update is sharded, and the parameter is gathered after it.
TEST(ExchangeProgram, ShardedUpdate) {
  expect_same("sliced(b) on gpu", "",
              "%2 = contract %0, %1 {to=[b,f]}\n%3 = relu %2\n%4 = contract %0, %3 {to=[d,f]}\n"
              "%5 = reduce-scatter %4 {axis=gpu, along=d}\n%6 = slice-across %1 {axis=gpu, along=d}\n"
              "%7 = sgd %6, %5 {lr=0.1}\n%8 = all-gather %7 {axis=gpu, along=d}\n"
              "return y=%3, \"next w\"=%8\n");
}

std::vector<std::string> units_of(const Program& program) {
  std::vector<std::string> list;
  for (const Unit& unit : program.units) list.push_back(describe(program, unit));
  return list;
}

// The update of w waits for the network, so the independent gradient of v comes first.
TEST(ExchangeProgram, SchedulesReadersOfExchangesLate) {
  const plan::Graph graph = ops::read_plan(
      "plan p\n%0 = input {name=x, type=f32[b=64,d=64], layout=\"sliced(b) on gpu\"}\n"
      "%1 = parameter {name=w, type=f32[d=64,f=64]}\n%2 = parameter {name=v, type=f32[f=64,d=64]}\n"
      "%3 = contract %0, %1 {to=[b,f]}\n%4 = contract %3, %2 {to=[b,d]}\n"
      "%5 = contract %0, %3 {to=[d,f]}\n%6 = all-reduce %5 {axis=gpu}\n%7 = sgd %1, %6 {lr=0.1}\n"
      "%8 = contract %3, %4 {to=[f,d]}\n%9 = all-reduce %8 {axis=gpu}\n%10 = sgd %2, %9 {lr=0.1}\n"
      "return \"next w\"=%7, \"next v\"=%10\n");
  const std::vector<Program> programs = programs_of(graph, plan::read_mesh("gpu=2").value());
  EXPECT_EQ(units_of(programs[0]).back(), "sgd");
  EXPECT_EQ(units_of(programs[0])[units_of(programs[0]).size() - 2], "sgd") << print(programs[0]);
}

// Eight layers of gathered parameters: they are prefetched, but not all at the start.
TEST(ExchangeProgram, PrefetchesGatheredParametersInTurn) {
  std::string text = "plan p\n%0 = input {name=x, type=f32[b=32,d=32], layout=\"sliced(b) on gpu\"}\n";
  int next = 1, x = 0;
  for (int layer = 0; layer < 8; ++layer, next += 4, x = next - 1)
    text += fmt::format(
        "%{0} = parameter {{name=w{4}, type=f32[d=32,f=32], layout=\"sliced(d) on gpu\"}}\n"
        "%{1} = all-gather %{0} {{axis=gpu, along=d}}\n%{2} = contract %{5}, %{1} {{to=[b,f]}}\n"
        "%{3} = rename %{2} {{from=[f], to=[d]}}\n",
        next, next + 1, next + 2, next + 3, layer, x);
  text += fmt::format("return y=%{}\n", x);
  const plan::Graph graph = ops::read_plan(text);
  const plan::Mesh mesh = plan::read_mesh("gpu=2").value();
  const std::vector<Program> programs = programs_of(graph, mesh);
  int unread = 0, most = 0;
  for (const std::string& unit : units_of(programs[0])) {
    unread += unit == "all-gather over gpu" ? 1 : -1;
    most = std::max(most, unread);
  }
  EXPECT_EQ(most, 2) << print(programs[0]);
  // Weights that keep values near one, so that the order of summation affects only the last digits.
  ops::Tensors<float> weights;
  Random random(3);
  for (int layer = 0; layer < 8; ++layer) {
    ops::Tensor<float> w{{32, 32}, {}};
    for (int i = 0; i < 32 * 32; ++i) w.data.push_back(static_cast<float>(random.uniform() - 0.5) * 0.6f);
    weights[fmt::format("w{}", layer)] = std::move(w);
  }
  EXPECT_EQ(difference_in_lockstep(graph, mesh, std::move(weights)), "");
}

// The second product waits for the first reduce-scatter neither by order nor by memory.
TEST(ExchangeProgram, SendBuffersOutliveTheirExchanges) {
  const plan::Graph graph = ops::read_plan(
      "plan p\n%0 = input {name=x, type=f32[b=64,d=64], layout=\"sliced(b) on gpu\"}\n"
      "%1 = input {name=y, type=f32[b=64,f=64], layout=\"sliced(b) on gpu\"}\n"
      "%2 = contract %0, %1 {to=[d,f]}\n%3 = reduce-scatter %2 {axis=gpu, along=d}\n"
      "%4 = contract %1, %0 {to=[f,d]}\n%5 = reduce-scatter %4 {axis=gpu, along=f}\n"
      "%6 = relu %3\n%7 = relu %5\nreturn a=%6, b=%7\n");
  const std::vector<Program> programs = programs_of(graph, plan::read_mesh("gpu=2").value());
  const auto exchanges = [&](std::uint32_t task) {
    return std::holds_alternative<Exchange>(programs[0].units[programs[0].tasks[task].unit].kernel);
  };
  for (const Task& task : programs[0].tasks) {
    if (!std::holds_alternative<MatrixProduct>(programs[0].units[task.unit].kernel)) continue;
    EXPECT_TRUE(std::ranges::none_of(task.waits, exchanges)) << print(programs[0]);
  }
}

// Printing a rank's program: what is sent, and to which ranks.
TEST(ExchangeProgram, PrintsTransfersAndTheirRanks) {
  const plan::Graph graph = ops::read_plan(
      "plan p\n%0 = input {name=x, type=f32[b=4,d=5], layout=\"sliced(b) on gpu\"}\n"
      "%1 = all-to-all %0 {axis=gpu, from=b, to=d}\n%2 = all-gather %1 {axis=gpu, along=d}\nreturn y=%2\n");
  const std::string text = print(programs_of(graph, plan::read_mesh("gpu=2").value())[1]);
  EXPECT_NE(text.find("all-to-all over gpu [6, 4] taking [4, 4] using the communicator's choice: "),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("all-gather over gpu [12, 8] using the communicator's choice: "), std::string::npos)
      << text;
}

}  // namespace
}  // namespace weft::program
