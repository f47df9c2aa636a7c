// `weft import` of ONNX files with external weights.
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>

#include "temporary_folder.h"
#include "weft/app/command/import.h"
#include "weft/formats/safetensors.h"

namespace weft::command {

using namespace session;
namespace {

const std::string kOnnxFolder = std::string(WEFT_SOURCE_DIR) + "/test/data/onnx/";

bool lacks_onnx(const Reply& reply) { return reply.complaint.find("built without") != std::string::npos; }

TEST(Import, ImportsExternalWeights) {
  const TemporaryFolder folder;
  Import request;
  request.file = kOnnxFolder + "external.onnx";
  request.to = folder / "external.weft";
  const Reply reply = run(request);
  if (lacks_onnx(reply)) GTEST_SKIP() << reply.complaint;
  ASSERT_EQ(reply.exit_code, ExitCode::ok) << reply.complaint;
  const auto loaded = formats::load(folder / "external.safetensors");
  ASSERT_TRUE(loaded.ok()) << loaded.error().message;
  ASSERT_EQ(loaded->tensors.size(), 2u);  // the bias is in the model file
  const formats::TensorEntry* const beside = loaded->find("w");
  ASSERT_NE(beside, nullptr);
  EXPECT_EQ(beside->shape, (std::vector<std::int64_t>{4, 3}));
  // 0, 1, .. 11 from byte 8 of the file on.
  for (int i = 0; i < 12; ++i) {
    float value = -1;
    std::memcpy(&value, beside->data.data() + 4 * i, sizeof value);
    EXPECT_EQ(value, static_cast<float>(i));
  }
}

TEST(Import, ReportsInvalidExternalWeights) {
  const TemporaryFolder folder;
  Import request;
  request.file = kOnnxFolder + "elsewhere.onnx";
  request.to = folder / "m.weft";
  const Reply elsewhere = run(request);
  if (lacks_onnx(elsewhere)) GTEST_SKIP() << elsewhere.complaint;
  EXPECT_EQ(
      elsewhere.complaint,
      "error: " + request.file + ": w: expected data in a file beside this one, found '../external.bin'\n");
  // A model whose weight file is missing, and one whose weight file is too short.
  std::filesystem::copy(kOnnxFolder + "external.onnx", folder / "external.onnx");
  request.file = folder / "external.onnx";
  EXPECT_EQ(run(request).complaint,
            "error: cannot read " + (folder / "external.bin") + ": No such file or directory\n");
  std::filesystem::copy(kOnnxFolder + "external.bin", folder / "external.bin");
  std::filesystem::resize_file(folder / "external.bin", 40);
  EXPECT_EQ(run(request).complaint, "error: " + (folder / "external.bin") +
                                        ": expected 48 bytes of w from byte 8 on, found 40 in all\n");
  EXPECT_FALSE(std::filesystem::exists(folder / "m.weft"));
}

}  // namespace
}  // namespace weft::command
