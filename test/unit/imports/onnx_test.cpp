// ONNX files as WeftQL: a small convolutional network, a small encoder, and what is rejected.
#include <fstream>
#include <sstream>

#include <gtest/gtest.h>

#include "weft/formats/protobuf_wire.h"
#include "weft/translate/imports/onnx.h"

namespace weft::imports {
namespace {

std::string file_of(const std::string& name) {
  std::ifstream in(std::string(WEFT_SOURCE_DIR) + "/test/fuzz/corpus/onnx/" + name, std::ios::binary);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

// Weft may be built without libonnx, and then reports that.
bool reads_onnx() {
  const auto none = import_onnx("", "m");
  return none.error().message.find("built without") == std::string::npos;
}

TEST(Onnx, NamesUnknownOperators) {
  if (!reads_onnx()) GTEST_SKIP() << "built without libonnx";
  const auto unknown = import_onnx(file_of("unknown_op.onnx"), "m");
  ASSERT_FALSE(unknown.ok());
  EXPECT_EQ(unknown.error().message, "node 0 (Sofmax ''): unknown operator");
  EXPECT_EQ(unknown.error().hint, "did you mean 'Softmax'?");
}

TEST(Onnx, RejectsControlFlowAndNewerVersions) {
  if (!reads_onnx()) GTEST_SKIP() << "built without libonnx";
  const auto branches = import_onnx(file_of("control_flow.onnx"), "m");
  ASSERT_FALSE(branches.ok());
  EXPECT_EQ(branches.error().message, "If 'pick': Weft does not support control flow");
  const auto newer = import_onnx(file_of("newer_opset.onnx"), "m");
  ASSERT_FALSE(newer.ok());
  EXPECT_EQ(newer.error().message, "expected an opset from 13 to 20, found 99");
}

TEST(Onnx, UsesALossAsTheOutput) {
  if (!reads_onnx()) GTEST_SKIP() << "built without libonnx";
  const auto model = import_onnx(file_of("mlp_with_loss.onnx"), "mlp");
  ASSERT_TRUE(model.ok()) << model.error().message;
  const std::string& text = model->model.text;
  EXPECT_NE(text.find("INPUT     input_[b, d], target[b] OF int32"), std::string::npos) << text;
  EXPECT_NE(text.find("SELECT mean(cross_entropy("), std::string::npos) << text;
  // Transposed weights are read without a copy, under other names.
  EXPECT_EQ(text.find("turned"), std::string::npos) << text;
  EXPECT_TRUE(model->model.notes.empty());
}

// A large tensor stays in the file.
TEST(Onnx, PointsIntoTheFile) {
  if (!reads_onnx()) GTEST_SKIP() << "built without libonnx";
  const auto info = [](std::string_view name, std::uint64_t columns) {
    formats::WireWriter rows, width, shape, tensor, type, value;
    rows.field(1, 2);
    width.field(1, columns);
    shape.field(1, rows.bytes());
    shape.field(1, width.bytes());
    tensor.field(1, 1);
    tensor.field(2, shape.bytes());
    type.field(1, tensor.bytes());
    value.field(1, name);
    value.field(2, type.bytes());
    return value.take();
  };
  formats::WireWriter node, weight, graph, opset, model;
  for (const std::string_view name : {"x", "w"}) node.field(1, name);
  node.field(2, "y");
  node.field(4, "MatMul");
  weight.field(1, 40);
  weight.field(1, 50);
  weight.field(2, 1);
  weight.field(8, "w");
  weight.field(9, std::string(4 * 40 * 50, '\x3f'));
  graph.field(1, node.bytes());
  graph.field(5, weight.bytes());
  graph.field(11, info("x", 40));
  graph.field(12, info("y", 50));
  opset.field(2, 17);
  model.field(8, opset.bytes());
  model.field(7, graph.bytes());
  const std::string bytes = model.take();
  const auto imported = import_onnx(bytes, "m");
  ASSERT_TRUE(imported.ok()) << imported.error().message;
  ASSERT_EQ(imported->weights.tensors.size(), 1u);
  const auto data = imported->weights.tensors[0].data;
  ASSERT_EQ(data.size(), 8000u);
  const auto* first = reinterpret_cast<const char*>(data.data());
  EXPECT_TRUE(first > bytes.data() && first + data.size() <= bytes.data() + bytes.size());
  EXPECT_EQ(static_cast<char>(data[7999]), '\x3f');
}

TEST(Onnx, RejectsTruncatedFiles) {
  if (!reads_onnx()) GTEST_SKIP() << "built without libonnx";
  const std::string whole = file_of("small_cnn.onnx");
  for (std::size_t size = 0; size < whole.size(); size += 7) {
    const auto cut = import_onnx(std::string_view(whole).substr(0, size), "m");
    if (!cut.ok()) {
      EXPECT_EQ(cut.error().fault, Fault::user);
    }
  }
}

TEST(Onnx, CountsParametersWithoutStatistics) {
  if (!reads_onnx()) GTEST_SKIP() << "built without libonnx";
  const auto cnn = import_onnx(file_of("small_cnn.onnx"), "cnn");
  ASSERT_TRUE(cnn.ok()) << cnn.error().message;
  // 4 x 3 x 3 x 3 + 4, a norm of 4 + 4, 4 x 4, 5 x 4 + 5; mean and variance are not parameters.
  EXPECT_EQ(cnn->model.parameters, 108 + 4 + 8 + 16 + 25);
  EXPECT_NE(cnn->model.text.find("STATE     bn_mean[c1], bn_var[c1] INIT ones"), std::string::npos)
      << cnn->model.text;
  EXPECT_EQ(cnn->weights.tensors.size(), 9u);
  const auto encoder = import_onnx(file_of("small_encoder.onnx"), "encoder");
  ASSERT_TRUE(encoder.ok()) << encoder.error().message;
  EXPECT_EQ(encoder->model.parameters, 11 * 8 + 6 * 8 + 2 * (4 * 8 + 4 * 64 + 8 + 128 + 16 + 128));
}

// As exporters write them for opsets before 17, with separate activation functions.
TEST(Onnx, FusesDecomposedNorms) {
  if (!reads_onnx()) GTEST_SKIP() << "built without libonnx";
  const auto written = import_onnx(file_of("written_out_norms.onnx"), "m");
  ASSERT_TRUE(written.ok()) << written.error().message;
  EXPECT_EQ(written->model.parameters, 6 * 16);
  const std::string& text = written->model.text;
  EXPECT_NE(text.find("layer_norm(x, epsilon => 1e-05) OVER (PARTITION BY b, s) * l0_w + l0_b"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("greatest(part1, part1 * 0.2)"), std::string::npos) << text;
  EXPECT_NE(text.find("least(least(greatest(sum5 + cos1, -0.5), 0.75), 0.9)"), std::string::npos) << text;
  EXPECT_EQ(text.find("mean("), std::string::npos) << text;
}

}  // namespace
}  // namespace weft::imports
