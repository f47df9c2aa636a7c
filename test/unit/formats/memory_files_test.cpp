// Input files of `weft memory`: what they contain and what is rejected.
#include <gtest/gtest.h>

#include "weft/formats/buffers_csv.h"
#include "weft/formats/recompute_json.h"
#include "weft/formats/tiling_json.h"

namespace weft::formats {
namespace {

template <class Read>
std::string refusal_of(Read read, const std::string& text) {
  const auto result = read(text);
  return result.ok() ? "read" : result.error().message;
}

TEST(RecomputeFile, HasGraphs) {
  const auto graphs = read_recompute_graphs(
      R"([{"name": "g", "input_size": 3, "optima": [], "nodes": [{"f": 1, "b": 2.5, "a": 4, "inputs": [-1]},)"
      R"( {"name": "n", "f": 0, "b": 0, "a": 0, "inputs": [0, -1]}]}, {"input_size": 0, "nodes": []}])");
  ASSERT_TRUE(graphs.ok()) << graphs.error().message;
  ASSERT_EQ(graphs->size(), 2u);
  const memory::RecomputeGraph& graph = graphs->front();
  EXPECT_EQ(graph.name, "g");
  EXPECT_EQ(graph.input_size, 3);
  EXPECT_EQ(graph.nodes[0].backward, 2.5);
  EXPECT_EQ(graph.nodes[0].name, "0");
  EXPECT_EQ(graph.nodes[1].inputs, (std::vector<std::int32_t>{0, -1}));
  EXPECT_EQ((*graphs)[1].name, "1");
}

TEST(RecomputeFile, ReportsErrors) {
  const auto refusal = [](const std::string& node, const std::string& head = R"("input_size": 1)") {
    return refusal_of(read_recompute_graphs, "[{" + head + R"(, "nodes": [)" + node + "]}]");
  };
  EXPECT_EQ(refusal(R"({"f": 1, "b": 1, "a": 1, "inputs": [0]})"),
            "[0].nodes[0].inputs[0]: expected -1, found 0");
  EXPECT_EQ(refusal(R"({"f": -1, "b": 1, "a": 1, "inputs": []})"),
            "[0].nodes[0].f: expected a time of at least 0, found -1");
  EXPECT_EQ(refusal(R"({"b": 1, "a": 1, "inputs": []})"), "[0].nodes[0]: expected f, found none");
  EXPECT_NE(refusal(R"({"f": 1, "b": 1, "a": -1, "inputs": []})"), "read");
  EXPECT_NE(refusal(R"({"f": 1, "b": 1, "a": 1.5, "inputs": []})"), "read");
  EXPECT_NE(refusal(R"({"f": 1e999, "b": 1, "a": 1, "inputs": []})"), "read");
  EXPECT_EQ(refusal("", R"("name": "g")"), "[0]: expected input_size, found none");
  EXPECT_NE(refusal_of(read_recompute_graphs, "7"), "read");
  EXPECT_NE(refusal_of(read_recompute_graphs, "[{"), "read");
}

TEST(BuffersFile, ReadsColumnsInAnyOrder) {
  const auto read = read_buffers_csv("size,id,hint,upper,lower\r\n4, b1 ,x,3,-2\r\n\r\n5,b2,,9,9");
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(read->ids, (std::vector<std::string>{"b1", "b2"}));
  EXPECT_EQ(read->buffers[0].born, -2);
  EXPECT_EQ(read->buffers[0].dies, 3);
  EXPECT_EQ(read->buffers[0].size, 4);
  EXPECT_FALSE(read->buffers[1].takes_place());
}

TEST(BuffersFile, ReportsErrors) {
  const auto refusal = [](const std::string& line) {
    return refusal_of(read_buffers_csv, "id,lower,upper,size\n" + line);
  };
  EXPECT_EQ(refusal("a,1,2"), "line 2: expected 4 fields, found 3");
  EXPECT_EQ(refusal("a,1,x,2"), "line 2: upper: expected a whole number, found 'x'");
  EXPECT_EQ(refusal("a,3,1,2"), "line 2: expected lower <= upper, found 3 and 1");
  EXPECT_EQ(refusal("a,1,3,-2"), "line 2: expected a size from 0, found -2");
  EXPECT_EQ(refusal("a,1,3,2\na,1,3,2"), "line 3: expected every id once, found 'a' twice");
  EXPECT_EQ(refusal("a,1,3,99999999999999999999"),
            "line 2: size: expected a whole number, found '99999999999999999999'");
  EXPECT_EQ(refusal_of(read_buffers_csv, ""),
            "expected a header with id, lower, upper and size, found nothing");
  EXPECT_EQ(refusal_of(read_buffers_csv, "id,lower,upper"), "line 1: expected a column 'size', found none");
  EXPECT_EQ(refusal_of(read_buffers_csv, "id,id,lower,upper,size"),
            "line 1: expected one column 'id', found two");
}

TEST(TilingFile, ReportsErrors) {
  const std::string rest =
      R"("heights": [8, 8], "inputs": [[0]], "base_costs": [1], "op_types": ["Pointwise"],)"
      R"( "fast_memory_capacity": 64, "slow_memory_bandwidth": 10, "native_granularity": [8, 8])";
  const auto refusal = [&](const std::string& head) {
    return refusal_of(read_tiling_problem, "{" + head + ", " + rest + "}");
  };
  EXPECT_EQ(refusal(R"("widths": [8, 8], "outputs": [[1]])"), "read");
  EXPECT_EQ(refusal(R"("widths": [8], "outputs": [[1]])"),
            "expected as many heights as widths, found 2 and 1");
  EXPECT_EQ(refusal(R"("widths": [8, 8], "outputs": [[]])"), "outputs[0]: expected one tensor, found 0");
  EXPECT_EQ(refusal(R"("widths": [8, 8], "outputs": [[1], [0]])"),
            "expected as many inputs, outputs, base_costs and op_types, found 1, 2, 1 and 1");
  EXPECT_EQ(refusal(R"("widths": [8, 8], "outputs": [[0]])"), "operators have a circular dependency");
}

}  // namespace
}  // namespace weft::formats
