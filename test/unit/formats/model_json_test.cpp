// Model graphs in JSON as plans: names, results, and what is rejected.
#include <filesystem>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "model_case.h"
#include "weft/formats/model_json.h"
#include "weft/plan/graph/text.h"
#include "weft/plan/graph/verify.h"
#include "weft/plan/ops/operators.h"

namespace weft::formats {
namespace {

std::string model(std::string_view inputs, std::string_view weights, std::string_view nodes,
                  std::string_view outputs) {
  return fmt::format(
      R"({{"format": "weft-graph-1", "name": "m", "dtype": "f32", "inputs": [{}], "weights": [{}], "nodes": [{}],
          "outputs": [{}]}})",
      inputs, weights, nodes, outputs);
}

std::string plan_of(const std::string& text) {
  const auto graph = parse_model_json(text);
  if (!graph.ok()) return graph.error().message;
  EXPECT_TRUE(plan::verify(*graph).ok());
  return plan::print(*graph);
}

std::string error_of(const std::string& text) {
  const auto graph = parse_model_json(text);
  EXPECT_FALSE(graph.ok());
  return graph.ok() ? plan::print(*graph) : graph.error().message;
}

std::size_t renames(const plan::Graph& graph) {
  std::size_t count = 0;
  for (std::size_t n = 0; n < graph.node_count(); ++n)
    count += graph.node(plan::NodeId(n)).op == &ops::rename();
  return count;
}

TEST(ModelJson, NamesTheIndicesOfALayer) {
  EXPECT_EQ(
      plan_of(model(
          R"({"id": "x", "shape": [8, 4]})", R"({"id": "w", "shape": [4, 2]}, {"id": "bias", "shape": [2]})",
          R"({"id": "n0", "op": "matmul", "in": ["x", "w"], "attrs": {"act": "relu"}, "shape": [8, 2]},
                             {"id": "n1", "op": "add", "in": ["n0", "bias"], "attrs": {}, "shape": [8, 2]})",
          R"("n1")")),
      R"(plan m
%0 = input {name=x, type=f32[b=8,d=4]}
%1 = parameter {name=w, type=f32[d=4,d1=2], init=normal, b=0.5}
%2 = parameter {name=bias, type=f32[d1=2], init=normal, b=0.1}
%3 = contract %0, %1 {to=[b,d1]} : f32[b=8,d1=2] @n0
%4 = relu %3 : f32[b=8,d1=2] @n0
%5 = add %4, %2 : f32[b=8,d1=2] @n1
return n1=%5
)");
}

TEST(ModelJson, PadsAOneRowWindowOnlyLeftAndRight) {
  const std::string nodes =
      R"({"id": "n0", "op": "conv2d", "in": ["x", "w"], "shape": [1, 4, 9, 9],
          "attrs": {"kernel": [1, 7], "stride": [1, 1], "pad": "same", "groups": 1, "act": "none"}},
         {"id": "n1", "op": "conv2d", "in": ["n0", "v"], "shape": [1, 6, 5, 5],
          "attrs": {"kernel": [3, 3], "stride": [2, 2], "pad": "same", "groups": 2, "act": "none"}})";
  EXPECT_EQ(plan_of(model(R"({"id": "x", "shape": [1, 3, 9, 9]})",
                          R"({"id": "w", "shape": [4, 3, 1, 7]}, {"id": "v", "shape": [6, 2, 3, 3]})", nodes,
                          R"("n1")")),
            R"(plan m
%0 = input {name=x, type=f32[b=1,c=3,h=9,w=9]}
%1 = parameter {name=w, type=f32[c1=4,c=3,r=1,q=7], init=normal, b=0.2182178902359924}
%2 = parameter {name=v, type=f32[c2=6,i=2,r=3,q=3], init=normal, b=0.23570226039551587}
%3 = conv2d %0, %1 {padding_w=3} : f32[b=1,c1=4,h=9,w=9] @n0
%4 = conv2d %3, %2 {stride=2, padding=1, groups=2} : f32[b=1,c2=6,h=5,w=5] @n1
return n1=%4
)");
}

// Queries and keys have the same index: only one side keeps its name.
TEST(ModelJson, RenamesWhereAnIndexWouldOccurTwice) {
  const std::string nodes =
      R"({"id": "t", "op": "transpose", "in": ["x"], "attrs": {"perm": [0, 2, 1]}, "shape": [2, 5, 3]},
         {"id": "s", "op": "matmul", "in": ["x", "t"], "attrs": {}, "shape": [2, 3, 3]},
         {"id": "y", "op": "matmul", "in": ["s", "x"], "attrs": {}, "shape": [2, 3, 5]})";
  EXPECT_EQ(plan_of(model(R"({"id": "x", "shape": [2, 3, 5]})", "", nodes, R"("y")")), R"(plan m
%0 = input {name=x, type=f32[b=2,s=3,d=5]}
%1 = transpose %0 {to=[b,d,s]} : f32[b=2,d=5,s=3] @t
%2 = rename %1 {from=[s], to=[t]} : f32[b=2,d=5,t=3] @s
%3 = contract %0, %2 {to=[b,s,t]} : f32[b=2,s=3,t=3] @s
%4 = rename %0 {from=[s], to=[t]} : f32[b=2,t=3,d=5] @y
%5 = contract %3, %4 {to=[b,s,d]} : f32[b=2,s=3,d=5] @y
return y=%5
)");
}

TEST(ModelJson, ReshapesByMergeAndSplit) {
  const std::string nodes =
      R"({"id": "a", "op": "reshape", "in": ["x"], "attrs": {"shape": [2, 3, 4]}, "shape": [2, 3, 4]},
         {"id": "b", "op": "reshape", "in": ["a"], "shape": [6, 4, 1]},
         {"id": "c", "op": "reshape", "in": ["b"], "shape": [4, 6]},
         {"id": "d", "op": "reshape", "in": ["c"], "shape": [1, 24]})";
  const auto graph = parse_model_json(model(R"({"id": "x", "shape": [2, 12]})", "", nodes, R"("d")"));
  ASSERT_TRUE(graph.ok()) << graph.error().message;
  EXPECT_EQ(graph->type(graph->outputs()[0].value).elements(), 24);
  EXPECT_EQ(renames(*graph), 0u) << plan::print(*graph);
}

TEST(ModelJson, RepeatsSizesOfOne) {
  const std::string nodes = R"({"id": "a", "op": "add", "in": ["x", "mask"], "shape": [2, 3, 4]},
                               {"id": "b", "op": "mul", "in": ["a", "one"], "shape": [2, 3, 4]})";
  EXPECT_EQ(plan_of(model(R"({"id": "x", "shape": [2, 3, 4]}, {"id": "mask", "shape": [1, 3, 1]})",
                          R"({"id": "one", "shape": [1]})", nodes, R"("b")")),
            R"(plan m
%0 = input {name=x, type=f32[b=2,s=3,d=4]}
%1 = input {name=mask, type=f32[b1=1,s=3,d1=1]}
%2 = parameter {name=one, type=f32[d2=1], init=normal, b=1}
%3 = rename %1 {from=[b1,d1], to=[b,d]} : f32[b=1,s=3,d=1] @a
%4 = merge %3 {along=[b,s,d], into=s} : f32[s=3] @a
%5 = add %0, %4 : f32[b=2,s=3,d=4] @a
%6 = rename %2 {from=[d2], to=[d]} : f32[d=1] @b
%7 = reduce %6 {kind=sum, to=[]} : f32[] @b
%8 = mul %5, %7 : f32[b=2,s=3,d=4] @b
return b=%8
)");
}

TEST(ModelJson, ComputesTheSameAsThePositionalModel) {
  Random random(11);
  std::size_t renamed = 0;
  for (int i = 0; i < 40; ++i) {
    const PlacedModel placed(random, 14);
    SCOPED_TRACE(placed.text());
    const auto graph = parse_model_json(placed.text());
    ASSERT_TRUE(graph.ok()) << graph.error().message;
    renamed += renames(*graph);
    placed.expect_outputs(*graph);
  }
  EXPECT_GT(renamed, 40u);  // otherwise the models were too simple
}

TEST(ModelJson, ReportsErrorsWithTheirLocation) {
  const std::string x = R"({"id": "x", "shape": [2, 3]})", w = R"({"id": "w", "shape": [3, 4]})";
  const auto node = [&](std::string_view text) { return error_of(model(x, w, text, R"("n0")")); };
  EXPECT_EQ(node(R"({"id": "n0", "op": "matmul", "in": ["x", "w"], "shape": [2, 5]})"),
            "n0: the file states shape [2, 5], matmul gives [2, 4]");
  EXPECT_EQ(node(R"({"id": "n0", "op": "matmul", "in": ["w", "x"], "shape": [3, 3]})"),
            "n0: index d has size 4 in operand 0 but 2 in operand 1");
  EXPECT_EQ(node(R"({"id": "n0", "op": "matmul", "in": ["x"], "shape": [2, 4]})"),
            "n0: matmul takes 2 operands, found 1");
  EXPECT_EQ(node(R"({"id": "n0", "op": "relu", "in": ["y"], "shape": [2, 3]})"),
            "n0: expected an input, a weight or a node, found 'y'");
  EXPECT_EQ(node(R"({"id": "n0", "op": "relu", "in": ["n0"], "shape": [2, 3]})"),
            "n0: expected an operand that an earlier node produces, found n0");
  EXPECT_EQ(node(R"({"id": "x", "op": "relu", "in": ["x"], "shape": [2, 3]})"),
            "nodes[0]: expected every id once, found x twice");
  EXPECT_EQ(node(R"({"id": "n0", "op": "rellu", "in": ["x"], "shape": [2, 3]})"),
            "n0: nodes[0]: expected an operation, found 'rellu'");
  EXPECT_EQ(node(R"({"id": "n0", "op": "relu", "in": ["x"], "attrs": {"slope": 1}, "shape": [2, 3]})"),
            "n0: nodes[0].attrs: expected no attribute 'slope'");
  EXPECT_EQ(node(R"({"id": "n0", "op": "reshape", "in": ["x"], "shape": [7]})"),
            "n0: reshape takes as many elements as before, found [2, 3] for [7]");
  EXPECT_EQ(
      node(R"({"id": "n0", "op": "transpose", "in": ["x"], "attrs": {"perm": [0, 0]}, "shape": [2, 2]})"),
      "n0: nodes[0].attrs: expected a perm of the 2 dims, found [0, 0]");
  EXPECT_EQ(node(R"({"id": "n0", "op": "softmax", "in": ["x"], "attrs": {"axis": 2}, "shape": [2, 3]})"),
            "n0: nodes[0].attrs.axis: expected -2 to 1, found 2");
  EXPECT_EQ(node(R"({"id": "n 0", "op": "relu", "in": ["x"], "shape": [2, 3]})"),
            "nodes[0]: expected an id of letters, digits and _.-/:, found 'n 0'");
  EXPECT_EQ(
      node(R"({"id": "n0", "op": "add", "in": ["x", "w"], "shape": [2, 3]})"),
      "n0: add takes operands whose dims, counted from the last, are those of the result or 1, found [2, 3], "
      "[3, 4] for [2, 3]");
  EXPECT_EQ(
      node(R"({"id": "n0", "op": "embedding_sum", "in": ["w", "w"], "shape": [3, 4]})"),
      "n0: embedding_sum takes an input of positions [.., k] and a table [rows, d], found [3, 4], [3, 4] for "
      "[3, 4]");
  EXPECT_EQ(error_of(model(R"({"id": "x", "shape": [2147483647, 2147483647]})", "", "", R"("x")")),
            "inputs[0]: tensor too large: [2147483647, 2147483647]");
  EXPECT_EQ(error_of(model(R"({"id": "x", "shape": [0]})", "", "", R"("x")")),
            "inputs[0].shape[0]: expected 1 to 2147483647, found 0");
  EXPECT_EQ(error_of(model(x, "", "", "")), "expected at least one output, found none");
  EXPECT_EQ(error_of(model(x, "", "", R"("x", "x")")), "outputs: expected every output once, found x twice");
  EXPECT_EQ(error_of(R"({"format": "onnx"})"), "expected format weft-graph-1, found 'onnx'");
  EXPECT_EQ(error_of("{"), "expected JSON, found an error at byte 2");
}

TEST(ModelJson, RejectsUnsupportedWindows) {
  const auto window = [](std::string_view attributes) {
    return error_of(model(R"({"id": "x", "shape": [1, 2, 6, 6]})", R"({"id": "w", "shape": [2, 2, 3, 3]})",
                          fmt::format(R"({{"id": "n0", "op": "{}, "shape": [1, 2, 6, 6]}})", attributes),
                          R"("n0")"));
  };
  EXPECT_EQ(
      window(R"(pool_max", "in": ["x"], "attrs": {"kernel": [3, 1], "stride": [1, 1], "pad": "valid"})"),
      "n0: nodes[0].attrs: expected a square window, found 3 x 1 with pads 0 and 0");
  EXPECT_EQ(
      window(R"(conv2d", "in": ["x", "w"], "attrs": {"kernel": [3, 3], "stride": [1, 2], "pad": "same"})"),
      "n0: nodes[0].attrs: expected one stride for both dims, found 1 and 2");
  EXPECT_EQ(
      window(R"(conv2d", "in": ["x", "w"], "attrs": {"kernel": [3, 3], "stride": [1, 1], "pad": "valid"})"),
      "n0: the file states shape [1, 2, 6, 6], conv2d gives [1, 2, 4, 4]");
  EXPECT_EQ(
      window(R"(conv2d", "in": ["x", "w"], "attrs": {"kernel": [5, 5], "stride": [1, 1], "pad": "same"})"),
      "n0: nodes[0].attrs: expected a weight [o, i, 5, 5], found [2, 2, 3, 3]");
  EXPECT_EQ(
      window(
          R"(conv2d", "in": ["x", "w"], "attrs": {"kernel": [3, 3], "stride": [1, 1], "pad": "same", "groups": 2})"),
      "n0: channels must be groups times the weight's: 2 channels, 2 groups, 2 in the weight");
}

TEST(ModelJson, ReadsPublishedModels) {
  const std::filesystem::path folder = WEFT_SOURCE_DIR "/../shared/corpus/models";
  if (!std::filesystem::exists(folder)) GTEST_SKIP() << "the corpus of model graphs is missing";
  std::size_t read = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() != ".json") continue;
    const auto graph = read_model_json(entry.path().string());
    ASSERT_TRUE(graph.ok()) << graph.error().message;
    EXPECT_TRUE(plan::verify(*graph).ok());
    EXPECT_LE(renames(*graph), graph->node_count() / 8) << entry.path();
    ++read;
  }
  EXPECT_GE(read, 18u);
}

}  // namespace
}  // namespace weft::formats
