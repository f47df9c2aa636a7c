// CUDA sources assembled from the files in the program.
#include <gtest/gtest.h>

#include <span>
#include <string>

#include "weft/base/embedded.h"
#include "weft/device/cuda/expression.h"
#include "weft/device/cuda/kernel_source.h"

namespace weft {

std::span<const EmbeddedFile> embedded_kernels();

}  // namespace weft

namespace weft::device::cuda {
namespace {

std::size_t count(std::string_view text, std::string_view part) {
  std::size_t found = 0;
  for (std::size_t at = text.find(part); at != text.npos; at = text.find(part, at + 1)) ++found;
  return found;
}

TEST(KernelSource, EachFileIncludesFilesThatExist) {
  EXPECT_GT(embedded_kernels().size(), 20u);
  for (const EmbeddedFile& file : embedded_kernels()) {
    std::string_view name = file.path.substr(file.path.rfind('/') + 1);
    name.remove_suffix(std::string_view(".cuh").size());
    const std::string source = kernel_source(name, "DEFINITIONS\n");
    EXPECT_EQ(count(source, "#include"), 0u) << name;
    EXPECT_EQ(count(source, "#pragma once"), 0u) << name;
    EXPECT_EQ(count(source, "DEFINITIONS\n"), 1u) << name;
  }
}

TEST(KernelSource, IncludesEachFileOnceInOrder) {
  const std::string source = kernel_source("attention_tensor_gradient", "constexpr int kQueries = 7;\n");
  const std::size_t definitions = source.find("kQueries = 7"), common = source.find("int weft_end("),
                    tiles = source.find("void weft_mma("), dots = source.find("void weft_dots("),
                    kernel = source.find("void weft_attention_dk_dv(");
  EXPECT_LT(definitions, common);
  EXPECT_LT(common, tiles);
  EXPECT_LT(common, dots);
  EXPECT_LT(tiles, kernel);
  EXPECT_LT(dots, kernel);
  EXPECT_LT(kernel, source.npos);
  EXPECT_EQ(count(source, "int weft_end("), 1u);
  EXPECT_EQ(count(source, "typedef weft_bf16 T"), 0u);  // only an example in the preamble
}

// Functions without an expression of their own follow it.
TEST(KernelSource, ThePreludeIsAFile) { EXPECT_TRUE(prelude().starts_with(kernel_source("prelude"))); }

}  // namespace
}  // namespace weft::device::cuda
