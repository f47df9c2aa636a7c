// A stored choice of algorithm is read back unchanged, and only for the same key.
#include "weft/device/cuda/multiplication.h"

#include <gtest/gtest.h>

namespace weft::device::cuda {
namespace {

const Multiplication kProduct{.m = 768, .n = 16384, .k = 3072, .lda = 768, .ldb = 3072, .ldc = 768};
constexpr ProductAlgorithm kAlgorithm = {1, 0, 0xffffffffffffffff, 42, 5, 6, 7, 0x8000000000000000};

TEST(StoredChoice, ReadsBackWhatWasWritten) {
  const std::string key = kProduct.key() + " on NVIDIA H200 by cuBLASLt 130000";
  const std::string text = print_choice(key, kAlgorithm);
  EXPECT_EQ(read_choice(key, text), kAlgorithm) << text;
}

TEST(StoredChoice, DependsOnLibraryGpuAndShape) {
  const std::string key = kProduct.key() + " on NVIDIA H200 by cuBLASLt 130000";
  const std::string text = print_choice(key, kAlgorithm);
  EXPECT_FALSE(read_choice(kProduct.key() + " on NVIDIA H200 by cuBLASLt 130100", text));
  EXPECT_FALSE(read_choice(kProduct.key() + " on NVIDIA A100 by cuBLASLt 130000", text));
  Multiplication other = kProduct;
  other.b_alignment = 8;
  EXPECT_NE(other.key(), kProduct.key());
  EXPECT_FALSE(read_choice(other.key() + " on NVIDIA H200 by cuBLASLt 130000", text));
}

TEST(StoredChoice, RejectsTruncatedOrChangedChoices) {
  const std::string key = kProduct.key(), text = print_choice(key, kAlgorithm);
  for (std::size_t size = 0; size < text.size(); ++size)
    EXPECT_FALSE(read_choice(key, text.substr(0, size))) << size;
  for (std::size_t i = 0; i < text.size(); ++i) {
    std::string changed = text;
    changed[i] = changed[i] == '1' ? '2' : '1';
    EXPECT_FALSE(read_choice(key, changed)) << i;
  }
  EXPECT_FALSE(read_choice(key, text + "\n"));
  EXPECT_FALSE(read_choice(key, ""));
}

// The key contains every number that the library receives: a change in any of them is another
// choice.
TEST(Multiplication, KeysContainEveryField) {
  const auto differs = [](auto Multiplication::*field) {
    Multiplication other = kProduct;
    other.*field = static_cast<std::remove_reference_t<decltype(other.*field)>>(!(other.*field) ? 1 : 0);
    return other.key() != kProduct.key();
  };
  for (const auto field : {&Multiplication::m, &Multiplication::n, &Multiplication::k, &Multiplication::batch,
                           &Multiplication::lda, &Multiplication::ldb, &Multiplication::ldc,
                           &Multiplication::a_stride, &Multiplication::b_stride, &Multiplication::c_stride})
    EXPECT_TRUE(differs(field));
  for (const auto field :
       {&Multiplication::type, &Multiplication::c_type, &Multiplication::compute,
        &Multiplication::a_alignment, &Multiplication::b_alignment, &Multiplication::c_alignment})
    EXPECT_TRUE(differs(field));
  for (const auto field :
       {&Multiplication::transposed_a, &Multiplication::transposed_b, &Multiplication::adds})
    EXPECT_TRUE(differs(field));
  EXPECT_DOUBLE_EQ(kProduct.flops(), 2.0 * 768 * 16384 * 3072);
}

}  // namespace
}  // namespace weft::device::cuda
