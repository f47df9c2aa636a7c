// ONNX files as WeftQL: a small convolutional network and a small encoder, and what is refused.
#include <fstream>
#include <sstream>

#include <gtest/gtest.h>

#include "weft/imports/onnx.h"

namespace weft::imports {
namespace {

std::string file_of(const std::string& name) {
  std::ifstream in(std::string(WEFT_SOURCE_DIR) + "/test/fuzz/corpus/onnx/" + name, std::ios::binary);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

// Weft may be built without libonnx, and then says so.
bool reads_onnx() {
  const auto none = import_onnx("", "m");
  return none.error().message.find("built without") == std::string::npos;
}

TEST(Onnx, NamesWhatItDoesNotKnow) {
  if (!reads_onnx()) GTEST_SKIP() << "built without libonnx";
  const auto unknown = import_onnx(file_of("unknown_op.onnx"), "m");
  ASSERT_FALSE(unknown.ok());
  EXPECT_EQ(unknown.error().message, "node 0 (Sofmax ''): unknown operator");
  EXPECT_EQ(unknown.error().hint, "did you mean 'Softmax'?");
}

TEST(Onnx, RefusesWhatIsCutShort) {
  if (!reads_onnx()) GTEST_SKIP() << "built without libonnx";
  const std::string whole = file_of("small_cnn.onnx");
  for (std::size_t size = 0; size < whole.size(); size += 7) {
    const auto cut = import_onnx(std::string_view(whole).substr(0, size), "m");
    if (!cut.ok()) {
      EXPECT_EQ(cut.error().fault, Fault::user);
    }
  }
}

TEST(Onnx, CountsParametersAndKeepsStatisticsApart) {
  if (!reads_onnx()) GTEST_SKIP() << "built without libonnx";
  const auto cnn = import_onnx(file_of("small_cnn.onnx"), "cnn");
  ASSERT_TRUE(cnn.ok()) << cnn.error().message;
  // 4 x 3 x 3 x 3 + 4, a norm of 4 + 4, 4 x 4, 5 x 4 + 5; mean and variance are no parameters.
  EXPECT_EQ(cnn->model.parameters, 108 + 4 + 8 + 16 + 25);
  EXPECT_NE(cnn->model.text.find("STATE     bn_mean[c1], bn_var[c1] INIT ones"), std::string::npos)
      << cnn->model.text;
  EXPECT_EQ(cnn->weights.tensors.size(), 9u);
  const auto encoder = import_onnx(file_of("small_encoder.onnx"), "encoder");
  ASSERT_TRUE(encoder.ok()) << encoder.error().message;
  EXPECT_EQ(encoder->model.parameters, 11 * 8 + 6 * 8 + 2 * (4 * 8 + 4 * 64 + 8 + 128 + 16 + 128));
}

// As exporters write them for opsets before 17, with activations that are functions of one value.
TEST(Onnx, JoinsNormsThatAreWrittenOut) {
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
