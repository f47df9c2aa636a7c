// What is written for a GPU compiles, and every unit of what is shipped has a kernel: no GPU is needed to know.
#include <set>

#include <gtest/gtest.h>

#include "execution_case.h"
#include "weft/device/cuda/compile.h"
#include "weft/device/cuda/kernels.h"

namespace weft::exec {
namespace {

using device::cuda::Handle;

// Compiles each text once, for the oldest kind that is served.
class CompiledOnly final : public device::cuda::Functions {
 public:
  Result<Handle> function(const std::string& text, const std::string& name) override {
    EXPECT_NE(text.find("void " + name + "("), std::string::npos) << name;
    if (texts_.insert(text).second) {
      WEFT_TRY(image, device::cuda::compile(text, "sm_80"));
      EXPECT_FALSE(image.empty());
    }
    return nullptr;
  }
  std::size_t texts() const { return texts_.size(); }

 private:
  std::set<std::string> texts_;
};

void compile_all(const plan::Graph& graph, CompiledOnly& functions) {
  const auto program =
      program::compile(std::make_shared<plan::Graph>(graph.clone()), {.workers = 1, .tiles = false});
  ASSERT_TRUE(program.ok()) << program.error().message;
  alignas(256) static std::byte nowhere[256];
  for (const program::Unit& unit : program->units) {
    const auto kernel = device::cuda::make_kernel(functions, *program, unit, device::Address(nowhere));
    EXPECT_TRUE(kernel.ok()) << program::describe(*program, unit) << ": " << kernel.error().message;
  }
}

TEST(GpuTexts, OfWholeTrainingStepsCompile) {
  if (const auto found = device::cuda::compiler(); !found.ok()) GTEST_SKIP() << found.error().message;
  if (const auto found = device::cuda::blas(); !found.ok()) GTEST_SKIP() << found.error().message;
  CompiledOnly functions;
  compile_all(training_plan("char_gpt", {{"b", 2, {}}, {"s", 16, {}}, {"layers", 1, {}}}), functions);
  const std::size_t one_layer = functions.texts();
  compile_all(training_plan("char_gpt", {{"b", 2, {}}, {"s", 16, {}}, {"layers", 3, {}}}), functions);
  // Layers that are alike are one text; the sums that gather their gradients differ.
  EXPECT_LT(functions.texts(), one_layer + one_layer / 2);
  compile_all(training_plan("digits_conv", {{"b", 4, {}}}), functions);
}

TEST(GpuTexts, WhatDoesNotCompileIsSaid) {
  if (const auto found = device::cuda::compiler(); !found.ok()) GTEST_SKIP() << found.error().message;
  const auto image = device::cuda::compile("extern \"C\" __global__ void f() { nonsense(); }", "sm_80");
  ASSERT_FALSE(image.ok());
  EXPECT_NE(image.error().message.find("nonsense"), std::string::npos);
}

TEST(GpuTexts, AMachineWithoutAGpuSaysWhatItLacks) {
  if (device::cuda::driver().ok()) GTEST_SKIP() << "this machine has a driver";
  const auto opened = device::open_device("cuda:0");
  ASSERT_FALSE(opened.ok());
  EXPECT_EQ(opened.error().fault, Fault::world);
  EXPECT_NE(opened.error().message.find("driver"), std::string::npos) << opened.error().message;
  EXPECT_FALSE(device::open_device("cuda:x").ok());
}

}  // namespace
}  // namespace weft::exec
